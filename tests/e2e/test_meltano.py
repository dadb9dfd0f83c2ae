"""Meltano into DuckDB, with the project's own meltano.yml: what arrives, and what its user sees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from e2e.pipeline import variables
from e2e.scenario import change, make_sandbox, settings
from e2e.stores import DuckDB
from e2e.targets import DUCKDB, TARGETS, Tables
from e2e.truth import COLUMNS, listed_at, published
from public_jobs_sandbox.server import serving

if TYPE_CHECKING:
    from e2e.pipeline import Project, Run
    from e2e.stores import Row
    from public_jobs_sandbox.state import SeenRequest

REPOSITORY = Path(__file__).parents[2]


@dataclass
class Synced:
    """A run, what the API saw of it, what the warehouse holds, and what it should hold."""

    run: Run
    requests: list[SeenRequest]
    rows: dict[str, list[Row]]
    expected: dict[str, list[Row]]
    types: dict[str, dict[str, str]]


@dataclass
class Runs:
    """A backfill, a run after edits, and one after the key was revoked."""

    first: Synced
    second: Synced
    refused: Run
    requests_refused: list[SeenRequest]
    key: str


@pytest.fixture(scope="module")
def runs(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    warehouse, tables = DuckDB(tmp_path_factory.mktemp("warehouse")), Tables(DUCKDB)
    sandbox = make_sandbox()

    def run() -> tuple[Run, list[SeenRequest]]:
        before = len(sandbox.requests)
        result = project.meltano(
            "target-duckdb",
            TARGET_DUCKDB_FILEPATH=str(warehouse.file),
            MELTANO_DATABASE_URI=f"sqlite:///{warehouse.state}",
            **variables("tap-public-jobs", tap),
        )
        return result, sandbox.requests[before:]

    def synced() -> Synced:
        result, requests = run()
        result.succeeded()
        rows = {table: warehouse.rows(table) for table in COLUMNS}
        expected = tables.sync(published(sandbox), listed_at(rows["job_publications"]))
        types = {table: warehouse.types(table) for table in COLUMNS}
        return Synced(result, requests, rows, dict(expected), types)

    with serving(sandbox) as base_url:
        tap = settings(sandbox, base_url)
        del tap["column_naming"]  # meltano.yml has it
        first = synced()
        change(sandbox, "edits")
        second = synced()
        sandbox.revoke(sandbox.key)
        return Runs(first, second, *run(), sandbox.key)


@pytest.mark.parametrize("table", COLUMNS)
class TestWarehouse:
    def test_a_backfill_brings_every_row_and_value(self, runs: Runs, table: str) -> None:
        assert len(runs.first.rows[table]) == 15
        assert runs.first.rows[table] == runs.first.expected[table]

    def test_the_next_run_updates_adds_and_closes(self, runs: Runs, table: str) -> None:
        """Meltano has kept the state: the times of publication are those of two runs."""
        assert len(runs.second.rows[table]) == 15 + 2
        assert runs.second.rows[table] == runs.second.expected[table]

    def test_columns_have_types_that_sql_can_compute_with(self, runs: Runs, table: str) -> None:
        expected = DUCKDB.column_types(table)
        assert [runs.first.types[table], runs.second.types[table]] == [expected, expected]


def test_the_log_shows_what_the_tap_did(runs: Runs) -> None:
    log = runs.first.run.output
    assert "Fetching 15 of 15 details (15 new) at up to 100 requests per second" in log
    assert "Synced 15 jobs, 15 job_publications, 15 job_details; 19 requests" in log
    assert "2 jobs opened and 2 jobs closed since the last complete list" in runs.second.run.output


def test_a_refused_key_fails_the_run_in_one_line(runs: Runs) -> None:
    """And the key is not printed."""
    output = runs.refused.output
    assert runs.refused.status != 0
    (line,) = [line for line in output.splitlines() if "refused the key (401)" in line]
    assert "critical" in line
    assert "Settings → Integrations → API keys" in line
    assert "Traceback" not in output
    assert runs.key not in output
    assert [request.status for request in runs.requests_refused] == [401]


@pytest.mark.usefixtures("runs")
def test_meltano_leaves_its_project_file_alone(project: Project) -> None:
    """Without a project_id, Meltano would write one and format the whole file."""
    now = (project.folder / "meltano.yml").read_text("utf-8")
    assert now == (REPOSITORY / "meltano.yml").read_text("utf-8")


def test_targets_at_the_end_of_a_pipe_are_those_that_meltano_installs() -> None:
    """But for those that meltano.yml does not have."""
    project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
    installed = {loader["pip_url"] for loader in project["plugins"]["loaders"]}
    piped = {target.requirements for target in TARGETS if target.requirements}
    assert piped - installed == {"pipelinewise-target-postgres==2.1.2"}
    assert installed <= piped
