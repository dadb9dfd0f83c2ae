"""The final tables, made without dbt, with the rows that a test wants."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import yaml

from transform.columns import MARTS

Row = dict[str, Any]
Tables = dict[str, list[Row]]

KEY: Row = {"organisation": "acme", "job_key": "acme/1", "id": "1"}


def make(execute: Callable[[str], Any], tables: Tables, schema: str = "analytics") -> None:
    """Make all final tables as the dbt project describes them; those not given are empty."""
    execute(f"create schema {schema}")
    for model in yaml.safe_load(MARTS.read_text("utf-8"))["models"]:
        name = model["name"].removeprefix("public_jobs__")
        table = f"{schema}.{name}"
        columns = ", ".join(f"{it['name']} {it['data_type']}" for it in model["columns"])
        execute(f"create table {table} ({columns})")
        for row in tables.get(name, ()):
            values = ", ".join(f"'{value}'" for value in row.values())
            execute(f"insert into {table} ({', '.join(row)}) values ({values})")  # noqa: S608


def edited(counts: dict[str, int]) -> Tables:
    """The tables with a role in each department that was edited so often; the first last."""
    listing = {"organisation": "acme", "listed_at": "2026-11-29 04:00", "is_latest": True}
    tables: Tables = {"listings": [listing], "jobs_ever": [], "job_changes": []}
    for place, (department, count) in enumerate(counts.items()):
        job = KEY | {"job_key": department, "id": department}
        tables["jobs_ever"].append(job | {"public_id": department, "department": department})
        change = job | {"changed_by": dt.date(2026, 11, 28) - dt.timedelta(days=place)}
        tables["job_changes"] += [change | {"field": f"field {it:04}"} for it in range(count)]
    return tables
