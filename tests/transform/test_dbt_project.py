"""The dbt project and its pages, held against the tap, and where dbt finds the database."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
import yaml
from transform.warehouses import TRANSFORM, command, plugin

from tap_public_jobs.records.naming import named
from transform.columns import MARTS, RAW_TABLES, SOURCES, schema_of, written

RENDER = """
import json, sys, yaml
from dbt.config.renderer import ProfileRenderer
from dbt_common.context import set_invocation_context
set_invocation_context(json.loads(sys.argv[2]))
with open(sys.argv[1], encoding="utf-8") as file:
    outputs = yaml.safe_load(file)["public_jobs"]["outputs"]
print(json.dumps(ProfileRenderer({}).render_data(outputs["postgres"])))
"""


@pytest.mark.parametrize("table", RAW_TABLES)
def test_a_source_has_the_columns_and_the_words_of_the_schema(table: str) -> None:
    (source,) = yaml.safe_load(SOURCES.read_text("utf-8"))["sources"]
    described = {it["name"]: it for it in source["tables"]}

    schema = named(schema_of(table), "snake_case")

    assert described[table]["description"] == schema["description"]
    assert [(it["name"], it["description"]) for it in described[table]["columns"]] == [
        (name, sub["description"]) for name, sub in schema["properties"].items()
    ]


def test_every_file_that_columns_py_writes_is_up_to_date() -> None:
    for file, text in written().items():
        assert file.read_text("utf-8") == text


def test_the_snapshots_compare_every_column_of_the_raw_tables() -> None:
    """Else a change of the forgotten one would be in no history."""
    snapshots = yaml.safe_load((TRANSFORM / "snapshots" / "history.yml").read_text("utf-8"))
    compared = {it["name"]: set(it["config"]["check_cols"]) for it in snapshots["snapshots"]}
    columns = {
        table: set(named(schema_of(table), "snake_case")["properties"]) for table in RAW_TABLES
    }
    only_detail = columns["job_details"] - columns["jobs"] | {"additional_fields"}

    assert compared["job_history"] == columns["jobs"] - {"id"}
    assert compared["job_detail_history"] == only_detail
    # Of a period that lasts, only this one changes.
    in_publications = columns["job_publications"] - {"id", "last_seen_at"} | {"is_published"}
    assert compared["publication_history"] == in_publications


def test_every_final_table_is_described() -> None:
    described = {it["name"] for it in yaml.safe_load(MARTS.read_text("utf-8"))["models"]}
    assert described == {path.stem for path in MARTS.parent.glob("*.sql")}


def test_both_utilities_take_the_same_dbt() -> None:
    """And the DuckDB of the target, because a newer one creates files that it cannot open."""
    of_duckdb, of_postgres = (
        plugin("utilities", name)["pip_url"].split() for name in ("dbt-duckdb", "dbt-postgres")
    )
    assert of_duckdb[0] == of_postgres[0]
    assert of_duckdb[-1] == plugin("loaders", "target-duckdb")["pip_url"].split()[-1]
    assert re.fullmatch(r"duckdb==[\d.]+", of_duckdb[-1])


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {
                "TARGET_POSTGRES_SQLALCHEMY_URL": "postgresql+psycopg://analyst:p%40ss%2Fw%25"
                "@db.example.com:6543/jobs?sslmode=require"
            },
            {
                "host": "db.example.com",
                "port": 6543,
                "user": "analyst",
                "password": "p@ss/w%",
                "dbname": "jobs",
                "sslmode": "require",
            },
        ),
        (
            {
                "TARGET_POSTGRES_SQLALCHEMY_URL": "postgresql+psycopg://postgres:0123@/postgres"
                "?host=/tmp/socket"
            },
            {
                "host": "/tmp/socket",  # noqa: S108  # a name; nothing is there
                "port": 5432,
                "user": "postgres",
                "password": "0123",
                "dbname": "postgres",
                "sslmode": "prefer",
            },
        ),
        (
            {
                "TARGET_POSTGRES_HOST": "localhost",
                "TARGET_POSTGRES_PORT": "5433",
                "TARGET_POSTGRES_USER": "analyst",
                "TARGET_POSTGRES_PASSWORD": "100%25",
                "TARGET_POSTGRES_DATABASE": "jobs",
            },
            {
                "host": "localhost",
                "port": 5433,
                "user": "analyst",
                "password": "100%25",
                "dbname": "jobs",
                "sslmode": "prefer",
            },
        ),
    ],
    ids=["URL", "URL of a socket", "parts"],
)
def test_dbt_finds_the_database_of_the_loader(
    variables: dict[str, str], expected: dict[str, Any]
) -> None:
    python = command("utilities", "dbt-postgres").parent / "python"
    profiles = TRANSFORM / "profiles.yml"
    text = subprocess.check_output(
        [python, "-c", RENDER, profiles, json.dumps(variables)], text=True
    )
    found = json.loads(text)
    assert {name: found[name] for name in expected} == expected
