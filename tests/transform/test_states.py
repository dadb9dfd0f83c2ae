"""Missing jobs, and states or tables that are lost or older than the warehouse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from transform.portal import FIRST_DAY
from transform.test_history import HISTORY_ALONE
from transform.warehouses import DuckDB

if TYPE_CHECKING:
    from transform.portal import Portal
    from transform.warehouses import Warehouse

FIRST = FIRST_DAY.replace(tzinfo=None)

pytestmark = pytest.mark.e2e


def test_a_job_that_no_listing_shows_any_more(portal: Portal, warehouse: Warehouse) -> None:
    """Three such jobs have the same row at first; later rows show what they were.

    The first was missing and is listed again, the second was missing and is closed, and the third
    was closed when the state was lost, and is published again after another loss.
    """
    portal.sync()
    back, closed, reopened = [it.job["id"] for it in portal.sandbox.organisation.published()][:3]
    if isinstance(warehouse, DuckDB):
        native = "knockout_questions type json"
    else:
        native = "knockout_questions type jsonb using cast(knockout_questions as jsonb)"
    warehouse.run(f"alter table public_jobs.job_details alter column {native}")
    portal.build(*HISTORY_ALONE)

    def listed(number: int, *unlisted: str) -> datetime:
        time = FIRST + timedelta(days=number - 1)
        others = ", ".join(f"'{key}'" for key in ("", *unlisted))
        warehouse.run(
            f"update public_jobs.job_publications set last_seen_at = timestamp '{time}' "  # noqa: S608
            f"where unpublished_at is null and id not in ({others})"
        )
        return time

    def write(key: str, values: str) -> None:
        warehouse.run(f"update public_jobs.job_publications set {values} where id = '{key}'")  # noqa: S608

    second = listed(2, back, closed, reopened)
    portal.build()
    periods = {row["id"]: row for row in warehouse.rows("analytics.publication_periods")}
    for key in (back, closed, reopened):
        assert not periods[key]["is_open"]
        assert (periods[key]["closed_after"], periods[key]["closed_by"]) == (FIRST, second)
    asked = {row["id"] for row in warehouse.rows("analytics.knockout_questions")}
    assert asked
    assert asked.isdisjoint({back, closed, reopened})

    third = listed(3, closed, reopened)
    write(closed, f"unpublished_at = timestamp '{third}'")
    portal.build(*HISTORY_ALONE)
    fourth = listed(4, reopened)
    write(
        reopened,
        f"opened_after = null, first_seen_at = timestamp '{fourth}', "
        f"last_seen_at = timestamp '{fourth}'",
    )
    portal.build()

    found = [
        (row["id"], row["opened_after"], row["opened_by"], row["closed_after"], row["closed_by"])
        for row in sorted(warehouse.rows("analytics.publication_periods"), key=str)
        if row["id"] in {back, closed, reopened}
    ]
    assert sorted(found, key=lambda row: (row[0], row[2])) == sorted(
        [
            (back, None, FIRST, None, None),
            (closed, None, FIRST, FIRST, third),
            (reopened, None, FIRST, FIRST, second),
            (reopened, third, fourth, None, None),
        ],
        key=lambda row: (row[0], row[2]),
    )
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
    assert (change["id"], change["new_value"], change["changed_after"]) == (
        stays,
        "Retitled",
        FIRST,
    )
    days_open = {row["days_open"] for row in warehouse.rows("analytics.open_jobs")}
    assert days_open == {2.0}
