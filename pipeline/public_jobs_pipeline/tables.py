"""Reads the tables that dbt has built, in a DuckDB file or in PostgreSQL.

The dashboard reads them by this file, too, with Python, DuckDB and psycopg alone.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

RunQuery = Callable[[str], Any]
"""Runs a query; the answer has `description` and `fetchall()`."""

Row = dict[str, Any]
"""A row, by the names of its columns."""

POSTGRESQL = re.compile(r"postgres(ql)?(\+\w+)?://")
BUILD = "Build them: meltano run tap-public-jobs target-{0} dbt-{0}:build"


class WarehouseError(Exception):
    """What is wrong with the warehouse, and what to do; never its address."""


@contextlib.contextmanager
def opened(warehouse: str) -> Iterator[RunQuery]:
    """Open a warehouse for reading, with times in UTC.

    Args:
        warehouse: A DuckDB file, or the address of a PostgreSQL database.

    Raises:
        WarehouseError: It cannot be opened or read.
    """
    if POSTGRESQL.match(warehouse):
        with _of_a_server(POSTGRESQL.sub("postgresql://", warehouse)) as run:
            yield run
    elif Path(warehouse).is_file():
        with _of_a_file(warehouse) as run:
            yield run
    else:
        # An address of another kind has a password too.
        name = "An address other than postgresql://" if "@" in warehouse else warehouse
        message = f"{name} is not a file. {BUILD.format('duckdb')}"
        raise WarehouseError(message)


@contextlib.contextmanager
def _of_a_file(name: str) -> Iterator[RunQuery]:
    import duckdb  # noqa: PLC0415  # a project has the driver of its own warehouse alone

    try:
        with duckdb.connect(name, read_only=True) as connection:
            connection.execute("set TimeZone = 'UTC'")
            yield connection.execute
    except duckdb.Error as error:
        message = f"Cannot read the warehouse: {_first_line(error)}"
        if "Could not set lock" in message:
            message = f"A run is writing {name}: try again when it has ended."
        raise WarehouseError(message) from None


@contextlib.contextmanager
def _of_a_server(address: str) -> Iterator[RunQuery]:
    import psycopg  # noqa: PLC0415

    try:
        with _connected(address) as server:
            server.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            server.read_only = True
            server.execute("set time zone 'UTC'")
            yield lambda sql: server.execute(sql.encode())
    except psycopg.Error as error:
        message = f"Cannot read the warehouse: {_first_line(error)}"
        raise WarehouseError(message) from None


def _connected(address: str) -> "psycopg.Connection":
    import psycopg  # noqa: PLC0415

    try:
        return psycopg.connect(address, connect_timeout=10)
    except psycopg.Error as error:
        # Before this word the message may repeat parts of the address, the password among them.
        _, _, reason = _first_line(error).partition(" failed: ")
        message = f"Cannot connect to PostgreSQL ({reason or 'no answer'}): check the address."
        raise WarehouseError(message) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()


def found(run: RunQuery, build: str, tables: Sequence[str], expected: str = "") -> str:
    """Return the only schema that has these tables.

    Args:
        run: Runs a query.
        build: What to do if no schema has them.
        tables: The names of the tables.
        expected: The name that it has, or that its name begins with; empty for any.

    Raises:
        WarehouseError: None has them, or several have.
    """
    rows = run(
        "select table_schema from information_schema.tables "  # noqa: S608  # names of this program
        f"where table_name in ({', '.join(map(literal, tables))}) "
        f"group by 1 having count(*) = {len(tables)} order by 1"
    ).fetchall()
    schemas = [it for (it,) in rows if not expected or f"{it}_".startswith(f"{expected}_")]
    if not schemas:
        message = f"The warehouse has no final tables. {build}"
        raise WarehouseError(message)
    if len(schemas) > 1:
        message = f"{' and '.join(schemas)} have final tables: name one with --analytics NAME."
        raise WarehouseError(message)
    return str(schemas[0])


def rows(run: RunQuery, sql: str) -> list[Row]:
    """Return the rows of a query."""
    answer = run(sql)
    names = [column[0] for column in answer.description]
    return [dict(zip(names, it, strict=True)) for it in answer.fetchall()]


def quoted(name: str) -> str:
    """Return the name of a schema or a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"
