"""What is left of history when the raw tables are dropped and loaded again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from transform.portal import FIRST_DAY
from transform.test_history import HISTORY_ALONE

if TYPE_CHECKING:
    from transform.portal import Portal
    from transform.warehouses import Warehouse

pytestmark = pytest.mark.e2e


def utc_now() -> datetime:
    """As warehouses hold it, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def test_history_outlives_the_raw_tables(portal: Portal, warehouse: Warehouse) -> None:
    """Periods go on, changes are found, and a job that has left without a trace is closed."""
    first = FIRST_DAY.replace(tzinfo=None)
    stays, leaves = (it.job["id"] for it in portal.sandbox.organisation.published()[:2])
    portal.sync()
    portal.build(*HISTORY_ALONE)

    portal.day(3)
    portal.edit(0, jobTitle="Retitled")
    portal.unpublish(1)
    warehouse.run("drop schema public_jobs cascade")
    portal.state = None
    portal.sync()
    before = utc_now()
    portal.build()
    after = utc_now()

    periods = {row["id"]: row for row in warehouse.rows("analytics.publication_periods")}
    assert len(periods) == 12
    for key, period in periods.items():
        assert (period["opened_by"], period["opened_after"]) == (first, None)
        assert period["is_open"] == (key != leaves)
    assert periods[leaves]["closed_after"] == first
    assert before < periods[leaves]["closed_by"] < after  # there is no listing to name
    (change,) = warehouse.rows("analytics.job_changes")
    assert (change["id"], change["new_value"], change["changed_after"]) == (
        stays,
        "Retitled",
        first,
    )
    days_open = {row["days_open"] for row in warehouse.rows("analytics.open_jobs")}
    assert days_open == {2.0}
