"""The dbt project as a package of the user's own, which sets what it likes."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from transform.portal import opened
from transform.test_history import WITHOUT_TESTS
from transform.warehouses import TRANSFORM, DuckDB

if TYPE_CHECKING:
    from pathlib import Path

from transform.warehouses import Warehouse

READER = "pg_monitor"  # a role that every server has
PROJECT = {
    "name": "my_project",
    "profile": "public_jobs",
    "vars": {"public_jobs": {"schemas": ["acme"], "salary_period_field": "paidPer"}},
    "models": {
        "public_jobs": {"marts": {"+schema": "recruiting", "+grants": {"select": [READER]}}}
    },
    "snapshots": {"public_jobs": {"+schema": "kept"}},
    "seeds": {"public_jobs": {"+enabled": False}},
}

pytestmark = pytest.mark.e2e


def test_the_project_of_a_user_takes_the_package(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From git, with a schema, variables, a grant and a file of locations of the user's own.

    A macro that cleans otherwise rewrites the tables, and no history.
    """
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", "-C", str(tmp_path)]
    shutil.copytree(TRANSFORM, tmp_path / "transform")
    for arguments in (["init", "-q"], ["add", "transform"], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *arguments], check=True)
    packages = {"packages": [{"git": str(tmp_path), "subdirectory": "transform"}]}
    warehouse.project = tmp_path / "my_project"
    (warehouse.project / "seeds").mkdir(parents=True)
    for name, content in {
        "dbt_project.yml": json.dumps(PROJECT),
        "packages.yml": json.dumps(packages),
        "seeds/locations.csv": "location,city,country,is_remote\nSomewhere,Bern,CH,true\n",
    }.items():
        (warehouse.project / name).write_text(content, "utf-8")
    warehouse.dbt("deps")

    with opened(warehouse, monkeypatch, "acme") as portal:
        portal.edit(0, jobTitle="Cook ", location="Somewhere", paidPer="hour", minSalary=10)
        portal.sync()
        assert " WARN=0 ERROR=0 SKIP=0 " in portal.build("--select", "+package:public_jobs")

        macros = warehouse.project / "dbt_packages" / "public_jobs" / "macros" / "columns.sql"
        text = "{% macro text(column) -%}"
        trimmed = f"{text} trim({{{{ text_before(column) }}}}) {{%- endmacro %}}"
        rest = macros.read_text("utf-8").replace(text, text.replace("text", "text_before"))
        macros.write_text(trimmed + rest, "utf-8")
        portal.day(2)
        portal.edit(1, jobTitle="Retitled")
        portal.sync()
        before = datetime.now(UTC).replace(tzinfo=None)
        portal.build(*WITHOUT_TESTS)

    new = [it for it in warehouse.rows("analytics_kept.job_history") if it["listed_at"].day == 2]
    assert [it["job_title"] for it in new] == ["Retitled"]
    assert before < new[0]["dbt_valid_from"] < before + timedelta(hours=1)
    (change,) = warehouse.rows("analytics_recruiting.job_changes")
    assert change["new_value"] == "Retitled"
    (cook,) = (it for it in warehouse.rows("analytics_recruiting.open_jobs") if it["city"])
    assert (cook["job_title"], cook["city"], cook["salary_period"]) == ("Cook", "Bern", "hour")
    # Where the project's own is too, so that queries need not know whose it is.
    assert [it["location"] for it in warehouse.rows("analytics.locations")] == ["Somewhere"]
    assert warehouse.listed_at().startswith("2026-11-02")
    if not isinstance(warehouse, DuckDB):
        may = f"has_table_privilege('{READER}', 'analytics_recruiting.open_jobs', 'select')"
        assert warehouse.rows(f"(select {may} as it) as found") == [{"it": True}]

    warehouse.run("drop schema acme cascade")
    status, output = warehouse.dbt("build", "--select", "stg_publications")
    assert status == 1
    assert "history has jobs of acme: load them first" in output
