"""The targets of a history: a real one, and one that only upserts."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import psycopg
from e2e.stores import DuckDB, Postgres, SQLite, utc
from e2e.targets import DUCKDB, meltanolabs, sqlite
from model_target import ModelTarget
from queries.warehouse import FIELDS

if TYPE_CHECKING:
    from decimal import Decimal
    from pathlib import Path

    from e2e.stores import Row, Store
    from e2e.targets import Target

TIMES = {"openedAfter", "firstSeenAt", "lastSeenAt", "unpublishedAt"}
NESTED = {"knockoutQuestions", "additionalFields"}

HARD, SOFT = sqlite("upsert", "hard"), sqlite("upsert", "soft")
APPENDING = sqlite("append-only", "soft")
TARGETS = [HARD, DUCKDB, APPENDING, HARD, DUCKDB, SOFT, HARD, DUCKDB, APPENDING]


def target_of(seed: int) -> Target:
    """The target of a seed, in turn; the slowest one is rare."""
    number = seed % (len(TARGETS) + 1)
    if number == len(TARGETS):
        return meltanolabs("hard", f"seed_{seed}")
    return TARGETS[number]


Message = dict[str, Any]


class Warehouse(Protocol):
    """Tables that a history is loaded into."""

    def load(self, messages: list[Message]) -> Message | None:
        """Load messages; returns the last state that is safe to keep."""

    def rows(self, table: str) -> list[Row]:
        """One row per id, its columns in lower case; `deleted` if it is marked so."""


class Plain:
    """Replaces rows, and removes none."""

    def __init__(self) -> None:
        self._model = ModelTarget(removal="none")

    def load(self, messages: list[Message]) -> Message | None:
        self._model.read(messages)
        states = [message["value"] for message in messages if message["type"] == "STATE"]
        return states[-1] if states else None

    def rows(self, table: str) -> list[Row]:
        return [_lowered(row) for row in self._model.all(table)]


class Real:
    """A real target.

    Args:
        target: Which one, and its settings.
        folder: For its files.
        database: The address of a PostgreSQL database.
    """

    def __init__(self, target: Target, folder: Path, database: str) -> None:
        self._target = target
        self._folder = folder
        self._database = database
        self._store: Store = target.store(folder, database)

    def load(self, messages: list[Message]) -> Message | None:
        lines = [json.dumps(message, default=_number) + "\n" for message in messages]
        states = self._target.load("".join(lines), self._folder, self._database).splitlines()
        return json.loads(states[-1]) if states else None

    def rows(self, table: str) -> list[Row]:
        assert isinstance(self._store, DuckDB | Postgres | SQLite)
        try:
            return [_lowered(row) for row in self._store.latest(table)]
        except (
            sqlite3.OperationalError,
            duckdb.CatalogException,
            duckdb.IOException,
            psycopg.errors.UndefinedTable,
        ):
            return []  # no run has selected it yet


def _number(value: Decimal) -> float | int:
    return float(value) if value % 1 else int(value)


def _lowered(row: Row) -> Row:
    return {column.lower(): value for column, value in row.items()}


def document(row: Row, table: str, naming: str) -> dict[str, Any]:
    """The fields of the API that a row holds and that are not null, wherever they are in it."""
    values: dict[str, Any] = {}
    for field, column in FIELDS[table].items():
        value = row.get(column if naming == "snake_case" else field.lower())
        if field in TIMES:
            value = utc(value)
        elif field in NESTED and isinstance(value, str):
            value = json.loads(value)
        values[field] = value
    return without_nulls(values | (values.pop("additionalFields", None) or {}))


def without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    """A column that is null says nothing about the field."""
    return {name: value for name, value in fields.items() if value is not None}
