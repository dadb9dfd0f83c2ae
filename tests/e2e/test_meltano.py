"""Meltano into DuckDB, with the project's own meltano.yml: what arrives, and what its user sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from e2e.pipeline import variables
from e2e.scenario import make_sandbox, settings
from e2e.stores import DuckDB
from e2e.targets import DUCKDB, Tables
from e2e.truth import COLUMNS, listed_at, published
from public_jobs_sandbox.server import serving

if TYPE_CHECKING:
    from e2e.pipeline import Project

REPOSITORY = Path(__file__).parents[2]
PROJECT_FILE = (REPOSITORY / "meltano.yml").read_text("utf-8")


def test_a_backfill_brings_every_row_and_a_refused_key_fails_in_one_line(
    project: Project, tmp_path: Path
) -> None:
    warehouse, sandbox = DuckDB(tmp_path), make_sandbox()
    with serving(sandbox) as base_url:
        tap = settings(sandbox, base_url)
        del tap["column_naming"]  # meltano.yml has it
        environment = {
            "TARGET_DUCKDB_FILEPATH": str(warehouse.file),
            "MELTANO_DATABASE_URI": f"sqlite:///{warehouse.state}",
            **variables("tap-public-jobs", tap),
        }

        log = project.meltano("target-duckdb", **environment).succeeded().output

        rows = {table: warehouse.rows(table) for table in COLUMNS}
        listed = listed_at(rows["job_publications"])
        assert rows == Tables(DUCKDB).sync(published(sandbox), listed)
        assert "Synced 21 jobs, 21 job_publications, 21 job_details; 26 requests" in log

        sandbox.revoke(sandbox.key)
        sandbox.requests.clear()
        refused = project.meltano("target-duckdb", **environment)

    assert refused.status != 0
    (line,) = [line for line in refused.output.splitlines() if "refused the key (401)" in line]
    assert "critical" in line
    assert "Settings → Integrations → API keys" in line
    assert "Traceback" not in refused.output
    assert sandbox.key not in refused.output
    assert [request.status for request in sandbox.requests] == [401]
    # Without a project_id, Meltano would write one and format the whole file.
    assert (project.folder / "meltano.yml").read_text("utf-8") == PROJECT_FILE
