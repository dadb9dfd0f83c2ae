"""A build after a load that was stopped: what the tables say once the next load is complete."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from e2e.scenario import FIELDS
from public_jobs_sandbox.postings import make_jobs
from support.expected import History, comparable
from support.warehouses import WITHOUT_TESTS

if TYPE_CHECKING:
    from support.portal import Portal
    from support.warehouses import Warehouse

TABLES = ("publication_periods", "job_versions", "job_changes")
CHANGES = ("--select", "+public_jobs__job_changes", *WITHOUT_TESTS)

# Among the longest, so they begin early.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("stopped loads")]


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
