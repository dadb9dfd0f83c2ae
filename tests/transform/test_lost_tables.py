"""What is left of history when the raw tables are dropped and loaded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from transform.portal import FIRST_DAY, opened
from transform.test_history import WITHOUT_TESTS
from transform.warehouses import Postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transform.warehouses import Warehouse

pytestmark = pytest.mark.e2e


def test_history_outlives_the_raw_tables(
    new_warehouse: Callable[[str], Warehouse], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Periods go on, changes are found, and a job that has left without a trace is closed."""
    warehouse = new_warehouse("PostgreSQL")
    assert isinstance(warehouse, Postgres)
    first = FIRST_DAY.replace(tzinfo=None)
    with opened(warehouse, tmp_path, monkeypatch) as portal:
        stays, leaves = (it.job["id"] for it in portal.sandbox.organisation.published()[:2])
        portal.sync()
        portal.build(*WITHOUT_TESTS)

        portal.day(3)
        portal.edit(0, jobTitle="Retitled")
        portal.unpublish(1)
        with psycopg.connect(warehouse.address) as connection:
            connection.execute("drop schema public_jobs cascade")
        portal.state = None
        portal.sync()
        portal.build()

    periods = {row["id"]: row for row in warehouse.rows("analytics.publication_periods")}
    assert len(periods) == 12
    for key, period in periods.items():
        assert (period["opened_by"], period["opened_after"]) == (first, None)
        assert period["is_open"] == (key != leaves)
    assert periods[leaves]["closed_after"] == first
    assert periods[leaves]["closed_by"] > first
    (change,) = warehouse.rows("analytics.job_changes")
    assert (change["id"], change["new_value"], change["changed_after"]) == (
        stays,
        "Retitled",
        first,
    )
    days_open = {row["days_open"] for row in warehouse.rows("analytics.open_jobs")}
    assert days_open == {2.0}
