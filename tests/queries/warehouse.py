"""A DuckDB and a PostgreSQL with tables as the targets make them, and rows full of traps."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from decimal import Decimal
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


# The column of each field, by table.
FIELDS = {
    stream: {field: _snake_case(field) for field in _properties(stream)}
    for stream in ("jobs", "job_details", "job_publications")
}

# The type of each column, by table.
TABLES = {
    table: {column: _kind(_properties(table)[field]) for field, column in columns.items()}
    for table, columns in FIELDS.items()
}


class Warehouse(ABC):
    """A database, within a transaction until it runs `commit`.

    Args:
        connection: To it.
        types: The type of a column, by that of JSON, as a target makes it.
        stored: What the target makes of a value.
    """

    placeholder: ClassVar[str]

    def __init__(
        self, connection: Any, types: Mapping[str, str], stored: Callable[[Any], Any]
    ) -> None:
        self.connection, self.types, self.stored = connection, types, stored
        self.run("begin; create schema public_jobs")

    def load(self, table: str, rows: list[Job]) -> None:
        """Create a table of the tap as the target does, and fill it."""
        columns = ", ".join(f"{name} {self.types[kind]}" for name, kind in TABLES[table].items())
        self.run(f"create table public_jobs.{table} ({columns})")
        placeholders = ", ".join([self.placeholder] * len(TABLES[table]))
        for row in rows:
            values = [self.stored(row.get(name)) for name in TABLES[table]]
            insert = f"insert into public_jobs.{table} values ({placeholders})"  # noqa: S608
            self.connection.execute(insert, values)

    def run(self, sql: str) -> None:
        """Execute statements."""
        self.connection.execute(sql)

    @abstractmethod
    def rows(self, sql: str) -> list[Row]:
        """Return the answer: numbers that are not whole as floats, JSON parsed."""


class DuckDB(Warehouse):
    """A DuckDB in memory."""

    placeholder = "?"

    @override
    def rows(self, sql: str) -> list[Row]:
        answer = self.connection.sql(sql)
        is_json = [str(kind) == "JSON" for kind in answer.types]
        return [
            tuple(
                json.loads(value) if parse and value is not None else value
                for value, parse in zip(row, is_json, strict=True)
            )
            for row in answer.fetchall()
        ]


class Postgres(Warehouse):
    """A database of a server."""

    placeholder = "%s"

    @override
    def rows(self, sql: str) -> list[Row]:
        return [
            tuple(float(value) if isinstance(value, Decimal) else value for value in row)
            for row in self.connection.execute(sql)
        ]
