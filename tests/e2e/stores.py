"""The tables of the tap, and where targets write, read back: every row, value and type."""

import datetime as dt
import json
import re
import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import psycopg
from model_target import published_now
from typing_extensions import override

Row = dict[str, Any]


def properties(stream: str) -> dict[str, Any]:
    """Read the fields of a stream from its schema file, without code of the tap."""
    file = resources.files("tap_public_jobs.schemas").joinpath(f"{stream}.json")
    properties: dict[str, Any] = json.loads(file.read_text("utf-8"))["properties"]
    return properties


def _snake_case(field: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", field).lower()


def _kind(schema: dict[str, Any]) -> str:
    """Return the format, or else the one JSON type besides null."""
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    (kind,) = set(types) - {"null"}
    return str(schema.get("format", kind))


# The column of each field, by table.
FIELDS = {
    stream: {field: _snake_case(field) for field in properties(stream)}
    for stream in ("jobs", "job_details", "job_publications")
}

# The type of each column, by table.
TABLES = {
    table: {column: _kind(properties(table)[field]) for field, column in columns.items()}
    for table, columns in FIELDS.items()
}
# The same, in whichever table.
KINDS = {column: kind for columns in TABLES.values() for column, kind in columns.items()}


def columns_of(*kinds: str) -> set[str]:
    """The columns of these types, in any table."""
    return {column for column, kind in KINDS.items() if kind in kinds}


TIMES = columns_of("date-time")

# Four times, and three numbers.
METADATA = [
    *(f"_sdc_{it}_at" for it in ("extracted", "received", "batched", "deleted")),
    *(f"_sdc_{it}" for it in ("sequence", "table_version", "sync_started_at")),
]


def exact(json_text: str | bytes) -> Any:
    """Read JSON without turning decimals into floats."""
    return json.loads(json_text, parse_float=Decimal)


def utc(time: str | dt.datetime | None) -> dt.datetime | None:
    """A moment in UTC, without a zone, as most warehouses keep it."""
    moment = dt.datetime.fromisoformat(time) if isinstance(time, str) else time
    return moment.astimezone(dt.UTC).replace(tzinfo=None) if moment and moment.tzinfo else moment


def in_order(rows: list[Row]) -> list[Row]:
    """Sort by key; rows with the same key stay in the order in which they were written."""
    return sorted(rows, key=lambda row: str(row["id"]))


def cleaned(found: list[Row]) -> list[Row]:
    """Parse times; of the target's metadata, keep whether a row is marked as deleted."""
    for row in found:
        if "_sdc_deleted_at" in row:
            row["deleted"] = row["_sdc_deleted_at"] is not None
        for name in row.keys() & set(METADATA):
            del row[name]
        for name in row.keys() & TIMES:
            row[name] = utc(row[name])
    return in_order(found)


class Store(ABC):
    """Where a target has written."""

    @abstractmethod
    def rows(self, table: str) -> list[Row]:
        """Every row in the order of its key."""

    @abstractmethod
    def types(self, table: str) -> dict[str, str]:
        """The type of each column."""

    def published(self, table: str) -> list[Row]:
        """The rows of `jobs` or `job_details` whose job is published now, the last of each key."""
        publications, last = (
            {row["id"]: row for row in self.rows(it)} for it in ("job_publications", table)
        )
        ids = published_now(publications.values())
        return [row for key, row in last.items() if key in ids]


class Database(Store):
    """A store that understands SQL.

    Attributes:
        describe: A query for the name and the type of each column of a table.
    """

    describe: ClassVar[str]

    @override
    def types(self, table: str) -> dict[str, str]:
        found = self.fetch(self.describe.format(self.source(table)))
        return {row["name"]: row["type"] for row in found}

    @override
    def rows(self, table: str) -> list[Row]:
        return cleaned(self.fetch(f"select * from {self.source(table)}"))  # noqa: S608

    @abstractmethod
    def fetch(self, sql: str) -> list[Row]:
        """Run a query."""

    def source(self, table: str) -> str:
        """The name of a table in SQL."""
        return f"public_jobs.{table}"


@dataclass
class DuckDBFile(Database):
    """A DuckDB file."""

    describe = "select column_name as name, column_type as type from (describe {})"
    file: Path

    def fetch(self, sql: str) -> list[Row]:
        with duckdb.connect() as connection:
            # Under another name than its own, as a copy of the file has.
            connection.execute(f"attach '{self.file}' as copied (read_only); use copied")
            result = connection.execute(sql)
            names = [column[0] for column in result.description or ()]
            return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


@dataclass
class PostgresSchema(Database):
    """A schema of a PostgreSQL database."""

    describe = """
        select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
        where attrelid = '{}'::regclass and attnum > 0 and not attisdropped
    """
    database: str
    schema: str

    def source(self, table: str) -> str:
        return f'"{self.schema}".{table}'

    def fetch(self, sql: str) -> list[Row]:
        with psycopg.connect(self.database, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(sql.encode()).fetchall()


@dataclass
class SQLite(Database):
    """A SQLite file, to which each run may have appended."""

    describe = "pragma table_info({})"
    file: Path

    def source(self, table: str) -> str:
        return table

    def fetch(self, sql: str) -> list[Row]:
        with closing(sqlite3.connect(self.file)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql)]


@dataclass
class Lines(Store):
    """Files of JSON lines, one a stream, to which each run appends; a column has no type."""

    folder: Path

    def rows(self, table: str) -> list[Row]:
        text = (self.folder / f"{table}.jsonl").read_text("utf-8")
        lines = [exact(line) for line in text.splitlines()]
        names = {name for line in lines for name in line}  # older lines lack a later one
        return cleaned([dict.fromkeys(names) | line for line in lines])

    def types(self, table: str) -> dict[str, str]:
        return {name: "" for row in self.rows(table) for name in row}
