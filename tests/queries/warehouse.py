"""A DuckDB and a PostgreSQL with tables as the targets make them, and rows full of traps."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import psycopg

Row = tuple[Any, ...]
Job = dict[str, Any]

JOBS = {
    "id": "string",
    "public_id": "string",
    "job_title": "string",
    "location": "string",
    "department": "string",
    "type": "string",
    "seniority_level": "string",
    "min_salary": "number",
    "max_salary": "number",
    "currency": "string",
    "job_url": "string",
    "apply_url": "string",
    "additional_fields": "object",
}
DETAILS = JOBS | {
    "role_overview": "string",
    "years_experience": "number",
    "primary_language": "string",
    "education_level": "string",
    "knockout_questions": "array",
}
PUBLICATIONS = {
    "id": "string",
    "public_id": "string",
    "opened_after": "date-time",
    "first_seen_at": "date-time",
    "last_seen_at": "date-time",
    "unpublished_at": "date-time",
}
TABLES = {"jobs": JOBS, "job_details": DETAILS, "job_publications": PUBLICATIONS}


class Warehouse(Protocol):
    """A database within one transaction."""

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
        "object": "json",
        "array": "json",
    }

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.run("begin; create schema public_jobs")

    def load(self, table: str, rows: list[Job]) -> None:
        self.run(create(table, self.types))
        for row in rows:
            values = [self._value(row.get(name)) for name in TABLES[table]]
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

    @staticmethod
    def _value(value: object) -> object:
        if isinstance(value, list | dict):
            return json.dumps(value)
        return value if value != "" else None  # target-duckdb has no empty text


class Postgres:
    """As meltanolabs-target-postgres 0.8.1 fills it."""

    types: Mapping[str, str] = {
        "string": "text",
        "number": "numeric",
        "date-time": "timestamp",
        "object": "jsonb",
        "array": "jsonb[]",
    }

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.run("create schema public_jobs")

    def load(self, table: str, rows: list[Job]) -> None:
        self.run(create(table, self.types))
        for row in rows:
            values = [self._value(kind, row.get(name)) for name, kind in TABLES[table].items()]
            self._connection.execute(insert(table, "%s").encode(), values)

    def run(self, sql: str) -> None:
        self._connection.execute(sql.encode())

    def rows(self, sql: str) -> list[Row]:
        return [
            tuple(float(value) if isinstance(value, Decimal) else value for value in row)
            for row in self._connection.execute(sql.encode())
        ]

    @staticmethod
    def _value(kind: str, value: object) -> object:
        if kind == "object":
            return Jsonb(value)  # an object that is missing is a JSON null, not an SQL one
        return list(map(Jsonb, value)) if isinstance(value, list) else value


def create(table: str, types: Mapping[str, str]) -> str:
    columns = ", ".join(f"{name} {types[kind]}" for name, kind in TABLES[table].items())
    return f"create table public_jobs.{table} ({columns})"


def insert(table: str, placeholder: str) -> str:
    placeholders = ", ".join([placeholder] * len(TABLES[table]))
    return f"insert into public_jobs.{table} values ({placeholders})"  # noqa: S608
