"""Four runs into each target: every row, every value and every type is what the API has."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from e2e.pipeline import Tap, read
from e2e.scenario import PAGE_SIZE, RUNS, change, make_sandbox, settings
from e2e.stores import in_order
from e2e.targets import TARGETS, Tables
from e2e.truth import COLUMNS, FIELDS, job_row, listed_at, published
from public_jobs_sandbox.server import serving

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.pipeline import Settings
    from e2e.stores import Row
    from e2e.targets import Target
    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import SeenRequest

LIST = "/api/public/v1/jobs"


@dataclass
class Recording:
    """A finished run of the tap: what it wrote and logged, and what the API had and saw."""

    file: Path
    log: str
    published: list[Job]
    requests: list[SeenRequest]
    started_at: float

    @property
    def messages(self) -> list[Settings]:
        return read(self.file)

    def of(self, kind: str) -> list[Settings]:
        return [message for message in self.messages if message["type"] == kind]

    @property
    def listed_at(self) -> dt.datetime:
        records = self.of("RECORD")
        return listed_at([m["record"] for m in records if m["stream"] == "job_publications"])


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """What the tap wrote in each run, for every target to load."""
    tap = Tap(tmp_path_factory.mktemp("tap"))
    sandbox = make_sandbox()
    found = {}
    with serving(sandbox) as base_url:
        for name in RUNS:
            change(sandbox, name)
            before, started_at = len(sandbox.requests), sandbox.clock()
            file = tap.folder / f"{name}.jsonl"
            run = tap.record(settings(sandbox, base_url), file).succeeded()
            found[name] = Recording(
                file, run.output, published(sandbox), sandbox.requests[before:], started_at
            )
    return found


@pytest.fixture(params=RUNS)
def recording(request: pytest.FixtureRequest, recordings: dict[str, Recording]) -> Recording:
    return recordings[request.param]


class TestTap:
    """What the tap writes is the same for every target."""

    pytestmark = pytest.mark.xdist_group("recordings")

    def test_each_stream_has_one_schema(self, recording: Recording) -> None:
        streams = [message["stream"] for message in recording.of("SCHEMA")]
        assert streams == ["jobs", "job_publications", "job_details"]

    def test_each_record_has_every_column(self, recording: Recording) -> None:
        assert {
            (message["stream"], tuple(sorted(message["record"])))
            for message in recording.of("RECORD")
        } <= {(table, tuple(sorted(columns))) for table, columns in COLUMNS.items()}

    def test_each_version_is_activated_after_its_last_record(self, recording: Recording) -> None:
        messages = [m for m in recording.messages if m["type"] != "STATE"]
        last = {message["stream"]: message["type"] for message in messages}
        versions = {
            stream: {m["version"] for m in messages if m["stream"] == stream and "version" in m}
            for stream in FIELDS
        }

        assert {stream for stream, kind in last.items() if kind == "ACTIVATE_VERSION"} == {*FIELDS}
        assert Counter(m["stream"] for m in recording.of("ACTIVATE_VERSION")) == Counter([*FIELDS])
        assert {len(found) for found in versions.values()} == {1}

    def test_a_listing_has_the_time_at_which_it_began(self, recording: Recording) -> None:
        began = recording.listed_at.replace(tzinfo=dt.UTC).timestamp()
        assert math.floor(recording.started_at * 1000) <= round(began * 1000)
        assert began <= recording.requests[0].time

    def test_pages_and_details_are_requested_once(self, recordings: dict[str, Recording]) -> None:
        """And each job that is not listed any more, whose 404 confirms that it is unpublished.

        A full last page is followed by one more request, as no single number is trusted.
        """
        before: list[Job] = []
        for run in recordings.values():
            pages = math.ceil((len(run.published) + 1) / PAGE_SIZE)
            gone = {job["publicId"] for job in before} - {job["publicId"] for job in run.published}
            expected = [("", str(page), 200) for page in range(1, pages + 1)]
            expected += [(f"/{job['publicId']}", "", 200) for job in run.published]
            expected += [(f"/{public_id}", "", 404) for public_id in gone]
            asked = [
                (unquote(request.path.removeprefix(LIST)), request.query.get("page", ""))
                for request in run.requests
            ]
            statuses = [request.status for request in run.requests]
            assert Counter(expected) == Counter(
                (*what, status) for what, status in zip(asked, statuses, strict=True)
            )
            before = run.published

    def test_the_runs_show_every_kind_of_change(self, recordings: dict[str, Recording]) -> None:
        titles = {
            name: {job["id"]: job["jobTitle"] for job in run.published}
            for name, run in recordings.items()
        }
        backfill, edits, returned, empty = (titles[name] for name in RUNS)

        assert (len(backfill), len(empty)) == (15, 0)
        assert "Retitled" in {*edits.values()} - {*backfill.values()}
        assert (len(backfill.keys() - edits.keys()), len(edits.keys() - backfill.keys())) == (2, 2)
        assert [returned[key] for key in returned.keys() - edits.keys()] == ["Back again"]
        assert returned.keys() - edits.keys() < backfill.keys()

    def test_the_log_shows_what_it_did(self, recordings: dict[str, Recording]) -> None:
        log = recordings["a backfill"].log
        assert "Fetching 15 of 15 details (15 new) at up to 100 requests per second" in log
        assert (
            "Synced 15 jobs, 15 job_publications, 15 job_details; "
            "19 requests (0 rejections, 0 retries)" in log
        )


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


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(target, id=target.name, marks=pytest.mark.xdist_group(target.name))
        for target in TARGETS
    ],
)
def loads(
    request: pytest.FixtureRequest,
    recordings: dict[str, Recording],
    database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Loads:
    target: Target = request.param
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
