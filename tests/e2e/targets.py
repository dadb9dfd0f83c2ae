"""The targets that the tap is tested with, and what each makes of its rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
from e2e.pipeline import Pipe, Row, Run, Settings, Warehouse, exact, variables
from psycopg.types.json import set_json_loads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.pipeline import Project

METADATA = {
    "_sdc_extracted_at": "timestamp without time zone",
    "_sdc_received_at": "timestamp without time zone",
    "_sdc_batched_at": "timestamp without time zone",
    "_sdc_deleted_at": "timestamp without time zone",
    "_sdc_sequence": "bigint",
    "_sdc_table_version": "bigint",
    "_sdc_sync_started_at": "bigint",
}


class Unpublished(Enum):
    """What becomes of the row of a job that is no longer published."""

    REMOVED = "there is none any more"
    DELETED = "it stays as it was, is_published is false, and _sdc_deleted_at is set"
    FLAGGED = "it stays as it was, and is_published is false"
    TOLD = "a last line has its id, and is_published false"


class Store(Protocol):
    """Where a target has written."""

    def rows(self, table: str) -> list[Row]:
        """Every row in the order of its id, JSON columns parsed."""

    def types(self, table: str) -> dict[str, str]:
        """The type of each column."""


@dataclass
class Postgres:
    """A schema of a PostgreSQL database."""

    database: str
    schema: str

    def rows(self, table: str) -> list[Row]:
        """Of the target's metadata only whether the row is marked as deleted, if it tells."""
        query = f'select * from "{self.schema}".{table} order by id collate "C"'  # noqa: S608
        with psycopg.connect(self.database, row_factory=psycopg.rows.dict_row) as connection:
            set_json_loads(exact, connection)
            found = connection.execute(query).fetchall()
        for row in found:
            if "_sdc_deleted_at" in row:
                row["deleted"] = row["_sdc_deleted_at"] is not None
            for name in METADATA.keys() & row.keys():
                del row[name]
        return found

    def types(self, table: str) -> dict[str, str]:
        query = """
            select attname, format_type(atttypid, atttypmod) from pg_attribute
            where attrelid = %s::regclass and attnum > 0 and not attisdropped
        """
        with psycopg.connect(self.database) as connection:
            return dict(connection.execute(query, [f'"{self.schema}".{table}']).fetchall())


@dataclass
class Lines:
    """Files of JSON lines, one a stream, to which each run appends."""

    folder: Path
    _read: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def rows(self, table: str) -> list[Row]:
        """The lines since the last look."""
        lines = self._lines(table)
        new = lines[self._read[table] :]
        self._read[table] = len(lines)
        return sorted(new, key=lambda line: str(line["id"]))

    def types(self, table: str) -> dict[str, str]:
        names = {
            str: "string",
            int: "number",
            Decimal: "number",
            bool: "boolean",
            list: "array",
            dict: "object",
        }
        seen: dict[str, set[str]] = defaultdict(set)
        for line in self._lines(table):
            for column, value in line.items():
                if value is not None:
                    seen[column].add(names[type(value)])
        return {column: " or ".join(sorted(types)) for column, types in seen.items()}

    def _lines(self, table: str) -> list[Row]:
        text = (self.folder / f"{table}.jsonl").read_text("utf-8")
        return [exact(line) for line in text.splitlines()]


def as_it_is(value: Any) -> Any:
    return value


def as_double_or_null(value: Any) -> Any:
    """What a column of doubles keeps of a number; and of empty text nothing is kept."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    return None if value == "" else value


def with_escapes(value: Any) -> Any:
    """The same, and line breaks and tabs in a column of text are the escapes that JSON has."""
    if isinstance(value, str):
        value = value.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t")
    return as_double_or_null(value)


@dataclass(frozen=True, kw_only=True)
class Target:
    """One target with one way to set it up.

    Attributes:
        name: What the tests call it.
        plugin: Its name in meltano.yml.
        requirement: What to install for a pipe; empty for what Meltano runs.
        settings: Its settings, given a folder and the address of a database.
        store: Where it has written, given the same.
        types: The type of the column of each JSON type.
        metadata: Columns that it adds, and their types.
        stored: What it makes of a value.
        unpublished: What becomes of the row of a job that is no longer published.
    """

    name: str
    plugin: str
    requirement: str = ""
    settings: Callable[[Path, str], Settings]
    store: Callable[[Path, str], Store]
    types: dict[str, str]
    metadata: dict[str, str] = field(default_factory=dict)
    stored: Callable[[Any], Any] = as_it_is
    unpublished: Unpublished

    def run(self, project: Project, folder: Path, database: str, tap: Settings) -> Run:
        """Run the tap into it, with the state of the run before."""
        settings = self.settings(folder, database)
        if self.requirement:
            tap = {"column_naming": "snake_case"} | tap
            return Pipe(folder, self.requirement, self.plugin).run(tap, settings)
        return project.meltano(
            "tap-public-jobs",
            self.plugin,
            MELTANO_DATABASE_URI=f"sqlite:///{folder / 'meltano.db'}",
            **variables("tap-public-jobs", tap),
            **variables(self.plugin, settings),
        )

    def stored_row(self, row: Row) -> Row:
        kept = {column: self.stored(value) for column, value in row.items()}
        return kept | {"deleted": False} if self.metadata else kept

    def after(self, before: dict[str, Row], now: dict[str, Row]) -> dict[str, Row]:
        """The rows after a run that found others than the run before.

        Args:
            before: The rows before it, by their key.
            now: The rows of all jobs that are published now.
        """
        flag = {"is_published": False}
        gone = {key: row for key, row in before.items() if key not in now}
        match self.unpublished:
            case Unpublished.REMOVED:
                return now
            case Unpublished.DELETED:
                return now | {key: row | flag | {"deleted": True} for key, row in gone.items()}
            case Unpublished.FLAGGED:
                return now | {key: row | flag for key, row in gone.items()}
            case Unpublished.TOLD:  # of lines, those that a run adds: one for each job, once
                told = [key for key, row in gone.items() if row["is_published"]]
                return now | {key: {"id": key} | flag for key in told}


def psycopg_url(database: str) -> str:
    return database.replace(":", "+psycopg:", 1)


def pipelinewise_settings(_: Path, database: str) -> Settings:
    address = psycopg.conninfo.conninfo_to_dict(database)
    return {
        "host": address["host"],
        "port": 5432,
        "user": address["user"],
        "password": "it wants one",
        "dbname": address["dbname"],
        "default_target_schema": "pipelinewise",
    }


MELTANOLABS_POSTGRES = "meltanolabs-target-postgres==0.8.1"  # as in meltano.yml
MELTANOLABS_TYPES = {
    "string": "text",
    "number": "numeric",
    "boolean": "boolean",
    "array": "jsonb[]",
    "object": "jsonb",
}

TARGETS = [
    Target(
        name="target-duckdb",
        plugin="target-duckdb",
        settings=lambda folder, _: {"filepath": str(Warehouse(folder).file)},
        store=lambda folder, _: Warehouse(folder),
        types={
            "string": "VARCHAR",
            "number": "DOUBLE",
            "boolean": "BOOLEAN",
            "array": "JSON",
            "object": "JSON",
        },
        stored=as_double_or_null,
        unpublished=Unpublished.FLAGGED,
    ),
    Target(
        name="meltanolabs-target-postgres, hard delete",
        plugin="target-postgres",
        requirement=MELTANOLABS_POSTGRES,
        settings=lambda _, database: {
            "sqlalchemy_url": psycopg_url(database),
            "default_target_schema": "hard",
            "hard_delete": True,
        },
        store=lambda _, database: Postgres(database, "hard"),
        types=MELTANOLABS_TYPES,
        metadata=METADATA,
        unpublished=Unpublished.REMOVED,
    ),
    Target(
        name="meltanolabs-target-postgres, soft delete",
        plugin="target-postgres",
        requirement=MELTANOLABS_POSTGRES,
        settings=lambda _, database: {
            "sqlalchemy_url": psycopg_url(database),
            "default_target_schema": "soft",
            "hard_delete": False,
        },
        store=lambda _, database: Postgres(database, "soft"),
        types=MELTANOLABS_TYPES,
        metadata=METADATA,
        unpublished=Unpublished.DELETED,
    ),
    Target(
        name="pipelinewise-target-postgres",
        plugin="target-postgres",
        requirement="pipelinewise-target-postgres==2.1.2",
        settings=pipelinewise_settings,
        store=lambda _, database: Postgres(database, "pipelinewise"),
        types={
            "string": "character varying",
            "number": "double precision",
            "boolean": "boolean",
            "array": "jsonb",
            "object": "jsonb",
        },
        stored=with_escapes,
        unpublished=Unpublished.FLAGGED,
    ),
    Target(
        name="target-jsonl",
        plugin="target-jsonl",
        requirement="target-jsonl==0.1.4",
        settings=lambda folder, _: {"destination_path": str(folder), "do_timestamp_file": False},
        store=lambda folder, _: Lines(folder),
        types={name: name for name in ("string", "number", "boolean", "array", "object")},
        unpublished=Unpublished.TOLD,
    ),
]
