"""What analysts read after nine weeks, held against what happened in the portal.

And after jobs are missing, or states or tables are lost, stopped halfway, or older than the
warehouse. A field has one history whether or not it has a column, and none if it is ignored.
And what users set: their own project, and organisations.
"""

import copy
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from e2e.pipeline import REPOSITORY, installed, run
from e2e.scenario import FIELDS
from e2e.stores import Row
from harness import catalog_of
from public_jobs_pipeline import digest
from public_jobs_pipeline.tables import opened as opened_for_reading
from public_jobs_sandbox.postings import make_jobs
from queries.pages import KNOWN, MONDAY, ON_PAGES, QUESTION, Asked, Shown
from support.expected import MODELS, TABLES, History, assert_holds, assert_same
from support.portal import (
    FIRST_DAY,
    HISTORY_ALONE,
    IN_DUCKDB,
    IN_POSTGRESQL,
    INCREMENTS,
    KINDS,
    TRANSFORM,
    WITHOUT_TESTS,
    Builds,
    DuckDB,
    Portal,
    Postgres,
    Warehouse,
    WithDbt2,
    first_day,
    new_warehouse,
    opened,
)

from dev.benchmarks import years

ENDS = ("in_force_from", "in_force_until")
HISTORY = ("publication_history", "job_history", "job_detail_history", "listing_history")
COMMENTS = """(
    select attname as name, description as comment
    from pg_class
    inner join pg_attribute on attrelid = oid
    inner join pg_description on objoid = oid and objsubid = attnum
    where relname = '{}'
) as comments"""

pytestmark = pytest.mark.e2e


def night(portal: Portal, *arguments: str) -> None:
    """Sync, and record what was loaded."""
    portal.sync()
    portal.build(*(arguments or HISTORY_ALONE))


def nine_days(portal: Portal) -> None:
    """All that can happen to a job, and to a run."""
    first_day(portal)
    remembered = portal.state

    portal.day(2)
    portal.edit(3, jobTitle="Retitled", minSalary=50_000, maxSalary=70_000.25)
    portal.edit(4, roleOverview="Only the detail has changed.", yearsExperience=7)
    new, brief = make_jobs(2, seed=99)
    portal.publish(new)
    portal.publish(brief)
    night(portal)

    portal.day(3)
    portal.unpublish(5)
    portal.unpublish(6)
    portal.sandbox.unpublish(brief["publicId"])
    portal.edit(0, salaryPeriod="month", department="Moved")
    night(portal, *INCREMENTS)
    # As if both runs had been killed after the warehouse had their rows: the tap repeats what it
    # does not remember, with other times.
    portal.state = remembered

    portal.day(5)
    portal.edit(5, jobTitle="Back again", requiredSkills=["patience"])
    portal.publish(5)
    portal.publish(brief | {"id": "reposted", "publicId": "reposted"})
    portal.edit(2, **{'odd "name"/~.': "text now"}, note="", maxSalary=2 * 10**15)
    portal.sync()
    portal.listings[-1].remembered = portal.listings[0].time
    portal.build(*HISTORY_ALONE)

    # Nobody builds on this day: the job is closed and published again from one build to the next.
    portal.day(6)
    portal.unpublish(7)
    portal.sync()
    portal.day(7)
    portal.publish(7)
    night(portal, *INCREMENTS)

    # The state is lost: nobody closes the job in job_publications, and all others start anew.
    portal.day(8)
    portal.unpublish(8)
    portal.state = None
    night(portal)

    portal.day(9)
    portal.publish(8)
    portal.edit(3, minSalary=55_000, currency="CHF")
    portal.edit(9, knockoutQuestions=[])
    night(portal, *INCREMENTS)


def three_mondays(portal: Portal) -> None:
    """A sync seldom enough that weeks have no listing, and the last one in the next year."""
    new = [job | {"department": "Logistics"} for job in make_jobs(3, seed=37)]
    portal.day(37)
    for job in new:
        portal.publish(job | {"minSalary": 0, "maxSalary": 0})
    night(portal)

    portal.day(44)
    for job in new[:2]:
        portal.sandbox.unpublish(job["publicId"])
    portal.unpublish(5)
    portal.unpublish(7)
    portal.sync()

    portal.day(65)
    for job in make_jobs(2, seed=65):
        portal.publish(job)
    portal.sandbox.edit(new[2]["publicId"], minSalary=40_000)
    portal.edit(1, maxSalary=64_050)
    portal.edit(3, minSalary=57_750, maxSalary=77_000)
    portal.sync()


def played(warehouse: Warehouse) -> Iterator[Portal]:
    """An organisation up to the last load."""
    with opened(warehouse) as portal:
        nine_days(portal)
        three_mondays(portal)
        yield portal


@pytest.fixture(scope="module")
def in_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    yield from played(DuckDB(tmp_path_factory.mktemp("played")))


@pytest.fixture(scope="module")
def in_postgresql(
    tmp_path_factory: pytest.TempPathFactory, new_database: Callable[[], str]
) -> Iterator[Portal]:
    yield from played(Postgres(tmp_path_factory.mktemp("played"), new_database()))


@pytest.fixture(scope="module", params=[*KINDS, pytest.param("dbt 2", marks=IN_DUCKDB)])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Portal:
    """The same after the last build."""
    if request.param == "PostgreSQL":
        portal: Portal = request.getfixturevalue("in_postgresql")
    else:
        portal = request.getfixturevalue("in_duckdb")
        folder = tmp_path_factory.mktemp("finished")
        shutil.copytree(portal.warehouse.folder, folder, dirs_exist_ok=True)
        warehouse = DuckDB(folder) if request.param == "DuckDB" else WithDbt2(folder)
        portal = replace(portal, warehouse=warehouse, listings=copy.deepcopy(portal.listings))
    # With the unit tests, which no other build here runs, and all data tests.
    status, output = portal.warehouse.dbt("build")
    assert status == 0, output
    file = portal.warehouse.folder / "dbt" / "run_results.json"
    results = json.loads(file.read_text("utf-8"))
    # There is nothing to do for the dashboard, which dbt knows as an exposure.
    assert {it["status"] for it in results["results"]} <= {"success", "pass", "no-op"}
    portal.listings[-1].built = True
    return portal


@pytest.mark.parametrize("table", TABLES)
def test_a_final_table_is_what_happened(finished: Portal, table: str) -> None:
    history = History(finished.listings)
    assert history.rows(table)
    assert_holds(finished.warehouse, table, history)


def readable(warehouse: Builds) -> str:
    """What the program of a project opens."""
    return str(warehouse.file) if isinstance(warehouse, DuckDB) else warehouse.address


# The page calls this to run the command line of DuckDB.
UVX = """#!/bin/sh
[ "$1 $2" = "--from duckdb-cli" ] && shift 2 && exec {}/"$@"
"""
READ = {
    "versions": "read_parquet('output/archive/versions/*/*.parquet', hive_partitioning = true)",
    "versions.csv": "read_csv('output/archive/versions.csv')",
    "periods.csv": "read_csv('output/archive/periods.csv')",
}


@pytest.mark.parametrize("finished", KINDS, indirect=True)
def test_the_page_on_archives_writes_each_version_and_keeps_it(
    finished: Portal, tmp_path: Path
) -> None:
    """Also of jobs that have left the warehouse, and by git what a file was before."""
    page = (REPOSITORY / "docs/operate/after-sync.md").read_text("utf-8")
    section = page.partition("\n## Archive: ")[2]
    duckdb, postgres, keep, _ = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    is_file = isinstance(finished.warehouse, DuckDB)
    (tmp_path / "output").mkdir()
    if isinstance(finished.warehouse, DuckDB):
        shutil.copy(finished.warehouse.file, tmp_path / "output/warehouse-copy.duckdb")
    url = finished.warehouse.address.replace("postgresql:", "postgresql+psycopg:")
    (tmp_path / ".env").write_text(f"TARGET_POSTGRES_SQLALCHEMY_URL={url}\n", "utf-8")
    (tmp_path / "bin").mkdir()
    command_line = installed("duckdb-cli")
    (tmp_path / "bin/uvx").write_text(UVX.format(command_line), "utf-8")
    (tmp_path / "bin/uvx").chmod(0o755)
    me = {
        f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }

    def sh(script: str) -> str:
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        command = ("sh", "-euc", script)
        return run(*command, folder=tmp_path, PATH=path, **me).succeeded().output

    def kept(name: str) -> list[dict[str, Any]]:
        query = f"copy (select * from {READ[name]}) to 'read.json' (array true)"  # noqa: S608
        sh(f'{command_line}/duckdb -c "{query}"')
        return list(json.loads((tmp_path / "read.json").read_text("utf-8")))

    write = duckdb if is_file else postgres
    sh(write + keep)
    names = ("job_key", "version", "job_title", "role_overview", "max_salary", "additional_fields")

    def shown(rows: list[dict[str, Any]]) -> list[list[Any]]:
        values = ([row[name] for name in names] for row in rows)
        return sorted(
            [float(it) if it.__class__ in (int, Decimal) else it for it in of] for of in values
        )

    versions = finished.warehouse.rows("analytics.job_versions")
    assert len(versions) > len({it["job_key"] for it in versions}) > 1
    assert shown(kept("versions" if is_file else "versions.csv")) == shown(versions)
    periods = finished.warehouse.rows("analytics.job_periods")
    assert {(it["job_key"], it["period"]) for it in kept("periods.csv")} == {
        (it["job_key"], it["period"]) for it in periods
    }
    # What has not changed is the same file, and the one before a change stays in git.
    sh(write + keep)
    git = "git -C output/archive"
    assert sh(f"{git} rev-list --count HEAD") == "1\n"
    (tmp_path / "output/archive/periods.csv").write_text("spoilt", "utf-8")
    sh(keep)
    sh(write + keep)
    assert sh(f"{git} show HEAD~1:periods.csv") == "spoilt"
    assert sh(f"{git} diff --stat HEAD~2") == ""


def test_a_digest_has_what_happened_after_the_last_one(finished: Portal) -> None:
    times = [it.time for it in finished.listings]
    middle = times[len(times) // 2]
    since, until = {"public_jobs": middle}, {"public_jobs": times[-1]}

    with opened_for_reading(readable(finished.warehouse)) as run:
        assert digest.listings(run, "analytics") == {"public_jobs": times}
        found = digest.read(run, "analytics", since, until)

    events = {(it["event"], it["time"], it["title"]) for it in found.events}
    assert {event for event, _, _ in events} >= {"opened", "closed", "repriced"}
    assert events == {
        (it["event"], it["happened_by"], it["job_title"] or it["public_id"])
        for it in History(finished.listings).rows("job_events")
        if it["event"] in digest.EVENTS and it["happened_by"] > middle
    }


def test_history_is_dated_in_utc(finished: Portal) -> None:
    """The last build was within the hour, in which no other zone has the same time."""
    rows = finished.warehouse.rows(f"analytics_history.{HISTORY[-1]}")
    latest = max(it["dbt_valid_from"] for it in rows)
    assert timedelta() < datetime.now(UTC).replace(tzinfo=None) - latest < timedelta(hours=1)


@pytest.mark.parametrize("table", MODELS)
def test_the_database_has_the_descriptions_as_comments(finished: Portal, table: str) -> None:
    rows = finished.warehouse.rows(COMMENTS.format(table))
    comments = {row["name"]: row["comment"] for row in rows}
    assert comments == {
        column["name"]: column["description"] for column in MODELS[table]["columns"]
    }


@pytest.mark.parametrize("asked", ON_PAGES, ids=str)
def test_a_query_of_a_page_has_an_answer(finished: Portal, asked: Asked) -> None:
    rows = finished.warehouse.rows(f"({asked.query}) as answer")
    # Nobody has written a rule.
    assert rows or "from analytics.posting_checks" in asked.query


@pytest.fixture(scope="module")
def shown(finished: Portal) -> Shown:
    return Shown(finished.listings)


@pytest.mark.parametrize("heading", KNOWN)
def test_the_first_columns_of_an_answer_are_what_happened(
    finished: Portal, shown: Shown, heading: str
) -> None:
    expected = KNOWN[heading](shown)
    width = len(next(iter(expected)))
    rows = finished.warehouse.rows(f"({QUESTION[heading]}) as answer")

    assert len(rows) == len(expected)
    assert {tuple(map(rounded, [*row.values()][:width])) for row in rows} == {
        tuple(map(rounded, row)) for row in expected
    }


def rounded(value: Any) -> Any:
    return round(float(value), 9) if isinstance(value, float | Decimal) else value


@pytest.mark.parametrize("finished", KINDS[1:], indirect=True)
def test_a_build_waits_long_neither_for_a_lock_nor_for_a_join(finished: Portal) -> None:
    """Others who read the table would wait behind it."""
    options = ("--select", "public_jobs__open_jobs", *WITHOUT_TESTS)
    with psycopg.connect(finished.warehouse.address) as analyst:
        analyst.execute("select from analytics.open_jobs")
        waits = ("--vars", "lock_timeout: 200ms")
        status, output = finished.warehouse.dbt("build", *options, *waits)
    assert status == 1
    assert "canceling statement due to lock timeout" in output
    finished.warehouse.build(*options)
    # Nor for a join of whole tables that PostgreSQL takes for small ones.
    log = (finished.warehouse.folder / "dbt" / "dbt.log").read_text("utf-8")
    before_the_table = log.rpartition("create  table")[0]
    of_the_table = before_the_table.rpartition("BEGIN")[2]
    assert (
        "set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true)" in of_the_table
    )


def as_shown(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float | Decimal):
        return f"{float(value):.8g}"
    return "" if value is None else str(value)


@pytest.mark.parametrize("asked", MONDAY, ids=str)
def test_a_question_for_monday_has_the_answer_of_the_page(finished: Portal, asked: Asked) -> None:
    rows = finished.warehouse.rows(f"({asked.query}) as answer")
    answer = [[*rows[0]], *([as_shown(value) for value in row.values()] for row in rows)]
    heading, _, *shown = asked.table.splitlines()
    assert answer == [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (heading, *shown)
    ]


def test_a_second_build_grants_again_and_changes_nothing(finished: Portal) -> None:
    """It makes the tables anew, without the grants of the build before. DuckDB has none."""
    tables = [
        *(f"analytics.{name}" for name in MODELS),
        *(f"analytics_history.{name}" for name in HISTORY),
    ]
    readers = ("pg_monitor", "pg_read_all_stats")  # roles that every server has

    def content() -> dict[str, list[Any]]:
        return {name: sorted(map(repr, finished.warehouse.rows(name))) for name in tables}

    before = content()
    finished.warehouse.build(*WITHOUT_TESTS, "--vars", json.dumps({"grants": ",".join(readers)}))
    assert content() == before
    if isinstance(finished.warehouse, DuckDB):
        return
    of_reading = "information_schema.role_table_grants where privilege_type = 'SELECT'"
    grants = finished.warehouse.rows(of_reading)
    granted = {(it["grantee"], it["table_schema"], it["table_name"]) for it in grants}
    for table in (*MODELS, "locations", "departments", "posting_rules"):
        assert granted >= {(reader, "analytics", table) for reader in readers}


@pytest.fixture(params=KINDS)
def warehouse(
    request: pytest.FixtureRequest, tmp_path: Path, new_database: Callable[[], str]
) -> Warehouse:
    """An empty warehouse of each kind, one after the other."""
    return new_warehouse(request.param, tmp_path, new_database)


@pytest.fixture
def portal(warehouse: Warehouse) -> Iterator[Portal]:
    """An organisation with twelve jobs, which is loaded into that warehouse."""
    with opened(warehouse) as portal:
        yield portal


FIRST = FIRST_DAY.replace(tzinfo=None)


def test_a_job_that_no_listing_shows_any_more(portal: Portal, warehouse: Warehouse) -> None:
    """Four such jobs have the same row at first; later rows show what they were.

    The first was missing and is listed again, also after the state was lost, as the second is; the
    third was missing and is closed. The fourth is missing when the state is lost, and from the next
    listing too, so it may have closed; it is published after another loss. A fifth one opens then,
    whose detail is not loaded yet.
    """
    portal.sync()
    keys = [it.job["id"] for it in portal.sandbox.organisation.published()][:4]
    back, kept, closed, reopened = keys
    native = "json" if isinstance(warehouse, DuckDB) else "jsonb using knockout_questions::jsonb"
    column = f"knockout_questions type {native}"
    warehouse.run(f"alter table public_jobs.job_details alter column {column}")
    portal.build(*HISTORY_ALONE)

    def listed(number: int, *unlisted: str, state_is_lost: bool = False) -> datetime:
        time = FIRST + timedelta(days=number - 1)
        # A counter that only the list has is no content of a job.
        warehouse.run(f"update public_jobs.jobs set additional_fields = '{{\"seen\": {number}}}'")  # noqa: S608
        others = ", ".join(f"'{key}'" for key in ("", *unlisted))
        anew = f", first_seen_at = timestamp '{time}', opened_after = null" if state_is_lost else ""
        write(
            f"last_seen_at = timestamp '{time}'{anew}",
            f"unpublished_at is null and id not in ({others})",
        )
        return time

    def write(values: str, where: str) -> None:
        warehouse.run(f"update public_jobs.job_publications set {values} where {where}")  # noqa: S608

    def periods() -> set[tuple[Any, ...]]:
        names = ("id", "opened_after", "shown_from", "closed_after", "closed_by")
        rows = warehouse.rows("analytics.job_periods")
        return {tuple(row[name] for name in names) for row in rows if row["id"] in keys}

    second = listed(2, *keys)
    portal.build(*WITHOUT_TESTS)
    assert periods() == {(key, None, FIRST, FIRST, second) for key in keys}
    asked = {
        row["id"]
        for row in warehouse.rows("analytics.field_values")
        if row["field"] == "knockout_questions"
    }
    assert asked
    assert asked.isdisjoint(keys)

    third = listed(3, kept, closed, reopened)
    write(f"unpublished_at = timestamp '{third}'", f"id = '{closed}'")
    portal.build(*HISTORY_ALONE)
    fourth = listed(4, reopened, state_is_lost=True)
    warehouse.run(f"delete from public_jobs.job_details where id = '{kept}'")  # noqa: S608
    portal.build(*HISTORY_ALONE)
    fifth = listed(5, state_is_lost=True)
    warehouse.run(
        "insert into public_jobs.jobs (id, public_id, job_title) values ('bare', 'bare', 'Bare')"
    )
    columns = "id, public_id, opened_after, first_seen_at, last_seen_at"
    values = f"'bare', 'bare', timestamp '{fourth}', timestamp '{fifth}', timestamp '{fifth}'"
    warehouse.run(f"insert into public_jobs.job_publications ({columns}) values ({values})")  # noqa: S608
    portal.build()
    assert periods() == {
        (back, None, FIRST, None, None),
        (kept, None, FIRST, None, None),
        (closed, None, FIRST, FIRST, third),
        (reopened, None, FIRST, FIRST, second),
        (reopened, fourth, fifth, None, None),
    }
    (row,) = (it for it in warehouse.rows("analytics.open_jobs") if it["id"] == "bare")
    assert (row["job_title"], row["role_overview"]) == ("Bare", None)
    assert len(warehouse.rows("analytics.job_versions")) == len(portal.listings[0].jobs) + 1
    assert "seen" not in {it["field"] for it in warehouse.rows("analytics.fields")}
    events = warehouse.rows("analytics.job_events")
    names = ("id", "event", "happened_by", "step")
    assert {tuple(it[name] for name in names) for it in events if it["event"] != "found"} == {
        (back, "not closed", third, 0),
        (kept, "not closed", fourth, 0),
        (closed, "closed", third, -1),
        (reopened, "closed", second, -1),
        (reopened, "reopened", fifth, 1),
        ("bare", "opened", fifth, 1),
    }
    names = ("outcome", "missing_jobs", "missing_details", "missing_since")
    nights = sorted(warehouse.rows("analytics.nights"), key=lambda row: row["day"])
    assert [tuple(row[name] for name in names) for row in nights] == [
        ("complete", 0, 0, None),
        ("gaps", 4, 0, second),
        ("gaps", 2, 0, second),
        ("gaps", 0, 1, second),
        ("gaps", 0, 2, second),
    ]


def edits(events: list[Row]) -> list[Row]:
    """Those events that are no opening or closing."""
    return [it for it in events if it["step"] == 0]


def test_history_outlives_the_raw_tables(portal: Portal, warehouse: Warehouse) -> None:
    """Periods go on, changes are found, and a job that has left without a trace is closed."""
    leaves, *_ = (it.job["id"] for it in portal.sandbox.organisation.published())
    night(portal)

    portal.day(3)
    portal.unpublish(0)
    portal.edit(1, jobTitle="Retitled")
    warehouse.run("drop schema public_jobs cascade")
    portal.state = None
    portal.sync()
    before = datetime.now(UTC).replace(tzinfo=None)
    portal.build()
    after = datetime.now(UTC).replace(tzinfo=None)

    history = History(portal.listings)
    for table in ("open_jobs", "open_jobs_by_day", "job_versions"):
        assert_holds(warehouse, table, history)
    changes = edits(warehouse.rows("analytics.job_events"))
    assert_same(changes, edits(history.rows("job_events")))
    (closed,) = (it for it in warehouse.rows("analytics.job_periods") if not it["is_open"])
    assert (closed["id"], closed["opened_after"]) == (leaves, None)
    assert closed["shown_from"] == closed["closed_after"] == FIRST
    assert before < closed["closed_by"] < after  # there is no listing to name
    assert closed["closed_on"] == portal.now.date()


def test_the_page_on_personal_data_erases_texts_and_keeps_dates(
    portal: Portal, warehouse: Warehouse
) -> None:
    """Those of a job that closed before; nothing of a published one."""
    page = (REPOSITORY / "docs/operate/personal-data.md").read_text("utf-8")
    recipe = page.partition("-- erase.sql\n")[2].partition("```")[0]
    closed, *_ = (it.job["id"] for it in portal.sandbox.organisation.published())
    night(portal)
    portal.day(2)
    portal.edit(1, jobTitle="Retitled")
    portal.unpublish(0)
    portal.sync()
    portal.build(*WITHOUT_TESTS)

    warehouse.run(recipe.replace("- 1096", "+ 1"))
    portal.build("--full-refresh")

    changes = edits(warehouse.rows("analytics.job_events"))
    assert [row["job_title"] for row in changes] == ["Retitled"]
    assert closed not in {row["id"] for row in warehouse.rows("analytics.job_versions")}
    erased = [it for it in warehouse.rows("analytics.jobs_ever") if it["job_title"] is None]
    assert [(it["id"], it["is_open"]) for it in erased] == [(closed, False)]
    assert erased[0]["closed_by"] == FIRST + timedelta(days=1)


def test_a_build_that_cannot_be_says_what_to_do(portal: Portal, warehouse: Warehouse) -> None:
    def refused(*command: str) -> str:
        status, output = warehouse.dbt(*command)
        assert status in {1, 2}, output
        assert "Compilation Error" in output
        assert "Database Error" not in output
        return output

    zone = refused("build", "--vars", "time_zone: Europe/Berlni")
    assert "No table was built: no time zone is called Europe/Berlni. Set the variable" in zone

    nothing = refused("build")
    assert (
        "There is no table job_publications in public_jobs: run the tap with its loader" in nothing
    )

    snake_case = portal.config.pop("column_naming")
    portal.sync()
    named = refused("build")
    assert "lacks public_id, opened_after, first_seen_at, last_seen_at, unpublished_at" in named
    assert "column_naming: snake_case" in named

    warehouse.run("drop schema public_jobs cascade")
    portal.config["column_naming"], portal.state = snake_case, None
    portal.sync()
    assert "There is no history yet. `dbt build` records it" in refused("run")


CHANGED = ("job_periods", "job_versions", "job_events", "fields")
CHANGES = ("--select", *(f"+public_jobs__{it}" for it in CHANGED), *WITHOUT_TESTS)
# The number of a version, which is in keys, and what a build says after half an edit.
OF_A_HALF = ("version", "version_key", "event_key")


def test_a_target_that_died_in_any_stream_leaves_half_an_edit_at_most(
    portal: Portal, warehouse: Warehouse
) -> None:
    """Each day it dies first, a build records that, and a minute later all is loaded.

    Times may be those of the listings that were loaded by half, a minute before. A job may have one
    more version from there to the next listing, its new summary with its old detail. One that was
    not written counts as missing until then, and as not closed.
    """
    for job in make_jobs(8, seed=7):
        portal.publish(job)
    portal.sync()
    portal.build(*INCREMENTS)
    minute_later: dict[Any, datetime] = {}
    for day, stream in enumerate(("jobs", "job_publications", "job_details"), 2):
        portal.day(day)
        for number in range(day, 18, 4):
            portal.edit(number, jobTitle=f"Edited on day {day}", yearsExperience=day)
        portal.edit(day + 3, roleOverview=f"Only the detail of day {day}.", **{f"new{day}": day})
        portal.edit(day + 7, department=f"Moved on day {day}")
        portal.unpublish(day + 10)
        portal.publish(make_jobs(1, seed=day)[0])
        if stream == "jobs":
            warehouse.run("delete from public_jobs.jobs")  # as targets that overwrite a table do
        portal.sync_until(stream)
        warehouse.build(*INCREMENTS)

        stopped = portal.now
        portal.now += timedelta(minutes=1)
        minute_later[stopped.replace(tzinfo=None)] = portal.now.replace(tzinfo=None)
        portal.sync()
        portal.build(*INCREMENTS)

    warehouse.build(*CHANGES)
    history = History(portal.listings)
    returns = {("not closed", it) for it in minute_later.values()}

    def without_halves(rows: list[Row]) -> list[Row]:
        return [{name: it for name, it in row.items() if name not in OF_A_HALF} for row in rows]

    for table in CHANGED:
        rows: list[Row] = [
            {name: minute_later.get(value, value) for name, value in row.items()}
            for row in warehouse.rows(f"analytics.{table}")
        ]
        lasting = [
            it
            for it in rows
            if it.get("in_force_from", 0) != it.get("in_force_until")
            and (it.get("event"), it.get("happened_by")) not in returns
        ]
        assert_same(without_halves(lasting), without_halves(history.rows(table)))
        if table == "job_versions":
            # In force for this minute alone: half of an edit.
            halves = [it for it in rows if it not in lasting]
            assert {it["in_force_from"] for it in halves} == set(list(minute_later.values())[1:])
            for half in halves:
                of_job = [it for it in lasting if it["id"] == half["id"]]
                (old,) = (it for it in of_job if it["in_force_until"] == half["in_force_from"])
                (new,) = (it for it in of_job if it["in_force_from"] == half["in_force_from"])
                for name in FIELDS["job_details"].values():
                    assert half[name] == (new if name in FIELDS["jobs"].values() else old)[name]


COLUMNS = {
    "salary_period": {"type": ["string", "null"]},
    "required_skills": {"type": ["array", "null"], "items": {"type": "string"}},
}
IGNORED = ("--vars", json.dumps({"ignored_fields": ["viewCount", "jobUrl"]}))


def test_a_column_of_its_own_changes_no_answer(portal: Portal, warehouse: Warehouse) -> None:
    """Salaries of different periods stay apart, and a field does not seem to vanish.

    A counter and a URL that are others in every answer would copy every row, and do not seem to
    vanish either when they are ignored from the second build on. The tap has run for a week before
    the first build.
    """
    for number in range(12):
        portal.edit(number, viewCount=1, salaryPeriod="year")
    for number, period in enumerate(["year", "hour", "year"]):
        portal.edit(number, salaryPeriod=period, seniorityLevel="senior", currency="EUR")
    portal.edit(3, requiredSkills=["patience"])
    portal.day(-6)
    portal.sync()
    portal.day(1)
    portal.sync()
    portal.build(*HISTORY_ALONE)
    portal.build(*HISTORY_ALONE, *IGNORED)

    portal.day(2)
    for number in range(12):
        portal.edit(number, viewCount=2, jobUrl=f"https://example.com/{number}?signature=2")
    portal.sync()
    portal.build(*HISTORY_ALONE, *IGNORED)
    for table in ("job_history", "job_detail_history"):
        assert len(warehouse.rows(f"analytics_history.{table}")) == 2 * 12

    # As Meltano's `schema` extra does.
    portal.catalog = catalog_of(portal.config)
    (entry,) = (it for it in portal.catalog["streams"] if it["tap_stream_id"] == "job_details")
    entry["schema"]["properties"] |= COLUMNS
    portal.day(3)
    portal.edit(2, salaryPeriod="month")
    portal.edit(3, requiredSkills=["patience", 'a "quoted" one'])
    portal.sync()
    portal.build(*IGNORED)

    assert "salary_period" in warehouse.rows("public_jobs.job_details")[0]
    for listing in portal.listings:
        for job in listing.jobs.values():
            del job["viewCount"]
            job["jobUrl"] = None
    history = History(portal.listings)
    for table in TABLES:
        assert_holds(warehouse, table, history)


@IN_DUCKDB
def test_texts_of_real_lengths_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,003 jobs, in two nights; DuckDB 1.0.0 would run out of memory.

    Because it takes 256 KiB for each text of more than 4,096 bytes in the rows that a thread reads
    together, of which there are 2,048 at most: more jobs need no more, and more threads do.
    """
    warehouse = DuckDB(tmp_path)
    monkeypatch.setenv("PUBLIC_JOBS_DUCKDB_MEMORY", "400MB")
    monkeypatch.setenv("PUBLIC_JOBS_DUCKDB_THREADS", "16")
    shown = "select concat_ws(', ', current_setting('memory_limit'), current_setting('threads'))"
    assert "381.4 MiB, 16" in warehouse.dbt("show", "--inline", shown)[1]

    warehouse.run(years.raw_tables(13_000))
    warehouse.build(*HISTORY_ALONE)
    warehouse.run(years.one_more_night())
    warehouse.build(*WITHOUT_TESTS)

    # All edits of the second night, and whole texts.
    edited = warehouse.rows("(select id from public_jobs.job_details where id like '%33') as it")
    changes = warehouse.rows("analytics.job_events")
    assert edited
    assert {it["id"] for it in changes if it["field"] == "role_overview"} == {
        it["id"] for it in edited
    }
    lengths = {len(it["role_overview"] or "") for it in warehouse.rows("analytics.open_jobs")}
    assert min(lengths) == 0
    assert max(lengths) > 29_000  # blanks at its end are cut


READER = "pg_monitor"  # a role that every server has
SET = {
    "schemas": ["acme"],
    "table_names": {"jobs": "summaries"},
    "salary_period_field": "paidPer",
    "extra_fields": ["paidPer", "requiredSkills", "city", "updatedAt", "paidPer", "paid_per"],
    "locations": ["my_project", "locations"],
    "departments": ["my_project", "departments"],
    "posting_rules": ["my_project", "posting_rules"],
}
PROJECT = {
    "name": "my_project",
    "profile": "public_jobs",
    "vars": {"public_jobs": SET},
    "models": {
        "public_jobs": {"marts": {"+schema": "recruiting", "+grants": {"select": [READER]}}}
    },
    "snapshots": {"public_jobs": {"+schema": "kept"}},
}
MISSPELT = {
    "public_jobs": SET | {"departmens": [], "table_names": {"job": "summaries"}},
    "public-jobs": {"time_zone": "UTC"},
    "mine": {"time_zone": "UTC"},
}
# Names of the package's tables, which the project has, too.
MINE = ("stg_publications", "published_jobs", "nights", "open_jobs")
SESSION = """
{{ config(materialized='table') }}
-- depends_on: {{ ref('public_jobs', 'public_jobs__open_jobs') }}
select
    current_setting('TimeZone') as zone,
    {{ "current_setting('lock_timeout')" if target.type == 'postgres' else "'0'" }} as "limit"
"""
RULES = """\
rule,place,valid_from,pay_required,widest_range,range_period,currency
mine,bern,2026-11-01,true,20000,,
"""
SUMMARIES = "create or replace view acme.summaries as select * from acme.jobs"


def taking_the_package(folder: Path) -> Path:
    """A project that takes the package from git, with models and a seed of its own."""
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", "-C", str(folder)]
    shutil.copytree(TRANSFORM, folder / "pipeline" / "transform")
    for arguments in (["init", "-q"], ["add", "pipeline"], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *arguments], check=True)
    packages = {"packages": [{"git": str(folder), "subdirectory": "pipeline/transform"}]}
    project = folder / "my_project"
    for name, content in {
        **{f"models/{name}.sql": f"select '{name}' as mine" for name in MINE},
        "models/session.sql": SESSION,
        "dbt_project.yml": json.dumps(PROJECT),
        "packages.yml": json.dumps(packages),
        "seeds/locations.csv": "location,city,country,is_remote\nSomewhere,Bern,CH,true\n",
        "seeds/departments.csv": "department,shown_as\nKitchen,Food\n",
        "seeds/posting_rules.csv": RULES,
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content, "utf-8")
    return project


@IN_POSTGRESQL
def test_a_setting_has_its_effect_in_the_next_build_and_back(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a project that stays, whose parse dbt keeps. A role is a name, whatever it has."""
    warehouse = Postgres(tmp_path, new_database(), project=tmp_path / "project")
    warehouse.project.mkdir()
    packages = {"packages": [{"local": str(TRANSFORM)}]}
    (warehouse.project / "packages.yml").write_text(json.dumps(packages), "utf-8")
    settings = warehouse.project / "dbt_project.yml"
    roles = {"Analyst", "bi-tool"}
    with psycopg.connect(warehouse.address, autocommit=True) as connection:
        for name in (*roles, "analyst"):
            exists = connection.execute(
                "select from pg_roles where rolname = %s", [name]
            ).fetchone()
            if exists is None:
                connection.execute(f'create role "{name}"'.encode())

    def write(**variables: str) -> None:
        given = {"name": "my_project", "profile": "public_jobs", "vars": variables}
        settings.write_text(json.dumps(given), "utf-8")

    def build(time_zone: str = "UTC", *, fails: bool = False, **variables: str) -> str:
        write(time_zone=time_zone)
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(f"PUBLIC_JOBS_{name}", value)
            select = ("--select", "+public_jobs__nights", "package:public_jobs,resource_type:seed")
            status, output = warehouse.dbt("build", *select, *WITHOUT_TESTS)
        assert (status != 0) is fails, output
        return output

    def readers(table: str) -> set[str]:
        grants = warehouse.rows("information_schema.role_table_grants")
        of_table = {it["grantee"] for it in grants if it["table_name"] == table}
        return of_table - {"postgres"}

    def day(schema: str = "analytics") -> str:
        (row,) = warehouse.rows(f"{schema}.nights")
        return str(row["day"])

    with opened(warehouse) as portal:
        portal.sync()
    write()
    assert warehouse.dbt("deps")[0] == 0
    build(ANALYTICS="elsewhere")
    assert (readers("nights"), day("elsewhere")) == (set(), "2026-11-01")
    build("Pacific/Honolulu", GRANTS="Analyst, bi-tool")
    assert (readers("nights"), readers("departments"), day()) == (roles, roles, "2026-10-31")
    build(GRANTS="bi-tool")
    one = {"bi-tool"}
    assert (readers("nights"), readers("departments"), day()) == (one, one, "2026-11-01")
    assert "in acme: run the tap" in build(fails=True, SCHEMAS="acme")
    build()
    assert (readers("nights"), readers("departments")) == (set(), set())


def assert_misspelt_variables_are_named(warehouse: Warehouse) -> None:
    """Else the build would take what they leave out or rename as it is."""
    settings = warehouse.project / "dbt_project.yml"
    warehouse.dbt("deps")
    settings.write_text(json.dumps(PROJECT | {"vars": MISSPELT}), "utf-8")
    status, output = warehouse.dbt("build")
    assert status != 0
    assert "public_jobs has no variable departmens; the variables under public-jobs " in output
    assert " belong under public_jobs; table_names has job, which is none of jobs, " in output
    settings.write_text(json.dumps(PROJECT), "utf-8")


def assert_an_empty_build_is_refused(warehouse: Warehouse) -> None:
    history = warehouse.rows("analytics_kept.job_history")
    status, output = warehouse.dbt("build", "--empty")
    assert status != 0
    assert "--empty would close all jobs in the history" in output
    assert warehouse.rows("analytics_kept.job_history") == history


def test_the_project_of_a_user_takes_the_package(warehouse: Warehouse, tmp_path: Path) -> None:
    """With a schema, variables and a grant of the user's own, and models of the same names.

    A macro that cleans otherwise rewrites the tables, and no history. A department that is renamed
    is the same one, and a field hides no column of that name.
    """
    warehouse.project = taking_the_package(tmp_path)
    assert_misspelt_variables_are_named(warehouse)

    with opened(warehouse, "acme") as portal:
        fields = {"location": "Somewhere ", "paidPer": "hour", "city": "Genf", "updatedAt": "noon"}
        portal.edit(0, jobTitle="Cook", department="Kitchen ", minSalary=10, **fields)
        portal.sync()
        warehouse.run(SUMMARIES)
        status, output = warehouse.dbt("build")
        assert status == 0, output
        assert " WARN=0 ERROR=0 SKIP=0 " in output
        assert "WARNING" not in output
        # The package sets the session of its own nodes, and not that of the user's.
        assert warehouse.rows("analytics.session") == [{"zone": "America/New_York", "limit": "0"}]
        for name in MINE:
            assert warehouse.rows(f"analytics.{name}") == [{"mine": name}]

        macros = warehouse.project / "dbt_packages" / "public_jobs" / "macros" / "columns.sql"
        as_it_is = "{{ composed(as_it_is) }}"
        other = f"replace({as_it_is}, 'Cook', 'Chef')"
        macros.write_text(macros.read_text("utf-8").replace(as_it_is, other), "utf-8")
        portal.day(2)
        portal.edit(0, department="Food")
        portal.edit(1, jobTitle="Retitled")
        portal.sync()
        left_out = portal.listings[-1].jobs.popitem()[0]
        warehouse.run(f"{SUMMARIES} where id <> '{left_out}'")
        before = datetime.now(UTC).replace(tzinfo=None)
        assert "extra_fields has paid_per, which no job has" in portal.build(*WITHOUT_TESTS)

    new = [it for it in warehouse.rows("analytics_kept.job_history") if it["listed_at"].day == 2]
    assert sorted(it["job_title"] for it in new) == ["Cook", "Retitled"]
    assert before < new[-1]["dbt_valid_from"] < before + timedelta(hours=1)
    changes = edits(warehouse.rows("analytics_recruiting.job_events"))
    assert [it["new_value"] for it in changes] == ["Retitled"]
    jobs = {it["id"]: it for it in warehouse.rows("analytics_recruiting.open_jobs")}
    assert jobs[left_out]["job_title"]  # as it was last known
    (cook,) = (it for it in jobs.values() if it["city"])
    shown = {name: cook[name] for name in ("job_title", "department", "city", "salary_period")}
    assert [*shown.values()] == ["Chef", "Food", "Bern", "hour"]
    assert {
        (it["job_key"], it["rule"], it["finding"])
        for it in warehouse.rows("analytics_recruiting.posting_checks")
    } == {(cook["job_key"], "mine", "too wide")}
    skills = json.loads(cook["additional_fields"])["requiredSkills"]
    for table in ("open_jobs", "jobs_ever", "job_versions"):
        rows = warehouse.rows(f"analytics_recruiting.{table}")
        (row,) = (it for it in rows if it["id"] == cook["id"])
        assert (row["paid_per"], json.loads(row["required_skills"])) == ("hour", skills)
        assert (row["field_city"], row["field_updated_at"]) == ("Genf", "noon")
    # Where the project's own is too, so that queries need not know whose it is.
    assert [it["location"] for it in warehouse.rows("analytics.locations")] == ["Somewhere"]
    assert warehouse.listed_at().startswith("2026-11-02")
    assert_an_empty_build_is_refused(warehouse)
    if not isinstance(warehouse, DuckDB):
        may = f"has_table_privilege('{READER}', 'analytics_recruiting.open_jobs', 'select')"
        assert warehouse.rows(f"(select {may} as it) as found") == [{"it": True}]


SCHEMAS = ["acme", "globex", "initech"]


def test_each_organisation_has_its_own_jobs_and_its_own_latest_listing(
    warehouse: Warehouse,
) -> None:
    """The ids are the same in all three. One joins on the ninth day, when another is not synced.

    What one closes, another publishes under another id. That one closes all, and the other has
    closings that it has not.
    Freshness is that of the one that was listed least recently.
    """
    schemas = ("--vars", json.dumps({"schemas": SCHEMAS}))
    with ExitStack() as stack:
        acme, globex, initech = portals = [
            stack.enter_context(opened(warehouse, schema)) for schema in SCHEMAS
        ]
        initech.edit(2, department=None)
        for portal in (acme, initech):
            portal.sync()
            portal.listings[-1].built = True
        assert "globex is left out" in warehouse.build(*schemas, *WITHOUT_TESTS)

        # No build sees the brief one, so its department is not known.
        (brief,) = make_jobs(1, seed=5)
        acme.publish(brief)
        acme.day(5)
        acme.sync()
        closed = initech.sandbox.organisation.postings[initech.public_ids[0]].job
        for number in range(len(initech.public_ids)):
            initech.unpublish(number)
        initech.day(4)
        initech.sync_short()
        initech.day(5)
        initech.sync()

        acme.sandbox.unpublish(brief["publicId"])
        acme.unpublish(3)
        acme.publish(closed | {"id": "again", "publicId": "again"})
        acme.edit(1, jobTitle="Of one organisation", salaryPeriod="hour")
        initech.publish(1)  # not seen before its next sync
        for hour, portal in enumerate((acme, globex), 4):
            portal.day(9, hour)
            portal.sync()
        for portal in portals:
            portal.listings[-1].built = True
        said = warehouse.build(*schemas)

        # The one of initech, who was not synced again: no other organisation hides it.
        assert f"; initech was last listed at {initech.now:%Y-%m-%d %H:%M}\n" in said
        assert datetime.fromisoformat(warehouse.listed_at(*schemas)) == initech.now

        last_day = globex.listings[0].time.date()
        histories = [
            History(portal.listings, portal.schema, (last_day, last_day)) for portal in portals
        ]
    for table in TABLES:
        assert_holds(warehouse, table, *histories)

    # Its jobs are in history, and would all be closed.
    warehouse.run("drop schema globex cascade")
    status, output = warehouse.dbt("build", *schemas, "--select", "public_jobs__stg_publications")
    assert status == 1
    assert "history has jobs of globex: load them first" in output
