"""The four runs of the tests of targets on the warehouses that people use, in both namings."""

from __future__ import annotations

import json
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
from e2e.truth import COLUMNS
from emulators.engines import ENGINES, REPOSITORY, Engine
from queries.warehouse import DuckDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.test_targets import Recording
    from emulators.engines import Emulated

__all__ = ["TestTargets", "loads", "test_columns_have_types_that_sql_can_compute_with"]


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


@pytest.mark.usefixtures("loads")
@pytest.mark.parametrize(
    "target", parameters([it for it in ENGINES if it.queries]), indirect=True, scope="module"
)
def test_queries_answer_as_on_duckdb(
    target: Emulated, recordings: dict[str, Recording], database: str, tmp_path: Path
) -> None:
    """Those that are in the dialect of the database."""
    target.load(recordings["a return"].file.read_text("utf-8"), tmp_path, database)
    engine = target.store(tmp_path, database)
    assert isinstance(engine, Engine)
    with duckdb.connect() as connection:
        model = DuckDB(connection)
        for table in COLUMNS:
            model.load(table, engine.rows(table))
        for name in target.queries:
            sql = (REPOSITORY / "queries" / f"{name}.sql").read_text("utf-8")
            answer = [tuple(row.values()) for row in engine.fetch(sql)]
            assert answer
            assert json.dumps(answer, default=str) == json.dumps(model.rows(sql), default=str)
