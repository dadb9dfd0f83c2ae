"""A target that fails on ACTIVATE_VERSION."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Pipe, Tap, installed, program
from e2e.stores import cleaned, exact, in_order
from e2e.truth import FIELDS, job_row, published
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
