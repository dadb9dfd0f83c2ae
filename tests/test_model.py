"""Random histories of an organisation and its syncs, against models of four kinds of target."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from harness import captured, select_only
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.api import client
from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.sync import plan
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from harness import Output

JOBS = make_jobs(12, seed=3)
STREAMS = ("jobs", "job_publications", "job_details")
REFRESHES = st.sampled_from(["all", "changed"])
ANY_REFRESH = st.sampled_from(["all", "changed", "notified"])
SELECTIONS = st.sampled_from([STREAMS, ("jobs", "job_publications"), ("job_details",), STREAMS[1:]])

Row = dict[str, Any]


class Target:
    """Tables by primary key that upsert whole rows; this one ignores ACTIVATE_VERSION."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, tuple[int, Row]]] = {name: {} for name in STREAMS}

    def load(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            match message["type"]:
                case "RECORD":
                    self.write(message["stream"], message["record"], message.get("version", 0))
                case "ACTIVATE_VERSION":
                    self.activate(message["stream"], message["version"])
                case "SCHEMA":
                    self.begin(message["stream"])

    def begin(self, stream: str) -> None:
        """A SCHEMA message has come."""

    def write(self, stream: str, row: Row, version: int) -> None:
        self.tables[stream][row["id"]] = version, row

    def activate(self, stream: str, version: int) -> None:
        """An ACTIVATE_VERSION message has come."""

    def rows(self, stream: str) -> dict[str, Row]:
        return {key: row for key, (_, row) in self.tables[stream].items()}

    def published(self) -> dict[str, Row]:
        """The rule that works on every target."""
        rows = self.rows("job_publications")
        latest = max((row["lastSeenAt"] for row in rows.values()), default=None)
        return {
            key: row
            for key, row in rows.items()
            if row["unpublishedAt"] is None and row["lastSeenAt"] == latest
        }

    def titles(self, stream: str) -> dict[str, str | None]:
        """Titles of the published jobs."""
        rows = self.rows(stream)
        return {key: rows.get(key, {}).get("jobTitle") for key in self.published()}


class ObeyingTarget(Target):
    """Removes the rows of older versions, as ACTIVATE_VERSION asks."""

    def activate(self, stream: str, version: int) -> None:
        table = self.tables[stream]
        for key in [key for key, (of, _) in table.items() if of < version]:
            del table[key]


class AppendingTarget(Target):
    """Keeps every row; the latest of a key counts."""

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, list[Row]] = {name: [] for name in STREAMS}

    def write(self, stream: str, row: Row, version: int) -> None:
        self.log[stream].append(row)
        super().write(stream, row, version)


class OverwritingTarget(Target):
    """Empties a table at its SCHEMA."""

    def begin(self, stream: str) -> None:
        self.tables[stream].clear()


@cache
def catalog_text(selection: tuple[str, ...]) -> str:
    """Discover the catalog, which is the same whatever has happened."""
    config = {"api_key": "a-key", "base_url": "http://localhost", "page_size": 3}
    return json.dumps(select_only(config, *selection))


class Histories(RuleBasedStateMachine):
    """Whatever happens, a complete run makes the tables equal to the API."""

    def __init__(self) -> None:
        super().__init__()
        self.sandbox = Sandbox(Options(limited=False))
        self.serving = serving(self.sandbox)
        self.base_url = self.serving.__enter__()
        self.obeying, self.ignoring = ObeyingTarget(), Target()
        self.appending, self.overwriting = AppendingTarget(), OverwritingTarget()
        self.state: dict[str, Any] = {}
        self.folder = tempfile.TemporaryDirectory()
        self.changes_url = f"sqlite:///{self.folder.name}/changes.db"
        self.log = ChangeLog(self.changes_url)
        self.loaded: dict[str, set[str]] = {"jobs": set(), "job_details": set()}
        self.edits = 0
        self.now = 1_800_000_000.0
        for job in JOBS[:4]:
            self.sandbox.publish(job)
        self.log.append([job["publicId"] for job in JOBS[:4]])

    def teardown(self) -> None:
        try:
            assert self.run("all")
            self.check_tables()
            # A resumed run may leave a row of a job that was unpublished in between, until now.
            assert self.run("all")
            assert self.obeying.rows("jobs").keys() == self.truth().keys()
            assert self.obeying.rows("job_details").keys() == self.truth().keys()
            assert self.overwriting.titles("job_details") == self.truth()
        finally:
            self.serving.__exit__(None, None, None)
            self.folder.cleanup()

    def truth(self) -> dict[str, str]:
        jobs = [posting.job for posting in self.sandbox.organisation.published()]
        return {job["id"]: job["jobTitle"] for job in jobs}

    def run(
        self, refresh: str, selection: tuple[str, ...] = STREAMS, upto: int | None = None
    ) -> bool:
        """Run the tap into the targets; returns whether the run and they came to their ends.

        A minute after the last run: versions are seconds, and a target that died has written no
        state.
        """
        self.now += 60
        config = {
            "api_key": self.sandbox.key,
            "base_url": self.base_url,
            "rate_limit_requests": 100_000,
            "detail_refresh": refresh,
            "max_concurrent_requests": 2,
            "page_size": 3,
            "changes_url": self.changes_url,
        }
        catalog = json.loads(catalog_text(selection))
        tap = TapPublicJobs(config=config, catalog=catalog, state=self.state)
        complete = True
        with captured() as output, pytest.MonkeyPatch.context() as patch:
            patch.setattr(TapPublicJobs, "clock", staticmethod(lambda: self.now))
            try:
                tap.sync_all()
            except PublicJobsError:
                complete = False
        self.load(output, upto)
        return complete and upto is None

    def load(self, output: Output, upto: int | None) -> None:
        """Take messages in; a crash leaves those from `upto` on unread."""
        messages = output.messages[:upto]
        self.check_messages(output)
        for target in (self.obeying, self.ignoring, self.appending, self.overwriting):
            target.load(messages)
        states = [message["value"] for message in messages if message["type"] == "STATE"]
        self.state = states[-1] if states else self.state

    def check_messages(self, output: Output) -> None:
        """One SCHEMA per stream, whole records, ACTIVATE_VERSION as the last message but STATE."""
        for stream in STREAMS:
            schemas = [message["schema"] for message in output.of("SCHEMA", stream)]
            assert len(schemas) <= 1
            for record in output.records(stream):
                assert record.keys() == schemas[0]["properties"].keys()
            kinds = [m["type"] for m in output.messages if m.get("stream") == stream]
            assert "ACTIVATE_VERSION" not in kinds[:-1]
        assert output.of("ACTIVATE_VERSION", "job_publications") == []

    @rule(number=st.integers(0, len(JOBS) - 1))
    def publish(self, number: int) -> None:
        self.sandbox.publish(JOBS[number])
        self.log.append([JOBS[number]["publicId"]])

    @rule(data=st.data())
    @precondition(lambda self: self.truth())
    def unpublish(self, data: st.DataObject) -> None:
        published = [it.job["publicId"] for it in self.sandbox.organisation.published()]
        public_id = data.draw(st.sampled_from(published))
        self.sandbox.unpublish(public_id)
        self.log.append([public_id])

    @rule(data=st.data())
    @precondition(lambda self: self.truth())
    def edit(self, data: st.DataObject) -> None:
        self.edits += 1
        published = [it.job["publicId"] for it in self.sandbox.organisation.published()]
        public_id = data.draw(st.sampled_from(published))
        self.sandbox.edit(public_id, jobTitle=f"Title {self.edits}")
        self.log.append([public_id])

    @rule(refresh=ANY_REFRESH)
    def sync(self, refresh: str) -> None:
        assert self.run(refresh)
        self.check_tables()

    def check_tables(self) -> None:
        """The rule finds what is published, with its content, on targets of three kinds."""
        truth = self.truth()
        for target in (self.obeying, self.ignoring, self.appending):
            assert target.published().keys() == truth.keys()
            assert target.titles("jobs") == truth
            assert target.titles("job_details") == truth
        assert self.obeying.rows("jobs").keys() == truth.keys()

    @rule(refresh=ANY_REFRESH, selection=SELECTIONS)
    def sync_some_streams(self, refresh: str, selection: tuple[str, ...]) -> None:
        assert self.run(refresh, selection)
        if "job_publications" in selection:
            assert self.ignoring.published().keys() == self.truth().keys()
        if "jobs" in selection:
            assert self.obeying.rows("jobs").keys() == self.truth().keys()

    @rule(refresh=ANY_REFRESH, upto=st.integers(0, 60), selection=SELECTIONS)
    def crash(self, refresh: str, upto: int, selection: tuple[str, ...]) -> None:
        """The target, or the machine, dies after reading this many messages."""
        self.run(refresh, selection, upto)

    @rule(refresh=ANY_REFRESH, data=st.data())
    @precondition(lambda self: self.truth())
    def fail(self, refresh: str, data: st.DataObject) -> None:
        """One detail fails all its tries; the run goes on and ends incomplete."""
        published = [it.job["publicId"] for it in self.sandbox.organisation.published()]
        self.sandbox.fail_next("http_500", None, data.draw(st.sampled_from(published)))
        self.run(refresh)
        self.sandbox.recover()

    @invariant()
    def what_is_published_is_never_lost(self) -> None:
        """Once it was loaded, a job stays for as long as it is published."""
        for stream, loaded in self.loaded.items():
            rows, published = self.obeying.rows(stream).keys(), self.truth().keys()
            assert rows >= loaded & published
            self.loaded[stream] = {*rows} & {*published}

    @invariant()
    def only_unpublished_jobs_are_closed(self) -> None:
        for target in (self.obeying, self.ignoring, self.appending):
            for row in target.rows("job_publications").values():
                times = [row["openedAfter"] or "", row["firstSeenAt"], row["lastSeenAt"]]
                assert times == sorted(times)
                assert row["unpublishedAt"] is None or row["unpublishedAt"] > row["lastSeenAt"]


class TestHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=30, stateful_step_count=15, deadline=None)

    @pytest.fixture(autouse=True)
    def _small_and_quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """State after every second record, and no waiting between tries."""
        monkeypatch.setattr(plan, "FEWEST_BETWEEN_CHECKPOINTS", 2)
        monkeypatch.setattr(client, "FIRST_WAIT", 0.0)
