"""Selected columns, `changed`, and no versions, as far as the warehouse."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Pipe, Tap, installed, program
from e2e.stores import cleaned, exact, in_order
from e2e.targets import DUCKDB, Tables, meltanolabs
from e2e.truth import COLUMNS, FIELDS, job_row, listed_at, published
from harness import catalog_of
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.pipeline import Settings
    from e2e.stores import Row, Store
    from e2e.targets import Target
    from public_jobs_sandbox.postings import Job

LIST = "/api/public/v1/jobs"


@dataclass
class Postings:
    """A served sandbox with a few jobs, and what settings reach it."""

    sandbox: Sandbox
    settings: Settings

    @property
    def published(self) -> list[Job]:
        return published(self.sandbox)

    def unpublish(self) -> Job:
        """Unpublish the first job."""
        job = self.published[0]
        self.sandbox.unpublish(job["publicId"])
        return job

    def requested(self) -> list[str]:
        """The paths that were requested since the last look."""
        paths = [request.path for request in self.sandbox.requests]
        self.sandbox.requests.clear()
        return paths


@pytest.fixture
def postings() -> Iterator[Postings]:
    sandbox = Sandbox.demo(jobs=6, options=Options(limited=False))
    with serving(sandbox) as base_url:
        yield Postings(
            sandbox,
            {
                "api_key": sandbox.key,
                "base_url": base_url,
                "rate_limit_requests": 100_000,
                "column_naming": "snake_case",
            },
        )


@dataclass
class Warehouse:
    """A target at the end of a pipe."""

    target: Target
    store: Store
    pipe: Pipe
    settings: Settings

    @classmethod
    def of(cls, target: Target, folder: Path, database: str) -> Warehouse:
        pipe = Pipe(Tap(folder), target.program)
        store = target.store(folder, database)
        return cls(target, store, pipe, target.settings(folder, database))

    def sync(self, tap: Settings) -> None:
        self.pipe.run(tap, self.settings).succeeded()

    def expected(self, jobs: list[Job], table: str) -> list[Row]:
        return in_order([self.target.row(job_row(job, table)) for job in jobs])


@pytest.fixture
def postgres(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    """Soft deletes into a schema that has the test's name."""
    return Warehouse.of(meltanolabs("soft", request.node.name), tmp_path, database)


def test_selected_columns_arrive_whole_though_they_are_all_text(
    postings: Postings, tmp_path: Path
) -> None:
    """With DuckDB 1.1 or later, target-duckdb takes the first row of such a table for a header."""
    selected = ["id", "public_id", "job_title"]
    catalog = catalog_of(postings.settings)
    for stream in catalog["streams"]:
        for entry in stream["metadata"]:
            # The breadcrumb of a column is its path; that of the stream is empty.
            is_wanted = not entry["breadcrumb"] or entry["breadcrumb"][-1] in selected
            entry["metadata"]["selected"] = is_wanted and stream["stream"] == "jobs"
    duckdb = Warehouse.of(DUCKDB, tmp_path, "")
    duckdb.pipe.tap.catalog = catalog
    rows = duckdb.expected(postings.published, "jobs")
    expected = [{name: row[name] for name in selected} for row in rows]

    duckdb.sync(postings.settings)
    assert duckdb.store.rows("jobs") == expected
    gone = postings.unpublish()
    duckdb.sync(postings.settings)

    assert duckdb.store.rows("jobs") == expected
    assert duckdb.store.types("jobs") == dict.fromkeys(selected, "VARCHAR")
    assert postings.requested() == [LIST, LIST, f"{LIST}/{gone['publicId']}"]


def test_changed_runs_cost_what_has_changed(postings: Postings, postgres: Warehouse) -> None:
    """Details of unpublished jobs stay; only the times of publication distinguish them."""
    tap = postings.settings | {"detail_refresh": "changed"}
    tables = Tables(postgres.target)

    def check(*activated: str) -> None:
        rows = {table: postgres.store.rows(table) for table in COLUMNS}
        at = listed_at(rows["job_publications"])
        assert rows == tables.sync(postings.published, at, activated)
        for table in FIELDS:
            now = postgres.expected(postings.published, table)
            assert postgres.store.published(table) == now

    postgres.sync(tap)
    check(*FIELDS)
    assert len(postings.requested()) == 1 + 6

    gone, edited = (job["publicId"] for job in postings.published[:2])
    postings.sandbox.unpublish(gone)
    postings.sandbox.edit(edited, jobTitle="Edited")
    postgres.sync(tap)
    check("jobs")
    assert sorted(postings.requested()) == sorted([LIST, f"{LIST}/{gone}", f"{LIST}/{edited}"])

    postgres.sync(tap)
    check("jobs")
    assert postings.requested() == [LIST]


def test_without_versions_a_target_that_does_not_know_them_has_every_row(
    postings: Postings, tmp_path: Path
) -> None:
    """target-singer-jsonl fails on ACTIVATE_VERSION; it keeps the messages of a run in files."""
    command = installed("target-singer-jsonl==0.1.0") / "target-singer-jsonl"
    pipe = Pipe(Tap(tmp_path), program(command))
    target = {"local": {"folder": str(tmp_path / "files")}, "add_record_metadata": False}
    refused = pipe.run(postings.settings, target)
    assert refused.status != 0
    assert "Unknown message type ACTIVATE_VERSION" in refused.output

    pipe.run(postings.settings | {"emit_activate_version_messages": False}, target).succeeded()

    for table in FIELDS:
        (file,) = (tmp_path / "files" / table).iterdir()
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            schema, *records = map(exact, lines)
        assert schema["type"] == "SCHEMA"
        assert {record["type"] for record in records} == {"RECORD"}
        found = cleaned([record["record"] for record in records])
        assert found == in_order([job_row(job, table) for job in postings.published])
