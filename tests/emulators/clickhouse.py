"""ClickHouse without an account: its target, its engine behind a small server, what it holds.

The engine is a download of 600 MB, so that only the workflow `weekly` runs it, with the variable
CLICKHOUSE: `CLICKHOUSE=1 uv run pytest tests/emulators -k ClickHouse`.
"""

import contextlib
import datetime as dt
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from e2e.pipeline import Settings, environment, installed
from e2e.stores import TABLES, Row, columns_of
from e2e.targets import as_double, metadata, types
from emulators.engines import HERE, QUERIES, Emulated, Engine, names, served

KINDS = {column: kind for columns in TABLES.values() for column, kind in columns.items()}
INSTEAD_OF_NULL = {"string": "", "number": 0.0}


class ClickHouse(Engine):
    """A database that has one row for each key under `final`."""

    def answer(self, sql: str) -> list[Row]:
        options = {"default_format": "JSONEachRow"}
        query = f"{sql.rstrip().rstrip(';')} settings final = 1, join_use_nulls = 1"
        response = requests.post(self.address, query.encode(), params=options, timeout=60)
        assert response.ok, response.text
        return [json.loads(line) for line in response.iter_lines()]

    def renamed(self, row: Row) -> Row:
        # In JSON a number has no more digits than make it out.
        numbers = columns_of("number")
        return {
            name: as_float32(value) if name in numbers else value
            for name, value in super().renamed(row).items()
        }


class Emulator(Emulated):
    def row(self, row: Row) -> Row:
        kept = super().row(row)
        return {
            name: INSTEAD_OF_NULL.get(KINDS.get(name, "")) if value is None else value
            for name, value in kept.items()
        }


@contextlib.contextmanager
def chdb(folder: Path) -> Iterator[str]:
    python = installed("chdb==4.4.0") / "python"
    command = [python, HERE / "fake_clickhouse.py", folder / "clickhouse"]
    with served(command, folder, environment()) as address:
        yield address


def settings(_: Path, address: str) -> Settings:
    return {
        "password": "mine",
        "port": urlsplit(address).port,
        "database": "public_jobs",
        "engine_type": "ReplacingMergeTree",
        "add_record_metadata": True,
    }


def as_float32(value: Any) -> Any:
    number = as_double(value)
    return struct.unpack("f", struct.pack("f", number))[0] if isinstance(number, float) else value


def stored(value: Any) -> Any:
    is_time = isinstance(value, dt.datetime)
    return value.replace(microsecond=0) if is_time else as_float32(value)


def clickhouse(column_naming: str) -> Emulated:
    return Emulator(
        name=f"ClickHouse, {column_naming}",
        requirements="shaped-target-clickhouse==0.2.5 setuptools<81",
        executable="target-clickhouse",
        imports=("target_clickhouse.target",),
        column_naming=column_naming,
        emulator=chdb,
        queries=QUERIES,
        settings=settings,
        store=lambda _, address: ClickHouse(address, names(column_naming, str.lower)),
        types=types("String", "Float32", "Nullable(DateTime)"),
        metadata=metadata("Nullable(DateTime)", "Int64"),
        stored=stored,
        removal="soft",
    )
