"""The two set-ups as transform/README.md has them, in a copy of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import environment
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from transform.warehouses import REPOSITORY, TRANSFORM, DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transform.warehouses import Warehouse

LINES = {
    "DuckDB": "tap-public-jobs target-duckdb dbt-duckdb:build",
    "PostgreSQL": "tap-public-jobs target-postgres dbt-postgres:build",
}

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("transform with Meltano")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, so that the user's own warehouse and state are left alone."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("meltano.yml", ".python-version", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    for package in ("tap_public_jobs", "sandbox", "transform", "output"):
        ignore = shutil.ignore_patterns("__pycache__", "*.duckdb")
        shutil.copytree(REPOSITORY / package, folder / package, ignore=ignore)
    return folder


@pytest.mark.parametrize("kind", LINES)
def test_one_line_loads_and_builds_and_a_failed_sync_is_not_recorded(
    clone: Path, new_warehouse: Callable[[str], Warehouse], kind: str
) -> None:
    sandbox = Sandbox.demo(jobs=5, options=Options(limited=False))
    warehouse = new_warehouse(kind)
    database: dict[str, str] = {}
    if isinstance(warehouse, Postgres):
        database = {"TARGET_POSTGRES_SQLALCHEMY_URL": warehouse.url}
    else:
        warehouse = DuckDB(clone / "output")  # without a variable: where meltano.yml has it

    def run(base_url: str) -> tuple[int, str]:
        variables = {
            "TAP_PUBLIC_JOBS_API_KEY": sandbox.key,
            "TAP_PUBLIC_JOBS_BASE_URL": base_url,
        }
        result = subprocess.run(
            [*uv_command(), "tool", "run", "--from", "meltano~=4.4", "meltano", "run", *line],
            cwd=clone,
            env=environment(**variables, **database),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return result.returncode, result.stdout

    line = LINES[kind].split()
    with serving(sandbox) as base_url:
        status, output = run(base_url)
        assert status == 0, output
        published = {it.job["id"]: it.job["jobTitle"] for it in sandbox.organisation.published()}
        rows = warehouse.rows("analytics.open_jobs")
        assert {row["id"]: row["job_title"] for row in rows} == published
        before = warehouse.rows("analytics_history.listing_history")

        refused = sandbox.organisation.published()[0].job["publicId"]
        sandbox.edit(refused, jobTitle="Never fetched")
        sandbox.fail_next("http_403", times=None, path=f"/{refused}")
        status, output = run(base_url)
        assert status == 1, output
        assert "The sync is incomplete" in output
        assert warehouse.rows("analytics_history.listing_history") == before


def test_the_set_ups_are_those_of_the_readme() -> None:
    text = (TRANSFORM / "README.md").read_text("utf-8")
    found = re.findall(r"^uvx --from 'meltano~=4.4' meltano run (.*)$", text, re.MULTILINE)
    assert found == list(LINES.values())
