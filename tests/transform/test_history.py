"""What analysts read after nine weeks, held against what happened in the portal."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
import yaml
from public_jobs_sandbox.postings import make_jobs
from support.expected import MODELS, TABLES, History, assert_holds
from support.portal import Listing, Portal, first_day, opened
from support.warehouses import HISTORY_ALONE, TRANSFORM, WITHOUT_TESTS, DuckDB, Warehouse

from transform.columns import MARTS

UNIT_TESTS = yaml.safe_load(MARTS.with_name("unit_tests.yml").read_text("utf-8"))["unit_tests"]

HISTORY = ("publication_history", "job_history", "job_detail_history", "listing_history")
PAGES = TRANSFORM.parent / "docs"
QUERY = r"^```sql\n(.*?);\n```$"
EXAMPLES = re.findall(QUERY, (PAGES / "questions.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
# With the rows of the table that follows.
ANSWERED = re.findall(
    rf"{QUERY}\n\n.*?\n\| ---.*?\n(.*?)\n\n",
    (PAGES / "monday.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
# Queries of the comments in the database.
COMMENTS = {
    "dbt-duckdb": "select column_name as name, comment from duckdb_columns() "
    "where schema_name = 'analytics' and table_name = '{table}'",
    "dbt-postgres": "select attname as name, col_description(attrelid, attnum) as comment "
    "from pg_attribute where attrelid = 'analytics.{table}'::regclass and attnum > 0",
}

pytestmark = pytest.mark.e2e


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
    portal.sync()
    portal.build(*HISTORY_ALONE)

    portal.day(3)
    portal.unpublish(5)
    portal.unpublish(6)
    portal.sandbox.unpublish(brief["publicId"])
    portal.edit(0, salaryPeriod="month", department="Moved")
    portal.sync()
    portal.build(*HISTORY_ALONE)
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
    portal.sync()
    portal.build(*HISTORY_ALONE)

    # The state is lost: nobody closes the job in job_publications, and all others start anew.
    portal.day(8)
    portal.unpublish(8)
    portal.state = None
    portal.sync()
    portal.build(*HISTORY_ALONE)

    portal.day(9)
    portal.publish(8)
    portal.edit(3, minSalary=55_000, currency="CHF")
    portal.sync()
    portal.build(*HISTORY_ALONE)


def three_mondays(portal: Portal) -> None:
    """A sync seldom enough that weeks have no listing, and the last one in the next year."""
    new = [job | {"department": "Logistics"} for job in make_jobs(3, seed=37)]
    portal.day(37)
    for job in new:
        portal.publish(job | {"minSalary": 0, "maxSalary": 0})
    portal.sync()
    portal.build(*HISTORY_ALONE)

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


@dataclass
class Finished:
    """The warehouse after the last build, when that began, and what the portal knows."""

    warehouse: Warehouse
    build_began: datetime
    listings: list[Listing]


# Each in one worker: another one would need its own nine days.
KINDS = [
    pytest.param(it, marks=pytest.mark.xdist_group(it)) for it in ("DuckDB", "PostgreSQL", "dbt 2")
]


@pytest.fixture(scope="module", params=KINDS)
def finished(
    request: pytest.FixtureRequest, new_warehouse: Callable[[str], Warehouse]
) -> Iterator[Finished]:
    warehouse = new_warehouse(request.param)
    with pytest.MonkeyPatch.context() as monkeypatch, opened(warehouse, monkeypatch) as portal:
        nine_days(portal)
        three_mondays(portal)
        began = datetime.now(UTC).replace(tzinfo=None)
        # With the unit tests, which no other build here runs, and all data tests.
        status, output = warehouse.dbt("build")
        assert status == 0, output
        results = json.loads((warehouse.folder / "dbt" / "run_results.json").read_text("utf-8"))
        # There is nothing to do for the dashboard, which dbt knows as an exposure.
        assert {it["status"] for it in results["results"]} <= {"success", "pass", "no-op"}
        portal.listings[-1].built = True
        yield Finished(warehouse, began, portal.listings)


@pytest.mark.parametrize("table", TABLES)
def test_a_final_table_is_what_happened(finished: Finished, table: str) -> None:
    history = History(finished.listings)
    assert history.rows(table)
    assert_holds(finished.warehouse, table, history)


def test_history_is_dated_in_utc(finished: Finished) -> None:
    times = [
        it["dbt_valid_from"] for it in finished.warehouse.rows(f"analytics_history.{HISTORY[-1]}")
    ]
    assert finished.build_began < max(times) < finished.build_began + timedelta(hours=1)


def test_every_other_final_table_has_a_unit_test() -> None:
    tested = {it["model"].removeprefix("public_jobs__") for it in UNIT_TESTS}
    assert tested >= MODELS.keys() - set(TABLES)


@pytest.mark.parametrize("table", MODELS)
def test_the_database_has_the_descriptions_as_comments(finished: Finished, table: str) -> None:
    query = COMMENTS[finished.warehouse.utility].format(table=table)
    rows = finished.warehouse.rows(f"({query}) as comments")
    comments = {row["name"]: row["comment"] for row in rows}
    assert comments == {
        column["name"]: column["description"] for column in MODELS[table]["columns"]
    }


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_a_question_of_the_page_has_an_answer(finished: Finished, number: int) -> None:
    assert finished.warehouse.rows(f"({EXAMPLES[number]}) as example")


def test_the_question_about_a_date_shows_what_was_published_then(finished: Finished) -> None:
    """Not the jobs that opened later, whose first version counts from the year 1."""
    (query,) = [it for it in EXAMPLES if "as moment" in it]
    moment = datetime(2026, 11, 4)  # noqa: DTZ001  # as warehouses hold it
    listing = max((it for it in finished.listings if it.time < moment), key=lambda it: it.time)
    rows = finished.warehouse.rows(f"({query}) as example")

    assert {row["id"]: row["job_title"] for row in rows} == {
        job_id: job["jobTitle"] for job_id, job in listing.jobs.items()
    }
    assert len(rows) == len(listing.jobs)


@pytest.mark.parametrize("finished", KINDS[1:2], indirect=True)
def test_a_build_waits_long_neither_for_a_lock_nor_for_a_join(finished: Finished) -> None:
    """Others who read the table would wait behind it."""
    build = ("build", "--select", "public_jobs__open_jobs", *WITHOUT_TESTS)
    with psycopg.connect(finished.warehouse.address) as analyst:
        analyst.execute("select from analytics.open_jobs")
        status, output = finished.warehouse.dbt(*build, "--vars", "lock_timeout: 200ms")
    assert status == 1
    assert "canceling statement due to lock timeout" in output
    finished.warehouse.build(*build[1:])
    # Nor for a join of whole tables that PostgreSQL takes for small ones.
    log = (finished.warehouse.folder / "dbt" / "dbt.log").read_text("utf-8")
    before_the_table = log.rpartition("create  table")[0]
    assert "set local enable_nestloop = off" in before_the_table.rpartition("BEGIN")[2]


def as_shown(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float | Decimal):
        return f"{float(value):.8g}"
    return "" if value is None else str(value)


@pytest.mark.parametrize("number", range(6))
def test_a_question_for_monday_has_the_answer_of_the_readme(
    finished: Finished, number: int
) -> None:
    """In six lines at most, of one table."""
    query, shown = ANSWERED[number]
    assert len(query.splitlines()) <= 6
    assert query.count("analytics.") == 1
    rows = finished.warehouse.rows(f"({query}) as answer")
    answer = [[as_shown(value) for value in row.values()] for row in rows]
    assert answer == [
        [cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()
    ]


def test_a_second_build_grants_again_and_changes_nothing(finished: Finished) -> None:
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
    may_read = " and ".join(
        f"has_table_privilege('{reader}', 'analytics.{table}', 'select')"
        for reader in readers
        for table in (*MODELS, "locations")
    )
    (found,) = finished.warehouse.rows(f"(select {may_read} as all_of_them) as found")
    assert found["all_of_them"]
