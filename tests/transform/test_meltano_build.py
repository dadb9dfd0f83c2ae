"""The two set-ups as transform/README.md has them, in a copy of the project."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Project
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from support.warehouses import TRANSFORM, DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.warehouses import Warehouse

LINES = re.findall(
    r"^uvx --from 'meltano~=4.4' meltano run tap-public-jobs (.*)$",
    (TRANSFORM / "README.md").read_text("utf-8"),
    re.MULTILINE,
)

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("transform with Meltano")]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copied(tmp_path_factory.mktemp("clone"))


@pytest.mark.parametrize("line", LINES)
def test_one_line_loads_and_builds_and_a_failed_sync_is_not_recorded(
    project: Project, new_warehouse: Callable[[str], Warehouse], line: str
) -> None:
    sandbox = Sandbox.demo(jobs=5, options=Options(limited=False))
    variables = {"TAP_PUBLIC_JOBS_API_KEY": sandbox.key}
    warehouse: Warehouse = DuckDB(project.folder / "output")  # where meltano.yml has it
    if "postgres" in line:
        warehouse = new_warehouse("PostgreSQL")
        assert isinstance(warehouse, Postgres)
        variables["TARGET_POSTGRES_SQLALCHEMY_URL"] = warehouse.url

    with serving(sandbox) as base_url:
        variables["TAP_PUBLIC_JOBS_BASE_URL"] = base_url
        output = project.meltano(*line.split(), **variables).succeeded().output
        # One line says how the build ended, and none what it does.
        assert output.count("public_jobs: ") == 1
        assert "OK created" not in output
        assert "unit_test" not in output
        published = {it.job["id"]: it.job["jobTitle"] for it in sandbox.organisation.published()}
        rows = warehouse.rows("analytics.open_jobs")
        assert {row["id"]: row["job_title"] for row in rows} == published
        before = warehouse.rows("analytics_history.listing_history")

        refused = sandbox.organisation.published()[0].job["publicId"]
        sandbox.edit(refused, jobTitle="Never fetched")
        sandbox.fail_next("http_403", times=None, path=f"/{refused}")
        failed = project.meltano(*line.split(), **variables)
        assert failed.status == 1, failed.output
        assert "The sync is incomplete" in failed.output
        assert warehouse.rows("analytics_history.listing_history") == before


def test_each_database_has_a_line() -> None:
    assert [line.split()[0] for line in LINES] == ["target-duckdb", "target-postgres"]
