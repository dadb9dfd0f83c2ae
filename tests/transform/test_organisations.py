"""Several organisations, each in a schema of its own, in one set of tables."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from transform.expected import History, assert_holds
from transform.portal import FIRST_DAY, opened
from transform.test_history import TABLES, WITHOUT_TESTS

if TYPE_CHECKING:
    from transform.warehouses import Warehouse

SCHEMAS = ["acme", "globex", "initech"]

pytestmark = pytest.mark.e2e


def test_each_organisation_has_its_own_jobs_and_its_own_latest_listing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids are the same in all three, and on the second day one of them is not synced.

    A fourth has never been loaded. Freshness is that of the one that was listed least recently.
    """
    schemas = ("--vars", json.dumps({"schemas": SCHEMAS}))
    with ExitStack() as stack:
        acme, globex, initech = portals = [
            stack.enter_context(opened(warehouse, monkeypatch, schema)) for schema in SCHEMAS
        ]
        for portal in portals:
            portal.sync()
            portal.listings[-1].built = True
        with_a_new_one = ("--vars", json.dumps({"schemas": ["umbrella", *SCHEMAS]}))
        output = warehouse.build(*with_a_new_one, *WITHOUT_TESTS)
        assert "umbrella is left out" in output

        acme.unpublish(0)
        initech.unpublish(0)  # not seen before its next sync
        globex.edit(0, jobTitle="Of one organisation", salaryPeriod="hour")
        for portal in (acme, globex):
            portal.day(2)
            portal.sync()
            portal.listings[-1].built = True
        warehouse.build(*schemas)

        # The one of initech, who was not synced again: no other organisation hides it.
        listed_at = warehouse.listed_at(*schemas)
        assert listed_at.startswith("2026-11-01T04:00:00")
        assert datetime.fromisoformat(listed_at) == FIRST_DAY

        last_day = acme.listings[-1].time.date()
        histories = [History(portal.listings, portal.schema, last_day) for portal in portals]
    for table in TABLES:
        assert_holds(warehouse, table, *histories)

    # Its jobs are in history, and would all be closed.
    warehouse.run("drop schema globex cascade")
    status, output = warehouse.dbt("build", *schemas, "--select", "stg_publications")
    assert status == 1
    assert "history has jobs of globex: load them first" in output
