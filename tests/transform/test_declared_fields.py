"""A field has one history, whether or not it has a column; and odd values in fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from harness import catalog_of
from transform.expected import History
from transform.test_history import HISTORY_ALONE, TABLES, comparable

from tap_public_jobs.tap import TapPublicJobs
from transform import portal as portals

if TYPE_CHECKING:
    from transform.portal import Portal
    from transform.warehouses import Warehouse

COLUMNS = {
    "salary_period": {"type": ["string", "null"]},
    "required_skills": {"type": ["array", "null"], "items": {"type": "string"}},
}

pytestmark = pytest.mark.e2e


def declare(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give two fields of the detail a column, as Meltano's `schema` extra does: in the catalog."""
    catalog = catalog_of(portal.config)
    (entry,) = [it for it in catalog["streams"] if it["tap_stream_id"] == "job_details"]
    entry["schema"]["properties"] |= COLUMNS

    class Declared(TapPublicJobs):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(catalog=catalog, **arguments)

    monkeypatch.setattr(portals, "TapPublicJobs", Declared)


def test_a_column_of_its_own_changes_no_answer(
    portal: Portal, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Salaries of different periods stay apart, and a field does not seem to vanish."""
    for number, period in enumerate(["year", "hour", "year"]):
        portal.edit(number, salaryPeriod=period, seniorityLevel="senior", currency="EUR")
    portal.edit(3, requiredSkills=["patience"])
    portal.sync()
    portal.build(*HISTORY_ALONE)

    declare(portal, monkeypatch)
    portal.day(2)
    portal.edit(2, salaryPeriod="month")
    portal.edit(3, requiredSkills=["patience", 'a "quoted" one'])
    portal.sync()
    portal.build()

    assert "salary_period" in warehouse.types("public_jobs.job_details")
    history = History(portal.listings)
    for table in TABLES:
        expected = getattr(history, table)()
        assert comparable(warehouse.rows(f"analytics.{table}")) == comparable(expected)


def test_changes_are_written_alike_on_both_databases(portal: Portal, warehouse: Warehouse) -> None:
    """Empty text is null, also in additional_fields, and a great number has all its digits."""
    portal.edit(0, note="some text", minSalary=1, maxSalary=9)
    portal.edit(1, note=None)
    portal.sync()
    portal.build(*HISTORY_ALONE)

    portal.day(2)
    portal.edit(0, note="", minSalary=10**15, maxSalary=2 * 10**15)
    portal.edit(1, note="")
    portal.sync()
    portal.build()

    changes = warehouse.rows("analytics.job_changes")
    assert {row["field"]: (row["old_value"], row["new_value"]) for row in changes} == {
        "min_salary": ("1", "1000000000000000"),
        "max_salary": ("9", "2000000000000000"),
        "additional_fields.note": ("some text", None),
    }
    assert len(changes) == 3
