"""Four runs into each target: every row, every value and every type is what the API has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from e2e.pipeline import Tap, read
from e2e.scenario import RUNS, change, make_sandbox, settings
from e2e.stores import in_order
from e2e.targets import TARGETS, Tables
from e2e.truth import COLUMNS, FIELDS, job_row, listed_at, published
from public_jobs_sandbox.server import serving

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from pathlib import Path

    from e2e.pipeline import Settings
    from e2e.stores import Row
    from e2e.targets import Target
    from public_jobs_sandbox.postings import Job


@dataclass
class Recording:
    """A finished run of the tap: what it wrote, and what the API had."""

    file: Path
    published: list[Job]

    def of(self, kind: str) -> list[Settings]:
        return [message for message in read(self.file) if message["type"] == kind]

    @property
    def listed_at(self) -> dt.datetime:
        records = self.of("RECORD")
        return listed_at([m["record"] for m in records if m["stream"] == "job_publications"])


def record(tap: Tap, **others: str) -> dict[str, Recording]:
    """Run the tap before and after each change of the jobs, with other settings if given."""
    sandbox = make_sandbox()
    found = {}
    with serving(sandbox) as base_url:
        for name in RUNS:
            change(sandbox, name)
            file = tap.folder / f"{name}.jsonl"
            tap.record(settings(sandbox, base_url) | others, file).succeeded()
            found[name] = Recording(file, published(sandbox))
    return found


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """What the tap wrote in each run, for every target to load."""
    return record(Tap(tmp_path_factory.mktemp("tap")))


@dataclass
class Loaded:
    """What a target holds after a run, and what it should hold."""

    rows: dict[str, list[Row]]
    expected: dict[str, list[Row]]
    published: dict[str, list[Row]]
    expected_published: dict[str, list[Row]]
    types: dict[str, dict[str, str]]
    state: str


@dataclass
class Loads:
    """The runs into one target."""

    target: Target
    after: dict[str, Loaded]


def parameters(targets: Sequence[Target]) -> list[Any]:
    """Each target, whose runs one worker loads."""
    return [
        pytest.param(target, id=target.name, marks=pytest.mark.xdist_group(target.name))
        for target in targets
    ]


@pytest.fixture(scope="module", params=parameters(TARGETS))
def target(request: pytest.FixtureRequest) -> Target:
    found: Target = request.param
    return found


@pytest.fixture(scope="module")
def loads(
    target: Target,
    recordings: dict[str, Recording],
    database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Loads:
    folder = tmp_path_factory.mktemp("target")
    store, tables = target.store(folder, database), Tables(target)
    after = {}
    for name, run in recordings.items():
        output = target.load(run.file.read_text("utf-8"), folder, database)
        after[name] = Loaded(
            {table: store.rows(table) for table in COLUMNS},
            dict(tables.sync(run.published, run.listed_at)),
            {table: store.published(table) for table in FIELDS},
            {
                table: in_order([target.row(job_row(job, table)) for job in run.published])
                for table in FIELDS
            },
            {table: store.types(table) for table in COLUMNS},
            output.splitlines()[-1],
        )
    return Loads(target, after)


@pytest.mark.parametrize("run", RUNS)
class TestTargets:
    @pytest.mark.parametrize("table", COLUMNS)
    def test_every_value_of_every_row_is_right(self, loads: Loads, run: str, table: str) -> None:
        """Fields that the API page does not name are in additional_fields."""
        after = loads.after[run]
        assert after.rows[table] == after.expected[table]

    @pytest.mark.parametrize("table", FIELDS)
    def test_what_is_published_now_is_what_the_api_has(
        self, loads: Loads, run: str, table: str
    ) -> None:
        """By one rule, whatever the target keeps of earlier runs."""
        after = loads.after[run]
        assert after.published[table] == after.expected_published[table]

    def test_the_state_passes_unchanged(
        self, loads: Loads, recordings: dict[str, Recording], run: str
    ) -> None:
        states = [message["value"] for message in recordings[run].of("STATE")]
        assert json.loads(loads.after[run].state) == states[-1]


@pytest.mark.parametrize("table", COLUMNS)
def test_columns_have_types_that_sql_can_compute_with(loads: Loads, table: str) -> None:
    """And no run changes them. A file of lines has no type where all values are null."""
    expected = loads.target.column_types(table)
    *earlier, last = (loaded.types[table] for loaded in loads.after.values())
    assert last == expected
    assert all(types.items() <= expected.items() for types in earlier)
