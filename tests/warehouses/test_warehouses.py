"""The four runs of the tests of targets on the warehouses that people use, in both namings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from e2e.pipeline import Tap
from e2e.test_targets import (
    TestTargets,
    loads,
    parameters,
    record,
    test_columns_have_types_that_sql_can_compute_with,
)
from queries import warehouse
from warehouses.engines import ENGINES, Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.test_targets import Loads, Recording
    from warehouses.engines import Emulated

__all__ = ["TestTargets", "loads", "test_columns_have_types_that_sql_can_compute_with"]

QUERIES = Path(__file__).parents[2] / "queries"


@pytest.fixture(scope="module", params=parameters(ENGINES))
def target(request: pytest.FixtureRequest) -> Emulated:
    found: Emulated = request.param
    return found


@pytest.fixture(scope="module")
def recordings(target: Emulated, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    return record(Tap(tmp_path_factory.mktemp("tap")), column_naming=target.column_naming)


@pytest.fixture(scope="module")
def database(target: Emulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with target.emulator(tmp_path_factory.mktemp("emulator")) as address:
        yield address
