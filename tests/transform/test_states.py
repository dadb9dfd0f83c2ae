"""Missing jobs, and states or tables that are lost or older than the warehouse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support.portal import FIRST_DAY
from support.warehouses import HISTORY_ALONE, TRANSFORM, DuckDB

if TYPE_CHECKING:
    from support.portal import Portal
    from support.warehouses import Warehouse

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
