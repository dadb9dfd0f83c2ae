"""Missing jobs; states or tables that are lost, stopped halfway, or older than the warehouse."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from e2e.scenario import FIELDS
from public_jobs_sandbox.postings import make_jobs
from support.expected import History, comparable
from support.portal import FIRST_DAY, Portal
from support.warehouses import HISTORY_ALONE, TRANSFORM, WITHOUT_TESTS, DuckDB, Warehouse

FIRST = FIRST_DAY.replace(tzinfo=None)

pytestmark = pytest.mark.e2e


def test_a_job_that_no_listing_shows_any_more(portal: Portal, warehouse: Warehouse) -> None:
    """Four such jobs have the same row at first; later rows show what they were.

    The first was missing and is listed again, also after the state was lost, as the second is; the
    third was missing and is closed. The fourth is missing when the state is lost, and from the next
    listing too, so it may have closed; it is published after another loss.
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
        names = ("id", "opened_after", "opened_by", "closed_after", "closed_by")
        rows = warehouse.rows("analytics.publication_periods")
        return {tuple(row[name] for name in names) for row in rows if row["id"] in keys}

    second = listed(2, *keys)
    portal.build()
    assert periods() == {(key, None, FIRST, FIRST, second) for key in keys}
    asked = {row["id"] for row in warehouse.rows("analytics.knockout_questions")}
    assert asked
    assert asked.isdisjoint(keys)

    third = listed(3, kept, closed, reopened)
    write(f"unpublished_at = timestamp '{third}'", f"id = '{closed}'")
    portal.build(*HISTORY_ALONE)
    fourth = listed(4, reopened, state_is_lost=True)
    portal.build(*HISTORY_ALONE)
    fifth = listed(5, state_is_lost=True)
    portal.build()
    assert periods() == {
        (back, None, FIRST, None, None),
        (kept, None, FIRST, None, None),
        (closed, None, FIRST, FIRST, third),
        (reopened, None, FIRST, FIRST, second),
        (reopened, fourth, fifth, None, None),
    }
    assert not warehouse.rows("analytics.job_changes")


def test_history_outlives_the_raw_tables(portal: Portal, warehouse: Warehouse) -> None:
    """Periods go on, changes are found, and a job that has left without a trace is closed."""
    stays, leaves = (it.job["id"] for it in portal.sandbox.organisation.published()[:2])
    portal.sync()
    portal.build(*HISTORY_ALONE)

    portal.day(3)
    portal.edit(0, jobTitle="Retitled")
    portal.unpublish(1)
    warehouse.run("drop schema public_jobs cascade")
    portal.state = None
    portal.sync()
    before = datetime.now(UTC).replace(tzinfo=None)
    portal.build()
    after = datetime.now(UTC).replace(tzinfo=None)

    periods = {row["id"]: row for row in warehouse.rows("analytics.publication_periods")}
    assert len(periods) == 12
    for key, period in periods.items():
        assert (period["opened_by"], period["opened_after"]) == (FIRST, None)
        assert period["is_open"] == (key != leaves)
    assert periods[leaves]["closed_after"] == FIRST
    assert before < periods[leaves]["closed_by"] < after  # there is no listing to name
    (change,) = warehouse.rows("analytics.job_changes")
    found = [change[name] for name in ("id", "new_value", "changed_after")]
    assert found == [stays, "Retitled", FIRST]
    assert {row["days_open"] for row in warehouse.rows("analytics.open_jobs")} == {2.0}


def test_the_page_on_personal_data_erases_texts_and_keeps_dates(
    portal: Portal, warehouse: Warehouse
) -> None:
    """Those of a job that closed before; nothing of a published one."""
    page = (TRANSFORM.parent / "docs" / "personal-data.md").read_text("utf-8")
    recipe = page.partition("-- erase.sql\n")[2].partition("```")[0]
    closed, *_ = (it.job["id"] for it in portal.sandbox.organisation.published())
    portal.sync()
    portal.build(*HISTORY_ALONE)
    portal.day(2)
    portal.edit(1, jobTitle="Retitled")
    portal.unpublish(0)
    portal.sync()
    portal.build()

    warehouse.run(recipe.replace("- 730", "+ 1"))
    portal.build("--full-refresh")

    assert [row["job_title"] for row in warehouse.rows("analytics.job_changes")] == ["Retitled"]
    assert closed not in {row["id"] for row in warehouse.rows("analytics.job_versions")}
    erased = [it for it in warehouse.rows("analytics.jobs_ever") if it["job_title"] is None]
    assert [(it["id"], it["is_open"]) for it in erased] == [(closed, False)]
    assert erased[0]["closed_by"] == FIRST + timedelta(days=1)


def test_a_build_that_cannot_be_says_what_to_do(portal: Portal, warehouse: Warehouse) -> None:
    def refused(command: str) -> str:
        status, output = warehouse.dbt(command)
        assert status in {1, 2}, output
        assert "Compilation Error" in output
        assert "Database Error" not in output
        return output

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


TABLES = ("publication_periods", "job_versions", "job_changes")
CHANGES = ("--select", "+public_jobs__job_changes", *WITHOUT_TESTS)


# Among the longest, so they begin early.
@pytest.mark.xdist_group("stopped loads")
def test_a_target_that_died_in_any_stream_leaves_half_an_edit_at_most(
    portal: Portal, warehouse: Warehouse
) -> None:
    """Each day it dies first, a build records that, and a minute later all is loaded.

    Times may be those of the listings that were loaded by half, a minute before. A job may have one
    more version from there to the next listing, its new summary with its old detail.
    """
    for job in make_jobs(8, seed=7):
        portal.publish(job)
    portal.sync()
    portal.build(*CHANGES)
    minute_later: dict[Any, datetime] = {}
    for day, stream in enumerate(("jobs", "job_publications", "job_details"), 2):
        portal.day(day)
        for number in range(day, 18, 4):
            portal.edit(number, jobTitle=f"Edited on day {day}", yearsExperience=day)
        portal.edit(day + 3, roleOverview=f"Only the detail of day {day}.")
        portal.edit(day + 7, department=f"Moved on day {day}")
        portal.unpublish(day + 10)
        portal.publish(make_jobs(1, seed=day)[0])
        if stream == "jobs":
            warehouse.run("delete from public_jobs.jobs")  # as targets that overwrite a table do
        portal.sync_until(stream)
        warehouse.build(*CHANGES)

        stopped = portal.now
        portal.now += timedelta(minutes=1)
        minute_later[stopped.replace(tzinfo=None)] = portal.now.replace(tzinfo=None)
        portal.sync()
        portal.build(*CHANGES)

    history = History(portal.listings)
    for table in TABLES:
        rows = [
            {name: minute_later.get(value, value) for name, value in row.items()}
            for row in warehouse.rows(f"analytics.{table}")
        ]
        lasting = [it for it in rows if it.get("in_force_from", 0) != it.get("in_force_until")]
        assert comparable(lasting) == comparable(history.rows(table))
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
