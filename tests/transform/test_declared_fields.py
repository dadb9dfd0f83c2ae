"""A field has one history whether or not it has a column, and none if it is ignored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness import catalog_of
from support.expected import TABLES, History, assert_holds
from support.warehouses import HISTORY_ALONE

if TYPE_CHECKING:
    from support.portal import Portal
    from support.warehouses import Warehouse

COLUMNS = {
    "salary_period": {"type": ["string", "null"]},
    "required_skills": {"type": ["array", "null"], "items": {"type": "string"}},
}
IGNORED = ("--vars", json.dumps({"ignored_fields": ["viewCount"]}))

# Among the longest, so they begin early.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("declared fields")]


def test_a_column_of_its_own_changes_no_answer(portal: Portal, warehouse: Warehouse) -> None:
    """Salaries of different periods stay apart, and a field does not seem to vanish.

    A counter that is another in every answer would copy every row, and does not seem to vanish
    either when it is ignored from the second build on.
    """
    for number in range(12):
        portal.edit(number, viewCount=1)
    for number, period in enumerate(["year", "hour", "year"]):
        portal.edit(number, salaryPeriod=period, seniorityLevel="senior", currency="EUR")
    portal.edit(3, requiredSkills=["patience"])
    portal.sync()
    portal.build(*HISTORY_ALONE)
    portal.build(*HISTORY_ALONE, *IGNORED)

    portal.day(2)
    for number in range(12):
        portal.edit(number, viewCount=2)
    portal.sync()
    portal.build(*HISTORY_ALONE, *IGNORED)
    assert len(warehouse.rows("analytics_history.job_detail_history")) == 2 * 12

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
    history = History(portal.listings)
    for table in TABLES:
        assert_holds(warehouse, table, history)
