# ruff: noqa: S608  # nothing in these statements comes from outside
"""Two years of an organisation as SQL that DuckDB and PostgreSQL both understand.

Each night some jobs are opened and as many are closed. Each job is edited once: its title, its pay,
its overview and one of its other fields.
"""

from dev.columns import new_fields

# How many nights, and the nights of a job from its opening to its closing and to its edit.
DAYS, LIFE, EDITED_AFTER = 730, 61, 20
# The share of all jobs that are open at the end.
OPEN = LIFE / (DAYS + LIFE - 1)

LAST = DAYS - 1
FIELDS = new_fields()
# Lengths of real postings in HTML: most overviews have 2,000 to 14,000 characters, one in 200 has
# 30,000, and some are empty. DuckDB stores texts of more than 4,096 bytes in another way.
OVERVIEW = """case
        when i % 200 = 0 then 30000
        when i % 50 = 1 then 0
        else 2000 + i * 7919 % 12000
    end"""
OTHER_TEXT = "500 + i * 7919 % 3000"


def _text(length: str, place: int) -> str:
    """Return a part of `lines` as SQL, another one for each job, version and place."""
    return f"substr(lines, 1 + (i * 31 + version * 1009 + {place}) % 60000, {length})"


OTHERS = {
    "jobs": "cast(null as text)",
    "job_details": " || ".join(
        [
            f"""'{{"benefits":"' || {_text(OTHER_TEXT, 1)}""",
            f"""'","keyResponsibilities":"' || {_text(OTHER_TEXT, 2)}""",
            f"""'","requiredSkills":"' || {_text(OTHER_TEXT, 3)} || '"}}'""",
        ]
    ),
}
# What is in a column of version 1 or 2 of job `i`; in all others, their own name.
VALUES = {
    "public_id": "'public-' || i",
    "job_title": "'Role ' || i || ' version ' || version",
    "location": "'City ' || (i % 40)",
    "department": "'Department ' || (i % 15)",
    "min_salary": "50000.0 + i % 1000",
    "max_salary": "60000.0 + i % 1000 + 1000 * version",
    "currency": "'EUR'",
    "job_url": "'https://jobs.example.com/public-' || i",
    "role_overview": f"nullif({_text(OVERVIEW, 0)}, '')",
    "years_experience": "5.0",
    "knockout_questions": (
        """'[{"id":"1","question":"' || repeat(md5('question' || i), 12) """
        """|| '","required":true,"type":"boolean"}]'"""
    ),
}


def raw_tables(jobs: int) -> str:
    """Return statements that make what the tap has loaded after the last night."""
    tables = "".join(
        f"""
create table public_jobs.{table} as
select id, {_values([column for name in of for column in FIELDS[name]])},
    {OTHERS[table]} as additional_fields
from (select *, 2 as version from life cross join texts where closes > {LAST}) as open_jobs;
"""
        for table, of in {"jobs": ["jobs"], "job_details": ["jobs", "job_details"]}.items()
    )
    return f"""{_life(jobs)}
create schema public_jobs;
create table public_jobs.job_publications as
select id, 'public-' || i as public_id,
    case when opens > 0 then {_night("opens - 1")} end as opened_after,
    {_night("opens")} as first_seen_at,
    {_night(f"least(closes - 1, {LAST})")} as last_seen_at,
    case when closes <= {LAST} then {_night("closes")} end as unpublished_at
from life;
{tables}"""


def history(jobs: int) -> str:
    """Return statements that add what builds after each night would have recorded.

    The snapshots have been taken of the raw tables.
    """
    closing = f"case when life.closes <= {LAST} then life.closes else life.opens end"
    current = "".join(
        f"""
update analytics_history.{table} as history
set listed_at = {_night(night)}, dbt_valid_from = {_build(night)}
from life where life.job_key = history.job_key;
"""
        for table, night in {
            "publication_history": closing,
            "job_history": "life.edits",
            "job_detail_history": "life.edits",
        }.items()
    )
    versions = "".join(
        f"""
insert into analytics_history.{snapshot} (
    organisation, job_key, id, {", ".join(FIELDS[table])}, additional_fields, listed_at,
    dbt_scd_id, dbt_updated_at, dbt_valid_from, dbt_valid_to
)
select 'public_jobs', job_key, id, {_values([*FIELDS[table]])}, {OTHERS[table]}, {_night(first)},
    md5(job_key || version), {_build(first)}, {_build(first)}, {_build(end)}
from (select *, {version} as version from life cross join texts where {kept}) as versions;
"""
        for snapshot, table in {"job_history": "jobs", "job_detail_history": "job_details"}.items()
        for version, first, end, kept in (
            (1, "opens", "edits", "edits > opens"),
            (2, "edits", "closes", f"closes <= {LAST}"),
        )
    )
    return f"""{_life(jobs)}{current}{versions}
insert into analytics_history.publication_history (
    organisation, job_key, id, public_id, opened_after, first_seen_at, last_seen_at, is_published,
    listed_at, dbt_scd_id, dbt_updated_at, dbt_valid_from, dbt_valid_to
)
select 'public_jobs', job_key, id, 'public-' || i,
    case when opens > 0 then {_night("opens - 1")} end, {_night("opens")}, {_night("opens")}, true,
    {_night("opens")}, md5(job_key || ' open'), {_build("opens")}, {_build("opens")},
    {_build("closes")}
from life where closes <= {LAST};
insert into analytics_history.listing_history (
    organisation, listing_key, listed_at, dbt_scd_id, dbt_updated_at, dbt_valid_from
)
select 'public_jobs', 'public_jobs ' || {_night("night")}, {_night("night")},
    md5('listing' || night), {_build("night")}, {_build("night")}
from generate_series(0, {LAST - 1}) as t(night);
"""


def one_more_night() -> str:
    """Return statements for the sync of another night, with a hundredth of the jobs changed."""
    listed = f"unpublished_at is null and last_seen_at = {_night(str(LAST))}"
    return f"""
update public_jobs.job_publications set last_seen_at = {_night(str(DAYS))}
where {listed} and id not like '%77';
update public_jobs.job_publications set unpublished_at = {_night(str(DAYS))} where {listed};
update public_jobs.jobs set job_title = job_title || '*' where id like '%33';
update public_jobs.job_details set role_overview = role_overview || '*' where id like '%33';
"""


def _life(jobs: int) -> str:
    """From which night until which each job is open, and when it is edited; and 100,000 characters.

    Half of them are words, so that they compress as HTML does.
    """
    place = f"cast(floor(i * {DAYS + LIFE - 1}.0 / {jobs}) as integer)"
    return f"""
create temporary table life as
select *, least(opens + {EDITED_AFTER}, closes - 1, {LAST}) as edits
from (
    select i, 'job-' || i as id, 'public_jobs/job-' || i as job_key,
        greatest({place} - {LIFE - 1}, 0) as opens, {place} + 1 as closes
    from generate_series(0, {jobs - 1}) as t(i)
) as placed;
create temporary table texts as
select string_agg(
    '<li>Experience with ' || md5('line' || j) || ' and a team that cares</li> ', '' order by j
) as lines
from generate_series(1, 1250) as t(j);
"""


def _night(number: str) -> str:
    return f"(timestamp '2024-11-01 04:00:00' + ({number}) * interval '1 day')"


def _build(number: str) -> str:
    return f"({_night(number)} + interval '1 hour')"


def _values(columns: list[str]) -> str:
    return ", ".join(f"{VALUES.get(name, repr(name))} as {name}" for name in columns)
