"""Four runs of the tap, recorded for every target to load."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from e2e.pipeline import Settings, Tap, read
from e2e.scenario import FIELDS, RUNS, change, make_sandbox, published, settings
from e2e.stores import FIELDS as ALL_FIELDS
from e2e.stores import TABLES
from e2e.targets import CheckedTarget, Target
from harness import catalog_of
from public_jobs_sandbox.postings import Job
from public_jobs_sandbox.server import serving

from tap_public_jobs.sync.state import HOUR

# A column of each type that the first run leaves out. A target cannot tell why one comes later: a
# wider selection, a declared field or a new version of the tap.
LATER = {
    "jobs": "job_title",
    "job_details": "years_experience",
    "job_publications": "opened_after",
}


class Recording(NamedTuple):
    """A finished run of the tap.

    Attributes:
        file: What it wrote.
        published: What the API had.
        left_out: The column of each table that it left out.
    """

    file: Path
    published: list[Job]
    left_out: dict[str, str]


def record(tap: Tap, **others: str) -> dict[str, Recording]:
    """Run the tap before and after each change of the jobs, with other settings if given.

    From the second run on, each table has one column more.
    """
    sandbox = make_sandbox()
    found = {}
    with serving(sandbox) as base_url:
        config = settings(sandbox, base_url) | others
        for name in RUNS:
            change(sandbox, name)
            left_out = LATER if name == RUNS[0] else {}
            tap.catalog = catalog_without(left_out, config)
            file = tap.folder / f"{name}.jsonl"
            run = tap.record(config, file)
            if name == "an empty list":  # it is accepted after an hour
                assert "21 of 21 published jobs disappeared from the list at once" in run.output
                age_evidence(tap.state)
                run = tap.record(config, file)
            run.succeeded()
            found[name] = Recording(file, published(sandbox), left_out)
    return found


def catalog_without(left_out: dict[str, str], config: Settings) -> Settings:
    """The tap's catalog, in which one column of each of these tables is not selected."""
    catalog = catalog_of(config)
    for stream in catalog["streams"]:
        table = stream["stream"]
        for entry in stream["metadata"]:
            name = entry["breadcrumb"][-1] if entry["breadcrumb"] else ""
            if ALL_FIELDS[table].get(name, name) == left_out.get(table):
                entry["metadata"]["selected"] = False
    return catalog


def age_evidence(state: Path) -> None:
    """Let an hour pass since jobs were missing first."""
    value = json.loads(state.read_text("utf-8"))
    for job in value["bookmarks"]["jobs"]["sync"]["jobs"]:
        *_, missing_since, _failing_since = job
        assert missing_since
        job[-2] -= HOUR
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
            all_types.pop(recording.left_out.get(table, ""), None)
            assert types.items() <= all_types.items(), (run, table)
            assert types == all_types or run != RUNS[-1], (run, table)
        for table in FIELDS:
            rows = target.rows(recording.published, table)
            for row in rows:
                row.pop(recording.left_out.get(table, ""), None)
            assert store.published(table) == rows, (run, table)
            assert target.removal != "hard" or store.rows(table) == rows, (run, table)
        assert states[-1] == read(recording.file)[-1]["value"]
