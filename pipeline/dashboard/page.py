# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "duckdb>=1.3",
#     "psycopg[binary]>=3.2",
# ]
# ///
"""Write one page with pictures of the final tables that dbt has built in a warehouse.

`uv run pipeline/dashboard/page.py output/warehouse.duckdb` runs this file in an environment of its
own. The page holds everything that it needs, and opens in any browser without a network.
"""

import argparse
import base64
import contextlib
import datetime as dt
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg

RunQuery = Callable[[str], Any]
"""Runs a query; the answer has `description` and `fetchall()`."""

# The names of columns, and rows of values.
Table = dict[str, list[Any]]

FOLDER = Path(__file__).parent
NUMBERS = (FOLDER / "numbers.sql").read_text("utf-8")
# The final tables that numbers.sql reads, and what it selects for the page.
FINAL = ("job_spells", "job_events", "jobs_ever", "listings")
SHOWN = ("organisations", "nights", "spells", "events")
POSTGRESQL = re.compile(r"postgres(ql)?(\+\w+)?://")
BUILD = "Build them: meltano run tap-public-jobs target-{0} dbt-{0}:build"


class WarehouseError(Exception):
    """What is wrong with the warehouse, and what to do; never its address."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page, and print the name of its file."""
    parser = argparse.ArgumentParser(description="Write one page with pictures of a warehouse.")
    parser.add_argument("warehouse", help="a DuckDB file, or an address: postgresql://…")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the page goes")
    parser.add_argument("--analytics", metavar="NAME", help="the schema of the final tables")
    parser.add_argument("--organisation", action="append", help="show only this one; repeatable")
    given = parser.parse_args(arguments)
    is_address = POSTGRESQL.match(given.warehouse)
    beside = Path("public-jobs.html") if is_address else Path(given.warehouse).with_suffix(".html")
    file = given.output or beside
    try:
        with opened(given.warehouse) as run:
            build = BUILD.format("postgres" if is_address else "duckdb")
            tables = read(run, given.analytics or found(run, build), given.organisation or ())
        file.write_text(page(tables), "utf-8")
    except WarehouseError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}. Name another place.")
    print(file)  # noqa: T201  # what a command says


@contextlib.contextmanager
def opened(warehouse: str) -> Iterator[RunQuery]:
    """Open a warehouse for reading, with times in UTC.

    Args:
        warehouse: A DuckDB file, or the address of a PostgreSQL database.

    Raises:
        WarehouseError: It cannot be opened or read.
    """
    try:
        if POSTGRESQL.match(warehouse):
            with _connected(POSTGRESQL.sub("postgresql://", warehouse)) as server:
                server.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                server.read_only = True
                server.execute("set time zone 'UTC'")
                yield lambda sql: server.execute(sql.encode())
        elif Path(warehouse).is_file():
            with duckdb.connect(warehouse, read_only=True) as connection:
                connection.execute("set TimeZone = 'UTC'")
                yield connection.execute
        else:
            # An address of another kind has a password too.
            name = "An address other than postgresql://" if "@" in warehouse else warehouse
            message = f"{name} is not a file. {BUILD.format('duckdb')}"
            raise WarehouseError(message)
    except (duckdb.Error, psycopg.Error) as error:
        message = f"Cannot read the warehouse: {_first_line(error)}"
        if "Could not set lock" in message:
            message = f"A run is writing {warehouse}: try again when it has ended."
        raise WarehouseError(message) from None


def _connected(address: str) -> psycopg.Connection:
    try:
        return psycopg.connect(address, connect_timeout=10)
    except psycopg.Error as error:
        # Before this word the message may repeat parts of the address, the password among them.
        _, _, reason = _first_line(error).partition(" failed: ")
        message = f"Cannot connect to PostgreSQL ({reason or 'no answer'}): check the address."
        raise WarehouseError(message) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()


def found(run: RunQuery, build: str) -> str:
    """Return the only schema that has the final tables.

    Args:
        run: Runs a query.
        build: What to do if no schema has them.

    Raises:
        WarehouseError: None has them, or several have.
    """
    names = ", ".join(map(_literal, FINAL))
    schemas = run(
        "select table_schema from information_schema.tables "  # noqa: S608  # names of this file
        f"where table_name in ({names}) group by 1 having count(*) = {len(FINAL)} order by 1"
    ).fetchall()
    if not schemas:
        message = f"The warehouse has no final tables. {build}"
        raise WarehouseError(message)
    if len(schemas) > 1:
        names = " and ".join(it for (it,) in schemas)
        message = f"{names} have final tables: name one with --analytics NAME."
        raise WarehouseError(message)
    return str(schemas[0][0])


def read(run: RunQuery, analytics: str, organisations: Sequence[str] = ()) -> dict[str, Table]:
    """Select all that the page shows from the final tables.

    Args:
        run: Runs a query.
        analytics: The schema of the final tables.
        organisations: The ones to show, if not all.

    Raises:
        WarehouseError: An organisation is not there.
    """
    which = f"where organisation in ({', '.join(map(_literal, organisations))})"
    final = "".join(
        f"{table} as (select * from {_quoted(analytics)}.{table}"  # noqa: S608
        f" {which * bool(organisations)}),"
        for table in FINAL
    )
    tables = {}
    for name in SHOWN:
        answer = run(f"with {final}{NUMBERS}\nselect * from {name}")
        columns = [column[0] for column in answer.description]
        tables[name] = {
            "columns": columns,
            "rows": [list(map(_value, it)) for it in answer.fetchall()],
        }
    missing = set(organisations) - {row[0] for row in tables["organisations"]["rows"]}
    if missing:
        message = f"No organisation {', '.join(sorted(missing))} in {analytics}."
        raise WarehouseError(message)
    return tables


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _value(value: object) -> object:
    """Return what JSON has: days are counted since 1970, and times are milliseconds since then."""
    if isinstance(value, dt.datetime):
        return round(value.replace(tzinfo=dt.UTC).timestamp() * 1000)
    if isinstance(value, dt.date):
        return value.toordinal() - dt.date(1970, 1, 1).toordinal()
    if isinstance(value, Decimal | float):
        return int(value) if value == int(value) else round(float(value), 4)
    return value


def _packed(values: Sequence[Any]) -> object:
    """Return a column; each of its texts is there once, because most are of many rows."""
    if not any(isinstance(it, str) for it in values):
        return values
    places: dict[Any, int] = {}
    of_rows = [places.setdefault(it, len(places)) for it in values]
    return {"texts": [*places], "places": of_rows}


def page(tables: dict[str, Table]) -> str:
    """Return the page. Its data is compressed, so no text of a job can end the script around it."""
    columns = {
        name: {
            column: _packed([row[place] for row in table["rows"]])
            for place, column in enumerate(table["columns"])
        }
        for name, table in tables.items()
    }
    data = gzip.compress(json.dumps(columns, separators=(",", ":")).encode(), mtime=0)
    template = (FOLDER / "page.html").read_text("utf-8")
    return template.replace("{{ data }}", base64.b64encode(data).decode())


if __name__ == "__main__":
    main()
