"""Runs whose state is older than the warehouse, or lost, do not bend the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from public_jobs_sandbox.postings import make_jobs
from transform.expected import History
from transform.test_history import HISTORY_ALONE, comparable

if TYPE_CHECKING:
    from transform.portal import Portal
    from transform.warehouses import Warehouse

pytestmark = pytest.mark.e2e


def test_periods_are_what_builds_saw_whatever_the_state_says(
    portal: Portal, warehouse: Warehouse
) -> None:
    """The tap repeats what it does not remember, with other times."""
    second_day, fourth_day = make_jobs(2, seed=99)
    portal.sync()
    portal.build(*HISTORY_ALONE)
    remembered = portal.state

    portal.day(2)
    portal.publish(second_day)
    portal.unpublish(0)
    portal.unpublish(1)
    portal.sync()
    portal.build(*HISTORY_ALONE)
    # As if the run had been killed after the warehouse had its rows.
    portal.state = remembered

    portal.day(3)
    portal.publish(0)
    portal.sync()
    portal.build(*HISTORY_ALONE)
    portal.state = None

    portal.day(4)
    portal.publish(fourth_day)
    portal.sync()
    portal.build()

    history = History(portal.listings)
    for table in ("publication_periods", "open_jobs", "daily_open_jobs"):
        expected = getattr(history, table)()
        assert comparable(warehouse.rows(f"analytics.{table}")) == comparable(expected)
