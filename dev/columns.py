"""Writes what every column means, from the tap's schemas and the descriptions of the models.

`uv run python dev/columns.py` writes the sources of the dbt project, the names of its columns
and two pages: docs/query/columns.md and docs/query/dictionary.md. Models and snapshots take every
field of the schemas from there.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tap_public_jobs.singer.columns import OTHERS
from tap_public_jobs.singer.naming import column_of
from tap_public_jobs.streams import QUESTIONS

REPOSITORY = Path(__file__).parents[1]
SCHEMAS = REPOSITORY / "tap_public_jobs" / "schemas"
TRANSFORM = REPOSITORY / "pipeline" / "transform"
MARTS = TRANSFORM / "models" / "marts" / "marts.yml"
SEEDS = TRANSFORM / "seeds" / "seeds.yml"
SOURCES = TRANSFORM / "models" / "staging" / "sources.yml"
SNAPSHOTS = TRANSFORM / "snapshots" / "history.yml"
FIELDS = TRANSFORM / "macros" / "fields.sql"
RAW_COLUMNS = REPOSITORY / "docs/query/columns.md"
DICTIONARY = REPOSITORY / "docs/query/dictionary.md"

WITH_EXTRA_FIELDS = ("open_jobs", "jobs_ever", "job_versions")
RAW_TABLES = ("jobs", "job_details", "job_publications")
TYPES = {
    "string": "text",
    "date-time": "time",
    "double precision": "number",
    "bigint": "whole number",
    "timestamp": "time",
}
"""What the pages call a type of the schemas or of the models, if they do not keep its name."""

JSON_TEXT = {column_of(field, "snake_case") for field in (QUESTIONS, OTHERS)}
"""Columns of text that hold JSON."""

IN_MARTS = {
    "location": "Where the job is, as the API spells it; one place may have several spellings, "
    "for which the seed locations has one city and country.",
    "department": "Department that the job belongs to. After a rename, closed jobs and earlier "
    "versions keep the old name until the seed departments has it.",
}
"""Fields whose meaning in the final tables has more to it than in the raw ones."""

LATEST_LISTING = """\
select min(listed_at) from (
{%- for schema in schemas() %}
select max(coalesce(unpublished_at, last_seen_at)) as listed_at
from {{ this.incorporate(path={'schema': schema}) }}
{% if not loop.last %}union all{% endif %}
{%- endfor %}
) as latest
"""
"""Of several organisations, the one whose list was read longest ago."""

GIVEN = (
    "{%- set given = var('schemas', env_var('PUBLIC_JOBS_SCHEMAS', 'public_jobs')) -%}"
    "{%- set schemas = given.split(',') if given is string else given -%}"
)
"""The schemas, in Jinja: the schema of a source is rendered before macros are known."""

RAW_PAGE = """\
# Raw columns

The columns of the tables that the tap loads, in the schema `public_jobs`.
Each is listed once, with the tables that have it.
The columns of dbt's tables are in the [Dictionary](dictionary.md).

The names are those of `column_naming: snake_case`, which the template sets; \
the tap's own default, `source`, keeps the names of the API's fields.
[Targets](../set-up/targets.md) shows what each warehouse makes of the types, \
and [SQL](sql.md#one-row-of-each-table) one row of each table.

<!-- columns: begin -->

{table}
<!-- columns: end -->

A detail repeats the fields of its summary.
Take those from `jobs`, because a run reads the whole list, \
while under `detail_refresh: changed` a detail may be some days older.

`uv run python dev/columns.py` writes this page from the tap's schemas.
"""

DICTIONARY_PAGE = """\
# Dictionary of `analytics`

Every table that dbt builds in the schema `analytics`, every column, \
and [what a null means](#what-a-null-means).
[Tables for analysts](analysts.md) says which table answers which question, \
and [Dates](dates.md) how their dates belong together.
A *period* is one time that a job was published, \
a *listing* a run that read the whole list, and *now* the latest listing.
A *build* is one run of dbt; [Words](../words.md) has the rest.

The database has the same descriptions as comments.
`\\d+ analytics.open_jobs` in psql shows them, and in DuckDB \
`select table_name, column_name, comment from duckdb_columns() where schema_name = 'analytics'`.

As a site of dbt's own, with the lineage of each table, in the clone:

```bash
uvx --from 'meltano~=4.4' meltano invoke dbt-duckdb docs generate --static
```

Open `.meltano/dbt/duckdb/static_index.html` in a browser.
In a project of the template, begin with `.venv/bin/meltano invoke`; \
on PostgreSQL, write `postgres` for `duckdb`, in the path too.

## What a null means

- *A salary or another number:* the API sent none, or something that is not a number, \
which is then in `additional_fields`.
  A salary of 0 stays in `min_salary` and `max_salary`, \
and counts as missing in all other columns of pay.
- *`annual_…`:* nobody knows what the salary is paid for: \
see [Salaries](../../pipeline/transform/README.md#salaries).
  Whether it is gross or net, the API doesn't say.
- *A text:* the API sent none, or an empty one.
- *A field of details, such as `role_overview`:* as above, \
or the detail could not be fetched yet: see [Gaps](../operate/gaps.md).
- *A column that a later version added:* the job had closed before.
- *A date:* see [Dates](dates.md#what-a-null-means).

A `location` is one text, even if it names several places, so each job has one row.

<!-- dictionary: begin -->
{tables}
<!-- dictionary: end -->

`uv run python dev/columns.py` writes this page \
from `marts.yml` and `seeds.yml` in `pipeline/transform/`.
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
        FIELDS: _macros(fields, marts),
        SNAPSHOTS: snapshots,
        MARTS: marts,
        RAW_COLUMNS: raw_columns(),
        DICTIONARY: dictionary(marts),
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


def _macros(fields: dict[str, dict[str, str]], marts: str) -> str:
    lines = ["{# Written by `uv run python dev/columns.py` from tap_public_jobs/schemas. #}"]
    lines += ["{% macro fields() %}", "    {{ return({"]
    for table, columns in fields.items():
        names = ",\n".join(f"            '{name}': '{group}'" for name, group in columns.items())
        lines.append(f"        '{table}': {{\n{names}\n        }},")
    lines += ["    }) }}", "{% endmacro %}", "", ""]
    own = {
        column["name"]
        for model in yaml.safe_load(marts)["models"]
        if model["name"].removeprefix("public_jobs__") in WITH_EXTRA_FIELDS
        for column in model["columns"]
    }
    lines += ["{# The columns of the tables that have extra_fields, too. #}"]
    lines += ["{% macro own_columns() %}", "    {{ return(["]
    lines += [f"        '{name}'," for name in sorted(own)]
    return "\n".join([*lines, "    ]) }}", "{% endmacro %}", ""])


def _described(table: str, columns: Sequence[str]) -> list[str]:
    lines = []
    for name in columns:
        _, sub = columns_of(table)[name]
        words = IN_MARTS.get(name, sub["description"]).replace(", exact", "")  # they are doubles
        lines += [
            f"      - &{name}",
            f"        name: {name}",
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
            "identifier": f"{{{{ var('table_names', {{}}).get('{name}', '{name}') }}}}",
            "description": schema_of(name)["description"],
            "columns": columns,
        }
        if name == "job_publications":
            # Says when the list was last read whole, and is there on every target.
            table["config"] = {
                "loaded_at_query": LATEST_LISTING,
                "freshness": {
                    "warn_after": {"count": 36, "period": "hour"},
                    "error_after": {"count": 72, "period": "hour"},
                },
            }
        tables.append(table)
    source = {
        "name": "public_jobs",
        "description": "What tap-public-jobs loads.",
        # Other organisations are in schemas of their own: the macro `raw` unites them.
        "schema": GIVEN + "{{ schemas[0] | trim }}",
        "database": "{{ var('database', target.database) }}",
        "tables": tables,
    }
    text = yaml.safe_dump({"sources": [source]}, sort_keys=False, allow_unicode=True, width=100)
    return f"# Written by `uv run python dev/columns.py` from tap_public_jobs/schemas.\n{text}"


def raw_columns() -> str:
    """Return the page of all columns of the tap's tables."""
    tables: dict[str, list[str]] = {}
    rows: dict[str, tuple[str, str, str]] = {}
    for table in RAW_TABLES:
        for column, (field, sub) in columns_of(table).items():
            tables.setdefault(column, []).append(table)
            if column not in rows or table == "job_details":  # has the longest description
                rows[column] = field, TYPES.get(_kind(sub), _kind(sub)), sub["description"]
    lines = ["| column | field | type | tables | meaning |", f"|{' --- |' * 5}"]
    for column, (field, kind, meaning) in rows.items():
        found = tables[column]
        where = "all" if len(found) == len(RAW_TABLES) else ", ".join(f"`{it}`" for it in found)
        lines.append(f"| `{column}` | `{field}` | {kind} | {where} | {meaning} |")
    return RAW_PAGE.format(table="\n".join([*lines, ""]))


def dictionary(marts: str) -> str:
    """Return the page of all columns of the final tables.

    Args:
        marts: The text of marts.yml.
    """
    lines = []
    models = yaml.safe_load(marts)["models"] + yaml.safe_load(SEEDS.read_text("utf-8"))["seeds"]
    for model in models:
        name = model["name"].removeprefix("public_jobs__")
        lines += ["", f"## `{name}`", "", model["description"].strip().replace("\n", " "), ""]
        lines += ["| column | type | meaning |", f"|{' --- |' * 3}"]
        for column in model["columns"]:
            kind = TYPES.get(column["data_type"], column["data_type"])
            meaning = " ".join(column["description"].split())
            lines.append(f"| `{column['name']}` | {kind} | {meaning} |")
    return DICTIONARY_PAGE.format(tables="\n".join([*lines, ""]))


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


if __name__ == "__main__":
    main()
