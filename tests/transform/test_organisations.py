"""Several organisations, each in a schema of its own, in one set of tables."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from support.expected import TABLES, History, assert_holds
from support.portal import FIRST_DAY, opened
from support.warehouses import WITHOUT_TESTS

if TYPE_CHECKING:
    from support.warehouses import Warehouse

SCHEMAS = ["acme", "globex", "initech"]

pytestmark = pytest.mark.e2e


def test_each_organisation_has_its_own_jobs_and_its_own_latest_listing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids are the same in all three. One joins on the second day, when another is not synced.

    Freshness is that of the one that was listed least recently.
    """
    schemas = ("--vars", json.dumps({"schemas": SCHEMAS}))
    with ExitStack() as stack:
        acme, globex, initech = portals = [
            stack.enter_context(opened(warehouse, monkeypatch, schema)) for schema in SCHEMAS
        ]
        for portal in (acme, initech):
            portal.sync()
            portal.listings[-1].built = True
        assert "globex is left out" in warehouse.build(*schemas, *WITHOUT_TESTS)

        acme.unpublish(0)
        initech.unpublish(0)  # not seen before its next sync
        acme.edit(1, jobTitle="Of one organisation", salaryPeriod="hour")
        for portal in (acme, globex):
            portal.day(2)
            portal.sync()
            portal.listings[-1].built = True
        warehouse.build(*schemas)

        # The one of initech, who was not synced again: no other organisation hides it.
        listed_at = warehouse.listed_at(*schemas)
        assert listed_at.startswith("2026-11-01T04:00:00")
        assert datetime.fromisoformat(listed_at) == FIRST_DAY

        second_day = globex.listings[0].time.date()
        histories = [
            History(portal.listings, portal.schema, (second_day, second_day)) for portal in portals
        ]
    for table in TABLES:
        assert_holds(warehouse, table, *histories)

    # Its jobs are in history, and would all be closed.
    warehouse.run("drop schema globex cascade")
    status, output = warehouse.dbt("build", *schemas, "--select", "public_jobs__stg_publications")
    assert status == 1
    assert "history has jobs of globex: load them first" in output
