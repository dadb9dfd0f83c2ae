"""Thirteen weeks of the sandbox's jobs in a DuckDB file, as weekly syncs leave them.

`python -m tests.browser.weeks FILE` makes the warehouse of the picture in README.md.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs, summary

from tap_public_jobs.records.naming import column_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tap_public_jobs.records.naming import Naming

Row = dict[str, Any]

FIRST = dt.datetime(2026, 8, 3, 4)  # noqa: DTZ001  # as warehouses hold it: UTC without a zone
WEEK = dt.timedelta(weeks=1)
OPEN_AT_FIRST, CLOSE_IN_A_WEEK, MOST_OPENINGS = 60, 0.09, 11
# By the end of a field's name.
TYPES = {"Salary": "double", "At": "timestamp", "After": "timestamp"}


def run_page(*arguments: str) -> str:
    """Run the dashboard as its users do, in an environment of its own; return what it says."""
    script = str(Path(__file__).parents[2] / "dashboard" / "page.py")
    command = [*uv_command(), "run", "--quiet", "--script", script, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def history(weeks: int = 13, organisation: str = "Halden Robotics") -> dict[str, list[Row]]:
    """Return the rows of the tables: each week some roles are closed, and some are opened."""
    random = Random(organisation)  # noqa: S311
    new = iter(make_jobs(OPEN_AT_FIRST + MOST_OPENINGS * weeks, organisation=organisation))
    jobs: list[Row] = []
    publications: list[Row] = []
    for week in range(weeks):
        listed_at = FIRST + week * WEEK
        for it in publications:
            if it["unpublishedAt"] is None:
                if random.random() < CLOSE_IN_A_WEEK:
                    it["unpublishedAt"] = listed_at
                else:
                    it["lastSeenAt"] = listed_at
        for _ in range(random.randint(0, MOST_OPENINGS) if week else OPEN_AT_FIRST):
            job = next(new)
            jobs.append(summary(job))
            publications.append({
                "id": job["id"],
                "publicId": job["publicId"],
                "openedAfter": listed_at - WEEK if week else None,
                "firstSeenAt": listed_at,
                "lastSeenAt": listed_at,
                "unpublishedAt": None,
            })  # fmt: skip
    return {"jobs": jobs, "job_publications": publications}


def load(
    file: str,
    tables: Mapping[str, list[Row]],
    schema: str = "public_jobs",
    naming: Naming = "snake_case",
) -> None:
    """Make the tables of an organisation in a DuckDB file."""
    with duckdb.connect(file) as connection:
        connection.execute(f'create schema "{schema}"')
        for table, rows in tables.items():
            columns = ", ".join(f'"{column_of(name, naming)}" {_type(name)}' for name in rows[0])
            connection.execute(f'create table "{schema}".{table} ({columns})')
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(
                f'insert into "{schema}".{table} values ({places})',  # noqa: S608
                [list(row.values()) for row in rows],
            )


def _type(field: str) -> str:
    return next((kind for end, kind in TYPES.items() if field.endswith(end)), "varchar")


if __name__ == "__main__":
    load(sys.argv[1], history())
