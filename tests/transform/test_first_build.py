"""What dbt says where it cannot build: the remedy, and not the database's error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.portal import Portal
    from support.warehouses import Warehouse

pytestmark = pytest.mark.e2e


def test_a_build_that_cannot_be_says_what_to_do(portal: Portal, warehouse: Warehouse) -> None:
    def refused(command: str) -> str:
        status, output = warehouse.dbt(command)
        assert status in {1, 2}, output
        assert "Compilation Error" in output
        assert "Database Error" not in output
        return output

    nothing = refused("build")
    assert (
        "There is no table job_publications in public_jobs: run the tap with its loader" in nothing
    )

    snake_case = portal.config.pop("column_naming")
    portal.sync()
    named = refused("build")
    assert "lacks public_id, opened_after, first_seen_at, last_seen_at, unpublished_at" in named
    assert "column_naming: snake_case" in named

    warehouse.run("drop schema public_jobs cascade")
    portal.config["column_naming"], portal.state = snake_case, None
    portal.sync()
    assert "There is no history yet. `dbt build` records it" in refused("run")
