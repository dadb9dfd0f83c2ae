"""The four runs of the tests of targets on the warehouses that people use, in both namings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb
from e2e.pipeline import Tap
from e2e.test_targets import each, load_and_compare, record
from e2e.truth import COLUMNS
from emulators.engines import ENGINES, REPOSITORY, Engine
from queries.warehouse import DuckDB

if TYPE_CHECKING:
    from pathlib import Path

    from emulators.engines import Emulated


@each(ENGINES)
def test_every_value_and_type_is_right_after_every_run(target: Emulated, tmp_path: Path) -> None:
    """So do the queries that are in the dialect of the database, compared with DuckDB."""
    recordings = record(Tap(tmp_path), column_naming=target.column_naming)
    with target.emulator(tmp_path) as address:
        load_and_compare(target, recordings, address, tmp_path)
        # The list of the last run is empty.
        target.load(recordings["a return"].file.read_text("utf-8"), tmp_path, address)
        engine = target.store(tmp_path, address)
        assert isinstance(engine, Engine)
        for name in target.queries:
            compare_with_duckdb(engine, (REPOSITORY / "queries" / f"{name}.sql").read_text("utf-8"))


def compare_with_duckdb(engine: Engine, sql: str) -> None:
    answer = [tuple(row.values()) for row in engine.fetch(sql)]
    with duckdb.connect() as connection:
        database = DuckDB(connection)
        for table in COLUMNS:
            database.load(table, engine.rows(table))
        assert answer
        assert json.dumps(answer, default=str) == json.dumps(database.rows(sql), default=str)
