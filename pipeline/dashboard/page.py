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
import datetime as dt
import gzip
import html
import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

# What reads the tables is a file of the program of a project, which is not installed here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from public_jobs_pipeline.tables import (
    BUILD,
    POSTGRESQL,
    RunQuery,
    WarehouseError,
    found,
    literal,
    opened,
    quoted,
)

# The names of columns, and rows of values.
Table = dict[str, list[Any]]

FOLDER = Path(__file__).parent
NUMBERS = (FOLDER / "numbers.sql").read_text("utf-8")
# The final tables that numbers.sql reads, and what it selects for the page.
CALENDAR = "dates"  # the same for all organisations
FINAL = (
    *("job_spells", "job_periods", "job_events", "jobs_ever", "time_to_close", "nights", CALENDAR),
)
SHOWN = ("organisations", "listed", "days", "spells", "events", "renames", "closing")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page, and print the name of its file."""
    parser = argparse.ArgumentParser(description="Write one page with pictures of a warehouse.")
    parser.add_argument("warehouse", help="a DuckDB file, or an address: postgresql://…")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the page goes")
    parser.add_argument("--analytics", metavar="NAME", help="the schema of the final tables")
    parser.add_argument("--organisation", action="append", help="show only this one; repeatable")
    parser.add_argument("--name", default="", help="what the page calls the organisation")
    given = parser.parse_args(arguments)
    is_address = POSTGRESQL.match(given.warehouse)
    beside = Path("public-jobs.html") if is_address else Path(given.warehouse).with_suffix(".html")
    file = given.output or beside
    try:
        with opened(given.warehouse) as run:
            build = BUILD.format("postgres" if is_address else "duckdb")
            analytics = given.analytics or found(run, build, FINAL)
            tables = read(run, analytics, given.organisation or ())
        file.write_text(page(tables, given.name), "utf-8")
    except WarehouseError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}. Name another place.")
    print(file)  # noqa: T201  # what a command says


def read(run: RunQuery, analytics: str, organisations: Sequence[str] = ()) -> dict[str, Table]:
    """Select all that the page shows from the final tables.

    Args:
        run: Runs a query.
        analytics: The schema of the final tables.
        organisations: The ones to show, if not all.

    Raises:
        WarehouseError: An organisation is not there.
    """
    which = f"where organisation in ({', '.join(map(literal, organisations))})"
    final = "".join(
        f"{table} as not materialized (select * from {quoted(analytics)}.{table}"  # noqa: S608
        f" {which * bool(organisations and table != CALENDAR)}),"
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


def page(tables: dict[str, Table], name: str = "") -> str:
    """Return the page. Its data is compressed, so no text of a job can end the script around it."""
    columns = {
        shown: {
            column: _packed([row[place] for row in table["rows"]])
            for place, column in enumerate(table["columns"])
        }
        for shown, table in tables.items()
    }
    data = gzip.compress(json.dumps(columns, separators=(",", ":")).encode(), mtime=0)
    template = (FOLDER / "page.html").read_text("utf-8")
    filled = template.replace("{{ data }}", base64.b64encode(data).decode())
    return filled.replace("{{ name }}", html.escape(name))


if __name__ == "__main__":
    main()
