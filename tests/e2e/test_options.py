"""Selected columns, and no versions, as far as the warehouse."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Pipe, Tap, installed, program
from e2e.stores import DuckDB, cleaned, exact, in_order
from e2e.targets import DUCKDB
from e2e.truth import FIELDS, job_row, published
from harness import catalog_of
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.pipeline import Settings


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox.demo(jobs=6, options=Options(limited=False))


@pytest.fixture
def tap(sandbox: Sandbox) -> Iterator[Settings]:
    """Settings that reach it."""
    with serving(sandbox) as url:
        yield {"api_key": sandbox.key, "base_url": url, "column_naming": "snake_case"}


def test_selected_columns_arrive_whole_though_they_are_all_text(
    sandbox: Sandbox, tap: Settings, tmp_path: Path
) -> None:
    """With DuckDB 1.1 or later, target-duckdb takes the first row of such a table for a header."""
    selected = ["id", "public_id", "job_title"]
    catalog = catalog_of(tap)
    for stream in catalog["streams"]:
        for entry in stream["metadata"]:
            # The breadcrumb of a column is its path; that of the stream is empty.
            is_wanted = not entry["breadcrumb"] or entry["breadcrumb"][-1] in selected
            entry["metadata"]["selected"] = is_wanted and stream["stream"] == "jobs"
    pipe, store = Pipe(Tap(tmp_path, catalog), DUCKDB.program), DuckDB(tmp_path)
    rows = in_order([DUCKDB.row(job_row(job, "jobs")) for job in published(sandbox)])

    for _ in range(2):
        pipe.run(tap, DUCKDB.settings(tmp_path, "")).succeeded()

        assert store.rows("jobs") == [{name: row[name] for name in selected} for row in rows]
        assert store.types("jobs") == dict.fromkeys(selected, "VARCHAR")
        # target-duckdb does not know ACTIVATE_VERSION: the row stays.
        sandbox.unpublish(published(sandbox)[0]["publicId"])


def test_without_versions_a_target_that_does_not_know_them_has_every_row(
    sandbox: Sandbox, tap: Settings, tmp_path: Path
) -> None:
    """target-singer-jsonl fails on ACTIVATE_VERSION; it keeps the messages of a run in files."""
    command = installed("target-singer-jsonl==0.1.0") / "target-singer-jsonl"
    pipe = Pipe(Tap(tmp_path), program(command))
    target = {"local": {"folder": str(tmp_path / "files")}, "add_record_metadata": False}
    refused = pipe.run(tap, target)
    assert refused.status != 0
    assert "Unknown message type ACTIVATE_VERSION" in refused.output

    pipe.run(tap | {"emit_activate_version_messages": False}, target).succeeded()

    for table in FIELDS:
        (file,) = (tmp_path / "files" / table).iterdir()
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            schema, *records = map(exact, lines)
        assert schema["type"] == "SCHEMA"
        assert {record["type"] for record in records} == {"RECORD"}
        found = cleaned([record["record"] for record in records])
        assert found == in_order([job_row(job, table) for job in published(sandbox)])
