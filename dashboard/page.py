# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "duckdb>=1.3",
#     "psycopg[binary]>=3.2",
#     "vl-convert-python>=1.9", # brings Vega, which draws the charts
# ]
# ///
"""Write one page with pictures of a warehouse that the tap has loaded.

`uv run dashboard/page.py output/warehouse.duckdb` runs this file in an environment of its own. The
page holds everything that it needs, and opens in any browser without a network.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Run = Callable[[str], Any]
    """Runs a query; the answer has `description` and `fetchall()`."""

# The names of columns, and rows of values.
Table = dict[str, list[Any]]
# By schema and table: how SQL writes each column, by its name without underscores.
Places = dict[tuple[str, str], dict[str, str]]

FOLDER = Path(__file__).parent
CHARTS = json.loads((FOLDER / "charts.json").read_text("utf-8"))
NUMBERS = (FOLDER / "numbers.sql").read_text("utf-8")
# The tables of numbers.sql that the page shows.
SHOWN = ("groups", "levels", "flows", "survival", "pay", "oldest", "latest", "latest_edits")

TIMES = ("opened_after", "first_seen_at", "last_seen_at", "unpublished_at")
PUBLICATION = {"public_id": "text"} | dict.fromkeys(TIMES, "timestamp")
TEXTS = ("job_title", "department", "location", "seniority_level", "currency")
JOB = dict.fromkeys(TEXTS, "text") | dict.fromkeys(("min_salary", "max_salary"), "float8")
EDIT = {"changed_by": "timestamp"} | dict.fromkeys(("field", "old_value", "new_value"), "text")
EDITS = f"select organisation, id, {', '.join(EDIT)} from analytics.job_changes"  # noqa: S608
# What was before the period that is in job_publications, the last one of each job.
EARLIER = """
    union all
    select
        organisation, id, public_id, opened_after,
        opened_by as first_seen_at, closed_after as last_seen_at, closed_by as unpublished_at
    from analytics.publication_periods as earlier
    where exists (
        select 1 from loaded_publications as loaded
        where loaded.organisation = earlier.organisation and loaded.id = earlier.id
            and earlier.closed_by <= loaded.first_seen_at
    )
"""
# The closed jobs whose rows a target has removed.
KNOWN_BY_DBT = f"""
    union all
    select organisation, id, {", ".join(JOB)}
    from analytics.jobs_ever as ever
    where job_title is not null and not exists (
        select 1 from loaded_jobs as loaded
        where loaded.organisation = ever.organisation and loaded.id = ever.id
    )
"""  # noqa: S608  # columns of this file

POSTGRESQL = re.compile(r"postgres(ql)?(\+\w+)?://")
LOAD = "Load the jobs first, with `meltano run tap-public-jobs target-duckdb` or target-postgres."
THEMES = {
    "light": {"text": "#1f2328", "line": "#d1d9e0", "first": "#0969da", "second": "#bc4c00"},
    "dark": {"text": "#f0f6fc", "line": "#3d444d", "first": "#58a6ff", "second": "#f0883e"},
}


class WarehouseError(Exception):
    """What is wrong with the warehouse, and what to do; never its address."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page or the picture, and print the names of the files."""
    parser = argparse.ArgumentParser(description="Write one page with pictures of a warehouse.")
    parser.add_argument("warehouse", help="a DuckDB file, or an address: postgresql://…")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the page goes")
    parser.add_argument("--schema", action="append", help="only this organisation; repeatable")
    parser.add_argument(
        "--picture", type=Path, metavar="FOLDER", help="write the charts as SVG, light and dark"
    )
    given = parser.parse_args(arguments)
    is_address = POSTGRESQL.match(given.warehouse)
    beside = Path("public-jobs.html") if is_address else Path(given.warehouse).with_suffix(".html")
    try:
        with opened(given.warehouse) as run:
            tables = read(run, given.schema)
        if given.picture:
            files = draw(tables, given.picture)
        else:
            files = [given.output or beside]
            files[0].write_text(page(tables), "utf-8")
    except WarehouseError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}. Name another place.")
    for file in files:
        print(file)  # noqa: T201  # what a command says


@contextlib.contextmanager
def opened(warehouse: str) -> Iterator[Run]:
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
            message = f"{name} is not a file. {LOAD}"
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


def read(run: Run, schemas: Sequence[str] | None = None) -> dict[str, Table | None]:
    """Ask a warehouse for all that the page shows.

    Args:
        run: Runs a query.
        schemas: The organisations to show, if not all.

    Returns:
        Each table of `SHOWN`; None for one that needs dbt's tables, where these are not there.

    Raises:
        WarehouseError: An organisation is not there.
    """
    places: Places = {}
    for schema, table, column in run(
        "select table_schema, table_name, column_name from information_schema.columns"
    ).fetchall():
        # jobTitle, jobtitle and job_title are one column: that depends on target and settings.
        places.setdefault((schema, table), {})[_plain(column)] = _quoted(column)
    loaded = sorted(schema for schema, table in places if table == "job_publications")
    shown = loaded if schemas is None else schemas
    if not shown or set(shown) - set(loaded):
        remedy = f"Schemas that have it: {', '.join(loaded)}." if loaded else LOAD
        message = f"No table job_publications in {', '.join(shown) or 'any schema'}. {remedy}"
        raise WarehouseError(message)
    jobs = {schema: "jobs" if (schema, "jobs") in places else "job_details" for schema in shown}
    expressions = {
        "loaded_publications": _united(
            places, dict.fromkeys(shown, "job_publications"), PUBLICATION
        ),
        "publications": "select * from loaded_publications"
        + EARLIER * (("analytics", "publication_periods") in places),
        "loaded_jobs": _united(places, jobs, JOB),
        "jobs": "select * from loaded_jobs" + KNOWN_BY_DBT * (("analytics", "jobs_ever") in places),
        "edits": EDITS,
    }
    has_edits = ("analytics", "job_changes") in places
    if not has_edits:
        expressions["edits"] = _united({}, {"": ""}, EDIT)
    common = ",\n".join(f"{name} as ({sql})" for name, sql in expressions.items())
    tables: dict[str, Table | None] = {}
    for name in SHOWN:
        answer = run(f"with {common},\n{NUMBERS}\nselect * from {name}")  # SHOWN
        columns = [column[0] for column in answer.description]
        rows = [list(map(_value, row)) for row in answer.fetchall()]
        tables[name] = {"columns": columns, "rows": rows}
    return tables if has_edits else tables | {"latest_edits": None}


def _united(places: Places, tables: Mapping[str, str], kinds: Mapping[str, str]) -> str:
    """Unite one table of all schemas; a column or a table that is not there has only nulls."""
    selects = []
    for schema, table in tables.items():
        columns = places.get((schema, table), {})
        values = [
            f"cast({columns.get(_plain(column), 'null')} as {kind}) as {column}"
            for column, kind in ({"id": "text"} | dict(kinds)).items()
        ]
        source = f"from {_quoted(schema)}.{table}" if columns else "where false"
        selects.append(f"select {_literal(schema)} as organisation, {', '.join(values)} {source}")
    return "\nunion all ".join(selects)


def _plain(column: str) -> str:
    return column.replace("_", "").lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _value(value: object) -> object:
    """Return what JSON has: times are milliseconds, as browsers count them."""
    if isinstance(value, dt.datetime):
        return round(value.replace(tzinfo=dt.UTC).timestamp() * 1000)
    if isinstance(value, Decimal | float):
        return int(value) if value == int(value) else round(float(value), 4)
    return value


def page(tables: dict[str, Table | None]) -> str:
    """Return the page, in which no text of a job can end the script that holds it."""
    import vl_convert  # noqa: PLC0415  # 88 MB, and who reads the numbers alone needs none of it

    themes = {name: _config(theme) for name, theme in THEMES.items()}
    data = json.dumps(
        {"charts": CHARTS, "themes": themes, "tables": tables}, separators=(",", ":")
    ).replace("<", "\\u003c")
    template = (FOLDER / "page.html").read_text("utf-8")
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return template.replace("{{ library }}", library).replace("{{ data }}", data)


def draw(tables: dict[str, Table | None], folder: Path) -> list[Path]:
    """Draw all charts in one picture, for light pages and for dark ones.

    Args:
        tables: What `read` returns.
        folder: Where the two files go.
    """
    import vl_convert  # noqa: PLC0415  # as above

    charts = []
    for name, spec in CHARTS.items():
        table = tables[name] or {"columns": [], "rows": []}
        values = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        values = [row for row in values if row["choice"] == 0]
        title = spec["title"]
        if name == "pay":  # amounts in different currencies do not compare
            roles: collections.Counter[str] = collections.Counter()
            for row in values:
                roles[row["currency"]] += row["roles"]
            currency = max(roles, key=roles.__getitem__, default="no amount")
            values = [row for row in values if row["currency"] == currency]
            title += f", {currency}"
        charts.append(spec | {"title": title, "width": 400, "data": {"values": values}})
    alone = {"resolve": {"legend": {"color": "independent"}, "scale": {"color": "independent"}}}
    rows = [{"hconcat": row} | alone for row in (charts[:2], charts[2:])]
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, theme in THEMES.items():
        files.append(folder / f"dashboard-{name}.svg")
        files[-1].write_text(
            vl_convert.vegalite_to_svg({"vconcat": rows} | alone, config=_config(theme)), "utf-8"
        )
    return files


def _config(theme: dict[str, str]) -> dict[str, Any]:
    """Return the look of the charts; their background shows through."""
    text = {"labelColor": theme["text"], "titleColor": theme["text"]}
    return {
        "background": None,
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": text
        | {"labelOverlap": "greedy", "labelSeparation": 8}
        | {"gridColor": theme["line"], "domainColor": theme["line"], "tickColor": theme["line"]},
        "legend": text,
        "title": {"color": theme["text"], "anchor": "start", "fontSize": 14},
        "text": {"color": theme["text"]},
        "range": {"category": [theme["first"], theme["second"]]},
        "mark": {"color": theme["first"]},
    }


if __name__ == "__main__":
    main()
