"""A target that fails on ACTIVATE_VERSION."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from e2e.pipeline import Tap, environment, installed, program, written
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
    tap, messages = Tap(tmp_path), tmp_path / "messages"
    target = program(installed("target-singer-jsonl==0.1.0") / "target-singer-jsonl")
    settings = {"local": {"folder": str(tmp_path / "files")}, "add_record_metadata": False}
    arguments = ["--config", written(tmp_path / "target.json", settings)]
    for activates in (True, False):
        own = {"column_naming": "snake_case", "emit_activate_version_messages": activates}
        tap.record(config | own, messages).succeeded()
        loaded = target.run(arguments, environment(), text=messages.read_text("utf-8"))
        assert ("Unknown message type ACTIVATE_VERSION" in loaded.stderr) is activates
        assert bool(loaded.returncode) is activates

    for table in FIELDS:
        (file,) = (tmp_path / "files" / table).iterdir()
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            schema, *records = map(exact, lines)
        assert schema["type"] == "SCHEMA"
        assert {record["type"] for record in records} == {"RECORD"}
        found = cleaned([record["record"] for record in records])
        assert found == in_order([job_row(job, table) for job in published(sandbox)])
