"""A target that fails on ACTIVATE_VERSION."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from e2e.pipeline import Pipe, Tap, installed, program
from e2e.stores import cleaned, exact, in_order
from e2e.truth import FIELDS, job_row, published

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.pipeline import Settings
    from public_jobs_sandbox.state import Sandbox


def test_without_versions_a_target_that_does_not_know_them_has_every_row(
    sandbox: Sandbox, config: Settings, tmp_path: Path
) -> None:
    """target-singer-jsonl fails on ACTIVATE_VERSION; it keeps the messages of a run in files."""
    tap = config | {"column_naming": "snake_case"}
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
