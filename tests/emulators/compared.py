"""Compares what a target has loaded into an emulated warehouse with the API, and the queries."""

import contextlib
import datetime as dt
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.pipeline import Tap
from e2e.scenario import RUNS
from e2e.stores import TABLES, utc
from e2e.targets import as_double
from emulators.engines import Emulated, Engine
from queries.answers import ANSWERS, NESTED_VALUES, ROWS, nested_values, query
from support.recordings import load_and_compare, record

TYPES = {
    "string": {"type": ["string", "null"]},
    "number": {"type": ["number", "null"]},
    "date-time": {"type": ["string", "null"], "format": "date-time"},
}


def compare_with_the_api(target: Emulated, folder: Path) -> None:
    """Load the four runs; those after the first alone, if the target refuses their columns."""
    recordings = record(Tap(folder), column_naming=target.column_naming)
    if target.refuses_columns:
        with (
            target.emulator(folder) as address,
            pytest.raises(AssertionError, match=target.refuses_columns),
        ):
            load_and_compare(target, recordings, address, folder)
        del recordings[RUNS[0]]
    with target.emulator(folder) as address:
        load_and_compare(target, recordings, address, folder)


def compare_answers(target: Emulated, folder: Path) -> None:
    """In any order: nulls come first on one database and last on another."""
    with target.emulator(folder) as address:
        target.load("\n".join(messages()), folder, address)
        engine = target.store(folder, address)
        assert isinstance(engine, Engine)
        for name in target.queries:
            expected = [map(target.stored, row) for row in ANSWERS[name]]
            assert answers(engine, query(name)) == in_one_order(expected), name
        database = type(engine).__name__.replace("Lake", "DuckDB")
        assert answers(engine, nested_values(database)) == in_one_order(NESTED_VALUES)


def answers(engine: Engine, sql: str) -> list[list[Any]]:
    return in_one_order(row.values() for row in engine.fetch(sql))


def in_one_order(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return sorted(map(plain, rows), key=str)


def messages() -> Iterator[str]:
    """What the tap writes for the rows of the tests of the queries."""
    for table, rows in ROWS.items():
        schema = {"properties": {name: TYPES[kind] for name, kind in TABLES[table].items()}}
        message = {"stream": table, "schema": schema, "key_properties": ["id"]}
        yield json.dumps(message | {"type": "SCHEMA"})
        for row in rows:
            record = {name: row.get(name) for name in TABLES[table]}
            yield json.dumps({"type": "RECORD", "stream": table, "record": record}, default=as_utc)
    yield json.dumps({"type": "STATE", "value": {}})


def as_utc(time: dt.datetime) -> str:
    return f"{time.isoformat()}Z"


def plain(row: Iterable[Any]) -> list[Any]:
    return [None if value == "" else as_double(as_time(value)) for value in row]


def as_time(value: Any) -> Any:
    """A date, or a time in UTC, also one in a text."""
    with contextlib.suppress(ValueError, TypeError):
        return dt.date.fromisoformat(value)
    with contextlib.suppress(ValueError):
        return utc(value) if isinstance(value, str | dt.datetime) else value
    return value
