"""Four runs of the tap, recorded for every target to load."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest
from e2e.pipeline import read
from e2e.scenario import RUNS, change, make_sandbox, settings
from e2e.targets import CheckedTarget
from e2e.truth import FIELDS, published
from public_jobs_sandbox.server import serving
from queries.warehouse import TABLES

from tap_public_jobs.sync.state import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from e2e.pipeline import Tap
    from e2e.targets import Target
    from public_jobs_sandbox.postings import Job


class Recording(NamedTuple):
    """A finished run of the tap: what it wrote, and what the API had."""

    file: Path
    published: list[Job]


def record(tap: Tap, **others: str) -> dict[str, Recording]:
    """Run the tap before and after each change of the jobs, with other settings if given."""
    sandbox = make_sandbox()
    found = {}
    with serving(sandbox) as base_url:
        for name in RUNS:
            change(sandbox, name)
            file = tap.folder / f"{name}.jsonl"
            run = tap.record(settings(sandbox, base_url) | others, file)
            if name == "an empty list":  # it is believed after an hour
                assert "the list lacks 21 of 21 known jobs at once" in run.output
                age_gaps(tap.state)
                run = tap.record(settings(sandbox, base_url) | others, file)
            run.succeeded()
            found[name] = Recording(file, published(sandbox))
    return found


def age_gaps(state: Path) -> None:
    """Let an hour pass since the gaps in a state were met first."""
    value = json.loads(state.read_text("utf-8"))
    for gap in value["bookmarks"]["jobs"]["sync"]["gaps"]:
        gap[2], gap[5] = gap[2] - HOUR, gap[5] - HOUR
    state.write_text(json.dumps(value), "utf-8")


def each(targets: Sequence[Target]) -> pytest.MarkDecorator:
    """Run a test with each target; several tests of one run in one worker."""
    parameters = [
        pytest.param(target, id=target.name, marks=pytest.mark.xdist_group(target.name))
        for target in targets
    ]
    return pytest.mark.parametrize("target", parameters)


def load_and_compare(
    target: Target, recordings: dict[str, Recording], database: str, folder: Path
) -> None:
    """Load each run. Fields that the API page does not name are in additional_fields.

    What is published now is found by one rule, whatever the target keeps of earlier runs.
    No run changes a type; a file of lines has none where all values are null.
    """
    checked = CheckedTarget(target, folder, database)
    store = checked.store
    for run, recording in recordings.items():
        states = checked.load(recording.file.read_text("utf-8"))

        for table in TABLES:
            types, all_types = store.types(table), target.column_types(table)
            assert types.items() <= all_types.items(), (run, table)
            assert types == all_types or run != RUNS[-1], (run, table)
        for table in FIELDS:
            rows = target.rows(recording.published, table)
            assert store.published(table) == rows, (run, table)
            assert target.removal != "hard" or store.rows(table) == rows, (run, table)
        assert states[-1] == read(recording.file)[-1]["value"]
