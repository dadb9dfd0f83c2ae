"""The project, held against the tap, and what users set: their own project, and organisations."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.pipeline import Settings, plugin, variables
from support.expected import TABLES, History, assert_holds
from support.portal import (
    FIRST_DAY,
    TRANSFORM,
    WITHOUT_TESTS,
    DuckDB,
    dbt_command,
    new_warehouse,
    opened,
)

from transform.columns import DICTIONARY, written

RENDER = """
import json, sys, yaml
from dbt.config.renderer import ProfileRenderer
from dbt_common.context import set_invocation_context
set_invocation_context(json.loads(sys.argv[2]))
with open(sys.argv[1], encoding="utf-8") as file:
    outputs = yaml.safe_load(file)["public_jobs"]["outputs"]
print(json.dumps(ProfileRenderer({}).render_data(outputs["postgres"])))
"""


def test_every_file_that_columns_py_writes_is_up_to_date() -> None:
    for file, text in written().items():
        assert file.read_text("utf-8") == text


def test_the_page_for_analysts_lists_every_table() -> None:
    built = set(re.findall(r"^## `(\w+)`$", DICTIONARY.read_text("utf-8"), re.MULTILINE))
    page = DICTIONARY.with_name("analysts.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

    assert built
    assert built <= set(listed)


def test_both_utilities_take_the_same_dbt() -> None:
    """And the DuckDB of the target, because a newer one creates files that it cannot open."""
    of_duckdb, of_postgres = (
        plugin("utilities", name)["pip_url"].split() for name in ("dbt-duckdb", "dbt-postgres")
    )
    assert of_duckdb[0] == of_postgres[0]
    assert of_duckdb[-1] == plugin("loaders", "target-duckdb")["pip_url"].split()[-1]
    assert re.fullmatch(r"duckdb==[\d.]+", of_duckdb[-1])


URL = (
    "postgresql+psycopg://m%C3%A9:p%40%C3%BC%2F%2B+w%25:1@db.example.com:6543/jobs?sslmode=require"
)
SOCKET = "postgresql+psycopg://me:0123@/jobs?host=/run/socket"
PARTS = {"host": "localhost", "port": 5433, "user": "me", "password": "100%25", "database": "jobs"}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"sqlalchemy_url": URL}, ("db.example.com", 6543, "mé", "p@ü/++w%:1", "jobs", "require")),
        ({"sqlalchemy_url": SOCKET}, ("/run/socket", 5432, "me", "0123", "jobs", "prefer")),
        (PARTS, ("localhost", 5433, "me", "100%25", "jobs", "prefer")),
    ],
    ids=["URL", "URL of a socket", "parts"],
)
def test_dbt_finds_the_database_of_the_loader(
    settings: Settings, expected: tuple[str | int, ...]
) -> None:
    python = dbt_command("dbt-postgres").with_name("python")
    profiles = TRANSFORM / "profiles.yml"
    given = json.dumps(variables("target-postgres", settings))
    text = subprocess.check_output([python, "-c", RENDER, profiles, given], text=True)
    found = json.loads(text)
    names = ("host", "port", "user", "password", "dbname", "sslmode")
    assert tuple(found[name] for name in names) == expected


KINDS = ("DuckDB", "PostgreSQL")
READER = "pg_monitor"  # a role that every server has
PROJECT = {
    "name": "my_project",
    "profile": "public_jobs",
    "vars": {
        "public_jobs": {
            "schemas": ["acme"],
            "table_names": {"jobs": "summaries"},
            "salary_period_field": "paidPer",
            "extra_fields": ["paidPer", "requiredSkills"],
            "locations": ["my_project", "locations"],
        }
    },
    "models": {
        "public_jobs": {"marts": {"+schema": "recruiting", "+grants": {"select": [READER]}}}
    },
    "snapshots": {"public_jobs": {"+schema": "kept"}},
}
# Names of the package's tables, which the project has, too.
MINE = ("stg_publications", "published_jobs", "listings", "open_jobs")
SESSION = """
{{ config(materialized='table') }}
-- depends_on: {{ ref('public_jobs', 'public_jobs__open_jobs') }}
select
    current_setting('TimeZone') as zone,
    {{ "current_setting('lock_timeout')" if target.type == 'postgres' else "'0'" }} as "limit"
"""
SUMMARIES = "create or replace view acme.summaries as select * from acme.jobs"


def taking_the_package(folder: Path) -> Path:
    """A project that takes the package from git, with models and a seed of its own."""
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", "-C", str(folder)]
    shutil.copytree(TRANSFORM, folder / "transform")
    for arguments in (["init", "-q"], ["add", "transform"], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *arguments], check=True)
    packages = {"packages": [{"git": str(folder), "subdirectory": "transform"}]}
    project = folder / "my_project"
    for name, content in {
        **{f"models/{name}.sql": f"select '{name}' as mine" for name in MINE},
        "models/session.sql": SESSION,
        "dbt_project.yml": json.dumps(PROJECT),
        "packages.yml": json.dumps(packages),
        "seeds/locations.csv": "location,city,country,is_remote\nSomewhere,Bern,CH,true\n",
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content, "utf-8")
    return project


@pytest.mark.e2e
@pytest.mark.parametrize("kind", KINDS)
def test_the_project_of_a_user_takes_the_package(
    kind: str, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a schema, variables and a grant of the user's own, and models of the same names.

    A macro that cleans otherwise rewrites the tables, and no history.
    """
    warehouse = new_warehouse(kind, tmp_path, new_database)
    warehouse.project = taking_the_package(tmp_path)
    warehouse.dbt("deps")

    with opened(warehouse, monkeypatch, "acme") as portal:
        portal.edit(0, jobTitle="Cook ", location="Somewhere", paidPer="hour", minSalary=10)
        portal.sync()
        warehouse.run(SUMMARIES)
        status, output = warehouse.dbt("build")
        assert status == 0, output
        assert " WARN=0 ERROR=0 SKIP=0 " in output
        assert "WARNING" not in output
        # The package sets the session of its own nodes, and not that of the user's.
        assert warehouse.rows("analytics.session") == [{"zone": "America/New_York", "limit": "0"}]
        for name in MINE:
            assert warehouse.rows(f"analytics.{name}") == [{"mine": name}]

        macros = warehouse.project / "dbt_packages" / "public_jobs" / "macros" / "columns.sql"
        text = "{% macro text(column) -%}"
        trimmed = f"{text} trim({{{{ text_before(column) }}}}) {{%- endmacro %}}"
        rest = macros.read_text("utf-8").replace(text, text.replace("text", "text_before"))
        macros.write_text(trimmed + rest, "utf-8")
        portal.day(2)
        portal.edit(1, jobTitle="Retitled")
        portal.sync()
        left_out = portal.listings[-1].jobs.popitem()[0]
        warehouse.run(f"{SUMMARIES} where id <> '{left_out}'")
        before = datetime.now(UTC).replace(tzinfo=None)
        portal.build(*WITHOUT_TESTS)

    new = [it for it in warehouse.rows("analytics_kept.job_history") if it["listed_at"].day == 2]
    assert [it["job_title"] for it in new] == ["Retitled"]
    assert before < new[0]["dbt_valid_from"] < before + timedelta(hours=1)
    (change,) = warehouse.rows("analytics_recruiting.job_changes")
    assert change["new_value"] == "Retitled"
    jobs = {it["id"]: it for it in warehouse.rows("analytics_recruiting.open_jobs")}
    assert [key for key, job in jobs.items() if job["job_title"] is None] == [left_out]
    (cook,) = (it for it in jobs.values() if it["city"])
    assert (cook["job_title"], cook["city"], cook["salary_period"]) == ("Cook", "Bern", "hour")
    skills = json.loads(cook["additional_fields"])["requiredSkills"]
    for table in ("open_jobs", "jobs_ever", "job_versions"):
        rows = warehouse.rows(f"analytics_recruiting.{table}")
        (row,) = (it for it in rows if it["id"] == cook["id"])
        assert (row["paid_per"], json.loads(row["required_skills"])) == ("hour", skills)
    # Where the project's own is too, so that queries need not know whose it is.
    assert [it["location"] for it in warehouse.rows("analytics.locations")] == ["Somewhere"]
    assert warehouse.listed_at().startswith("2026-11-02")
    history = warehouse.rows("analytics_kept.job_history")
    status, output = warehouse.dbt("build", "--empty")
    assert status != 0
    assert "--empty would close all jobs in the history" in output
    assert warehouse.rows("analytics_kept.job_history") == history
    if not isinstance(warehouse, DuckDB):
        may = f"has_table_privilege('{READER}', 'analytics_recruiting.open_jobs', 'select')"
        assert warehouse.rows(f"(select {may} as it) as found") == [{"it": True}]


SCHEMAS = ["acme", "globex", "initech"]


@pytest.mark.e2e
@pytest.mark.parametrize("kind", KINDS)
def test_each_organisation_has_its_own_jobs_and_its_own_latest_listing(
    kind: str, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The ids are the same in all three. One joins on the second day, when another is not synced.

    Freshness is that of the one that was listed least recently.
    """
    warehouse = new_warehouse(kind, tmp_path, new_database)
    schemas = ("--vars", json.dumps({"schemas": SCHEMAS}))
    with ExitStack() as stack:
        acme, globex, initech = portals = [
            stack.enter_context(opened(warehouse, monkeypatch, schema)) for schema in SCHEMAS
        ]
        for portal in (acme, initech):
            portal.sync()
            portal.listings[-1].built = True
        assert "globex is left out" in warehouse.build(*schemas, *WITHOUT_TESTS)

        acme.unpublish(0)
        initech.unpublish(0)  # not seen before its next sync
        acme.edit(1, jobTitle="Of one organisation", salaryPeriod="hour")
        for portal in (acme, globex):
            portal.day(2)
            portal.sync()
            portal.listings[-1].built = True
        warehouse.build(*schemas)

        # The one of initech, who was not synced again: no other organisation hides it.
        assert datetime.fromisoformat(warehouse.listed_at(*schemas)) == FIRST_DAY

        second_day = globex.listings[0].time.date()
        histories = [
            History(portal.listings, portal.schema, (second_day, second_day)) for portal in portals
        ]
    for table in TABLES:
        assert_holds(warehouse, table, *histories)

    # Its jobs are in history, and would all be closed.
    warehouse.run("drop schema globex cascade")
    status, output = warehouse.dbt("build", *schemas, "--select", "public_jobs__stg_publications")
    assert status == 1
    assert "history has jobs of globex: load them first" in output
