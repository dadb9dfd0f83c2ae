"""Warehouses with some weeks of the sandbox's jobs, as syncs and dbt leave them."""

import datetime as dt
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from e2e.stores import FIELDS, TABLES
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from support.warehouses import HISTORY_ALONE, WITHOUT_TESTS, DuckDB

Row = dict[str, Any]
Tables = dict[str, list[Row]]

FIRST = dt.datetime(2026, 8, 3, 4)  # noqa: DTZ001  # as warehouses hold it: UTC without a zone
WEEK = dt.timedelta(weeks=1)
OPEN_AT_FIRST, CLOSE_IN_A_WEEK, MOST_OPENINGS = 60, 0.09, 11


def run_page(*arguments: str | Path) -> str:
    """Run the dashboard as its users do, in an environment of its own; return what it says."""
    script = str(Path(__file__).parents[2] / "dashboard" / "page.py")
    command = [*uv_command(), "run", "--quiet", "--script", script, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def history(
    weeks: int, organisation: str = "Halden Robotics", *, first: int = 0
) -> Iterator[Tables]:
    """Yield the raw tables after each sync: each week some roles close, open and are edited.

    Args:
        weeks: How many syncs.
        organisation: Whose jobs.
        first: The week of the first one.
    """
    random = Random(organisation)  # noqa: S311
    new = iter(make_jobs(OPEN_AT_FIRST + MOST_OPENINGS * weeks, organisation=organisation))
    jobs: dict[str, Row] = {}
    publications: list[Row] = []
    for week in range(weeks):
        listed_at = FIRST + (first + week) * WEEK
        for it in publications:
            if it["unpublishedAt"] is None:
                if random.random() < CLOSE_IN_A_WEEK:
                    it["unpublishedAt"] = listed_at
                else:
                    it["lastSeenAt"] = listed_at
        if week:
            edited = random.choice([it for it in publications if it["unpublishedAt"] is None])
            jobs[edited["id"]]["maxSalary"] += 5000
        for _ in range(random.randint(0, MOST_OPENINGS) if week else OPEN_AT_FIRST):
            job = next(new)
            jobs[job["id"]] = job | {"salaryPeriod": "year"}
            times = (listed_at - WEEK if week else None, listed_at, listed_at, None)
            values = (job["id"], job["publicId"], *times)
            publications.append(dict(zip(FIELDS["job_publications"], values, strict=True)))
        yield {"jobs": list(jobs.values()), "job_publications": publications}


def load(warehouse: DuckDB, tables: Tables, schema: str = "public_jobs") -> None:
    """Make the raw tables of an organisation anew, by the DuckDB that dbt has."""
    statements = [f'create schema if not exists "{schema}"']
    for table, rows in (tables | {"job_details": tables["jobs"]}).items():
        file = warehouse.folder / f"{table}.json"
        values = []
        for row in rows:
            others = {"salaryPeriod": row.get("salaryPeriod")}
            whole = row | {
                "knockoutQuestions": json.dumps(row.get("knockoutQuestions")),
                "additionalFields": json.dumps(others),
            }
            values.append({column: whole.get(name) for name, column in FIELDS[table].items()})
        file.write_text(json.dumps(values, default=str), "utf-8")
        kinds = {column: warehouse.target.types[kind] for column, kind in TABLES[table].items()}
        statements.append(
            f'create or replace table "{schema}".{table} as '  # noqa: S608
            f"select * from read_json('{file}', format='array', columns={kinds})"
        )
    warehouse.run("; ".join(statements))


def build(warehouse: DuckDB, *schemas: str, only: Sequence[str] = WITHOUT_TESTS) -> None:
    """Make the final tables of these organisations."""
    warehouse.build("--vars", json.dumps({"schemas": schemas or ["public_jobs"]}), *only)


def play(warehouse: DuckDB, weeks: int) -> Tables:
    """Sync and build each week; return the raw tables after the last."""
    for week, tables in enumerate(history(weeks), start=1):
        load(warehouse, tables)
        build(warehouse, only=HISTORY_ALONE if week < weeks else WITHOUT_TESTS)
    return tables
