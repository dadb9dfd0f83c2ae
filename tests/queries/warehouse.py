"""A DuckDB and a PostgreSQL with tables as the targets make them, and rows full of traps."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import psycopg

Row = tuple[Any, ...]
Job = dict[str, Any]
Schema = dict[str, Any]


def _properties(stream: str) -> dict[str, Schema]:
    """Read the fields of a stream from its schema file, without code of the tap."""
    file = resources.files("tap_public_jobs.schemas").joinpath(f"{stream}.json")
    properties: dict[str, Schema] = json.loads(file.read_text("utf-8"))["properties"]
    return properties


def _snake_case(field: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", field).lower()


def _kind(schema: Schema) -> str:
    """Return the format, or else the one JSON type besides null."""
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    (kind,) = set(types) - {"null"}
    return str(schema.get("format", kind))


FIELDS = {
    stream: {field: _snake_case(field) for field in _properties(stream)}
    for stream in ("jobs", "job_details", "job_publications")
}
"""The column of each field, by table."""

TABLES = {
    table: {column: _kind(_properties(table)[field]) for field, column in columns.items()}
    for table, columns in FIELDS.items()
}
"""The type of each column, by table."""


class Warehouse(Protocol):
    """A database, within a transaction until it runs `commit`."""

    def load(self, table: str, rows: list[Job]) -> None:
        """Create a table of the tap as the target does, and fill it."""

    def run(self, sql: str) -> None:
        """Execute statements."""

    def rows(self, sql: str) -> list[Row]:
        """Return the answer: numbers that are not whole as floats, JSON parsed."""


class DuckDB:
    """As target-duckdb 0.8.0 fills it."""

    types: Mapping[str, str] = {
        "string": "varchar",
        "number": "double",
        "date-time": "timestamp",
    }

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.run("begin; create schema public_jobs")

    def load(self, table: str, rows: list[Job]) -> None:
        self.run(create(table, self.types))
        for row in rows:
            # target-duckdb has no empty text.
            values = [None if row.get(name) == "" else row.get(name) for name in TABLES[table]]
            self._connection.execute(insert(table, "?"), values)

    def run(self, sql: str) -> None:
        self._connection.execute(sql)

    def rows(self, sql: str) -> list[Row]:
        answer = self._connection.sql(sql)
        is_json = [str(kind) == "JSON" for kind in answer.types]
        return [
            tuple(
                json.loads(value) if parse and value is not None else value
                for value, parse in zip(row, is_json, strict=True)
            )
            for row in answer.fetchall()
        ]


class Postgres:
    """As meltanolabs-target-postgres 0.8.1 fills it."""

    types: Mapping[str, str] = {
        "string": "text",
        "number": "numeric",
        "date-time": "timestamp",
    }

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.run("begin; create schema public_jobs")

    def load(self, table: str, rows: list[Job]) -> None:
        self.run(create(table, self.types))
        for row in rows:
            values = [row.get(name) for name in TABLES[table]]
            self._connection.execute(insert(table, "%s").encode(), values)

    def run(self, sql: str) -> None:
        self._connection.execute(sql.encode())

    def rows(self, sql: str) -> list[Row]:
        return [
            tuple(float(value) if isinstance(value, Decimal) else value for value in row)
            for row in self._connection.execute(sql.encode())
        ]


def create(table: str, types: Mapping[str, str]) -> str:
    columns = ", ".join(f"{name} {types[kind]}" for name, kind in TABLES[table].items())
    return f"create table public_jobs.{table} ({columns})"


def insert(table: str, placeholder: str) -> str:
    placeholders = ", ".join([placeholder] * len(TABLES[table]))
    return f"insert into public_jobs.{table} values ({placeholders})"  # noqa: S608
