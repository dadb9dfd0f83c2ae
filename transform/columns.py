# ruff: noqa: INP001  # a script in a folder that dbt owns
"""Writes what every column means, from the tap's schemas and the descriptions of the models.

`uv run python transform/columns.py` writes the sources of the dbt project and docs/columns.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tap_public_jobs.records.naming import column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY = Path(__file__).parents[1]
SCHEMAS = REPOSITORY / "tap_public_jobs" / "schemas"
MARTS = REPOSITORY / "transform" / "models" / "marts" / "marts.yml"
SOURCES = REPOSITORY / "transform" / "models" / "staging" / "sources.yml"
DICTIONARY = REPOSITORY / "docs" / "columns.md"

RAW_TABLES = ("jobs", "job_details", "job_publications")
TYPES = {
    "string": ("varchar", "text"),
    "date-time": ("timestamp", "timestamp"),
    "number": ("double", "numeric"),
    "object": ("json", "jsonb"),
    "array": ("json", "jsonb[]"),
}
"""What target-duckdb and target-postgres make of each type."""

LATEST_LISTING = """\
select min(listed_at) from (
{%- for schema in schemas() %}
select max(greatest(last_seen_at, unpublished_at)) as listed_at
from {{ this.incorporate(path={'schema': schema}) }}
{% if not loop.last %}union all{% endif %}
{%- endfor %}
) as latest
"""
"""Of several organisations, the one whose list was read longest ago."""

IN_DUCKDB = {"text": "varchar", "double precision": "double"}
"""DuckDB's names of the types of the final tables, where they differ from PostgreSQL's."""

INTRODUCTION = """\
# Every column

`uv run python transform/columns.py` writes this page, from the schemas of the tap and \
the descriptions of the dbt models.

## Which table to ask

- To ask what is published now, take `analytics.open_jobs`: \
one row for each published job, with its summary and its detail.
- To ask what happened, take `analytics.publication_periods`, `job_changes` or \
`daily_open_jobs`.
- Without dbt, take `jobs` for the summary and `job_details` for the rest, \
both joined with `job_publications` by the rule for published jobs.
- `job_details` repeats the columns of `jobs`. \
Take them from `jobs`: a run reads the whole list, \
and under `detail_refresh: changed` a detail may be some days older.
- `job_details` may lack a job whose detail could not be fetched. \
`jobs` has every published job after each complete run.

Names are those of `column_naming: snake_case`, which `meltano.yml` sets.
"""


def main() -> None:
    """Write both files."""
    SOURCES.write_text(sources(), "utf-8")
    DICTIONARY.write_text(dictionary(), "utf-8")


def sources() -> str:
    """Return the sources of the dbt project."""
    tables = []
    for name in RAW_TABLES:
        schema = schema_of(name)
        columns = [
            {"name": column_of(field, "snake_case"), "description": sub["description"]}
            for field, sub in schema["properties"].items()
        ]
        table = {"name": name, "description": schema["description"], "columns": columns}
        if name == "job_publications":
            # Says when the list was last read whole, and is there on every target.
            table["config"] = {
                "loaded_at_query": LATEST_LISTING,
                "freshness": {"warn_after": {"count": 36, "period": "hour"}},
            }
        tables.append(table)
    source = {
        "name": "public_jobs",
        "description": "What tap-public-jobs loads.",
        # Other organisations are in schemas of their own: the macro `raw` unites them.
        "schema": "{%- set given = "
        "var('schemas', env_var('PUBLIC_JOBS_SCHEMAS', 'public_jobs')) -%}"
        "{{ (given.split(',') if given is string else given)[0] | trim }}",
        "tables": tables,
    }
    text = yaml.safe_dump({"sources": [source]}, sort_keys=False, allow_unicode=True, width=100)
    return (
        f"# Written by `uv run python transform/columns.py` from tap_public_jobs/schemas.\n{text}"
    )


def dictionary() -> str:
    """Return the page of all columns."""
    parts = [INTRODUCTION, "## Final tables: schema `analytics`\n"]
    parts += [_final_table(model) for model in yaml.safe_load(MARTS.read_text("utf-8"))["models"]]
    parts.append("## Raw tables: schema `public_jobs`\n")
    parts += [_raw_table(name) for name in RAW_TABLES]
    return "\n".join(parts)


def schema_of(table: str) -> dict[str, Any]:
    """Return the JSON schema of a raw table."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{table}.json").read_text("utf-8"))
    return schema


def _final_table(model: dict[str, Any]) -> str:
    rows = []
    for column in model["columns"]:
        kind = column["data_type"]
        rows.append((column["name"], IN_DUCKDB.get(kind, kind), kind, column["description"]))
    return _table(model, ("column", "DuckDB", "PostgreSQL", "meaning"), rows)


def _raw_table(name: str) -> str:
    schema = schema_of(name)
    rows = []
    for field, sub in schema["properties"].items():
        kinds = [sub["type"]] if isinstance(sub["type"], str) else sub["type"]
        kind = sub.get("format") or next(kind for kind in kinds if kind != "null")
        rows.append((column_of(field, "snake_case"), *TYPES[kind], field, sub["description"]))
    head = ("column", "DuckDB", "PostgreSQL", "field", "meaning and source in the API")
    return _table({"name": name, **schema}, head, rows)


def _table(about: dict[str, Any], head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"### `{about['name']}`", "", about["description"].strip(), ""]
    lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for *names, meaning in rows:
        lines.append(f"| {' | '.join(f'`{name}`' for name in names)} | {meaning.strip()} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
