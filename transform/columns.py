# ruff: noqa: INP001  # a script in a folder that dbt owns
"""Writes what every column means, from the tap's schemas and the descriptions of the models.

`uv run python transform/columns.py` writes the sources of the dbt project, the names of its columns
and docs/columns.md. Models and snapshots take every field of the schemas from there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tap_public_jobs.records.columns import OTHERS, QUESTIONS
from tap_public_jobs.records.naming import column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY = Path(__file__).parents[1]
SCHEMAS = REPOSITORY / "tap_public_jobs" / "schemas"
TRANSFORM = REPOSITORY / "transform"
MARTS = TRANSFORM / "models" / "marts" / "marts.yml"
SOURCES = TRANSFORM / "models" / "staging" / "sources.yml"
SNAPSHOTS = TRANSFORM / "snapshots" / "history.yml"
FIELDS = TRANSFORM / "macros" / "fields.sql"
DICTIONARY = REPOSITORY / "docs" / "columns.md"

RAW_TABLES = ("jobs", "job_details", "job_publications")
TYPES = {
    "string": ("varchar", "text"),
    "date-time": ("timestamp", "timestamp"),
    "number": ("double", "numeric"),
    "integer": ("bigint", "bigint"),
    "boolean": ("boolean", "boolean"),
}
"""What target-duckdb and target-postgres make of each type."""

JSON_TEXT = {column_of(field, "snake_case") for field in (QUESTIONS, OTHERS)}
"""Columns of text that hold JSON."""

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

GIVEN = (
    "{%- set given = var('schemas', env_var('PUBLIC_JOBS_SCHEMAS', 'public_jobs')) -%}"
    "{%- set schemas = given.split(',') if given is string else given -%}"
)
"""The schemas, in Jinja: the schema of a source is rendered before macros are known."""

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
    """Write all files."""
    for file, text in written().items():
        file.write_text(text, "utf-8")


def written() -> dict[Path, str]:
    """Return what each file has to hold."""
    fields = new_fields()
    snapshots, marts = SNAPSHOTS.read_text("utf-8"), MARTS.read_text("utf-8")
    for table, columns in fields.items():
        names = [*columns, "additional_fields"]
        snapshots = _with_part(snapshots, table, [f"        - {name}" for name in names])
        marts = _with_part(marts, table, _described(table, list(columns)))
    return {
        SOURCES: sources(),
        FIELDS: _macro(fields),
        SNAPSHOTS: snapshots,
        MARTS: marts,
        DICTIONARY: dictionary(yaml.safe_load(marts)["models"]),
    }


def new_fields() -> dict[str, dict[str, str]]:
    """Return the columns of a summary, and those that only a detail has, with their groups."""
    found: dict[str, dict[str, str]] = {}
    known = {"id", "additional_fields"}
    for table in ("jobs", "job_details"):
        found[table] = {
            column: _group(column, sub)
            for column, (_, sub) in columns_of(table).items()
            if column not in known
        }
        known |= found[table].keys()
    return found


def _macro(fields: dict[str, dict[str, str]]) -> str:
    lines = ["{# Written by `uv run python transform/columns.py` from tap_public_jobs/schemas. #}"]
    lines += ["{% macro fields() %}", "    {{ return({"]
    for table, columns in fields.items():
        names = ",\n".join(f"            '{name}': '{group}'" for name, group in columns.items())
        lines.append(f"        '{table}': {{\n{names}\n        }},")
    return "\n".join([*lines, "    }) }}", "{% endmacro %}", ""])


def _described(table: str, columns: Sequence[str]) -> list[str]:
    lines = []
    for name in columns:
        _, sub = columns_of(table)[name]
        # Without the section of the API page. Numbers are doubles here, and so not exact.
        words = re.sub(r' \("[^"]+"\)|, exact', "", sub["description"])
        lines += [
            f"      - name: {name}",
            f"        data_type: {'double precision' if _group(name, sub) == 'number' else 'text'}",
            f"        description: {json.dumps(words, ensure_ascii=False)}",
        ]
    return lines


def _with_part(text: str, table: str, lines: Sequence[str]) -> str:
    """Put lines between the two comments that mark the fields of a table."""
    marks = rf"( *# Fields of {table}, written by columns\.py:\n).*?( *# End of these\.\n)"
    body = "".join(f"{line}\n" for line in lines)
    return re.sub(marks, lambda found: found[1] + body + found[2], text, flags=re.DOTALL)


def sources() -> str:
    """Return the sources of the dbt project."""
    tables = []
    for name in RAW_TABLES:
        columns = [
            {"name": column, "description": sub["description"]}
            for column, (_, sub) in columns_of(name).items()
        ]
        table = {
            "name": name,
            "description": schema_of(name)["description"],
            "columns": columns,
        }
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
        "schema": GIVEN + "{{ schemas[0] | trim }}",
        "tables": tables,
    }
    text = yaml.safe_dump({"sources": [source]}, sort_keys=False, allow_unicode=True, width=100)
    return (
        f"# Written by `uv run python transform/columns.py` from tap_public_jobs/schemas.\n{text}"
    )


def dictionary(final_tables: Sequence[dict[str, Any]]) -> str:
    """Return the page of all columns, given the models of the final tables."""
    parts = [INTRODUCTION, "## Final tables: schema `analytics`\n"]
    parts += [_final_table(model) for model in final_tables]
    parts.append("## Raw tables: schema `public_jobs`\n")
    parts += [_raw_table(name) for name in RAW_TABLES]
    return "\n".join(parts)


def schema_of(table: str) -> dict[str, Any]:
    """Return the JSON schema of a raw table."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{table}.json").read_text("utf-8"))
    return schema


def columns_of(table: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the field of each column of a raw table, and its schema."""
    return {
        column_of(field, "snake_case"): (field, sub)
        for field, sub in schema_of(table)["properties"].items()
    }


def _kind(schema: dict[str, Any]) -> str:
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return str(schema.get("format") or next(kind for kind in kinds if kind != "null"))


def _group(column: str, schema: dict[str, Any]) -> str:
    """Return how the models treat a column."""
    if column in JSON_TEXT:
        return "json"
    return "number" if _kind(schema) in {"number", "integer"} else "text"


def _final_table(model: dict[str, Any]) -> str:
    rows = []
    for column in model["columns"]:
        kind = column["data_type"]
        rows.append((column["name"], IN_DUCKDB.get(kind, kind), kind, column["description"]))
    return _table(model, ("column", "DuckDB", "PostgreSQL", "meaning"), rows)


def _raw_table(name: str) -> str:
    rows = [
        (column, *TYPES[_kind(sub)], field, sub["description"])
        for column, (field, sub) in columns_of(name).items()
    ]
    head = ("column", "DuckDB", "PostgreSQL", "field", "meaning and source in the API")
    return _table({"name": name, **schema_of(name)}, head, rows)


def _table(about: dict[str, Any], head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"### `{about['name']}`", "", about["description"].strip(), ""]
    lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for *names, meaning in rows:
        lines.append(f"| {' | '.join(f'`{name}`' for name in names)} | {meaning.strip()} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
