"""Random histories of an organisation and its syncs, against a model of a target."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from harness import captured, catalog_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs import client, ledger, snapshot, streams
from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from harness import Output

JOBS = make_jobs(12, seed=3)
REFRESHES = st.sampled_from(["all", "changed"])
ANY_REFRESH = st.sampled_from(["all", "changed", "notified"])


class Target:
    """Tables by primary key that honour upserts, and the state.

    Args:
        activates: Whether it removes rows as ACTIVATE_VERSION says.
    """

    def __init__(self, *, activates: bool) -> None:
        self.activates = activates
        self.tables: dict[str, dict[str, tuple[int, dict[str, Any]]]] = {}
        self.state: dict[str, Any] = {}

    def load(self, output: Output, upto: int | None = None) -> None:
        """Take messages in; a crash leaves those from `upto` on unread."""
        for message in output.messages[:upto]:
            table = self.tables.setdefault(message.get("stream", ""), {})
            if message["type"] == "RECORD":
                _, row = table.get(message["record"]["id"], (0, {}))
                table[message["record"]["id"]] = (message["version"], row | message["record"])
            elif message["type"] == "ACTIVATE_VERSION" and self.activates:
                for key in [key for key, row in table.items() if row[0] < message["version"]]:
                    del table[key]
            elif message["type"] == "STATE":
                self.state = message["value"]

    def titles(self, stream: str) -> dict[str, str]:
        """Titles of the jobs of which more is there than that they are not published."""
        rows = {key: row for key, (_, row) in self.tables.get(stream, {}).items()}
        return {key: row["jobTitle"] for key, row in rows.items() if "jobTitle" in row}

    def published(self, stream: str) -> dict[str, str]:
        """Titles of the jobs whose rows say that they are published."""
        rows = [row for _, row in self.tables.get(stream, {}).values()]
        return {row["id"]: row["jobTitle"] for row in rows if row["isPublished"]}


class Histories(RuleBasedStateMachine):
    """Whatever happens, a complete run makes the tables equal to the API."""

    def __init__(self) -> None:
        super().__init__()
        self.sandbox = Sandbox(Options(limited=False))
        self.serving = serving(self.sandbox)
        self.base_url = self.serving.__enter__()
        self.target = Target(activates=True)
        self.keeping = Target(activates=False)
        self.folder = tempfile.TemporaryDirectory()
        self.changes_url = f"sqlite:///{self.folder.name}/changes.db"
        self.log = ChangeLog(self.changes_url)
        self.known: dict[str, set[str]] = {"jobs": set(), "job_details": set()}
        self.edits = 0
        self.now = 1_800_000_000.0
        for job in JOBS[:4]:
            self.sandbox.publish(job)
            self.log.append([job["publicId"]])

    def teardown(self) -> None:
        try:
            assert self.run("all")
            assert self.target.titles("jobs") == self.truth()
            assert self.target.titles("job_details") == self.truth()
            self.check_flags()
        finally:
            self.serving.__exit__(None, None, None)
            self.folder.cleanup()

    def time(self) -> float:
        """The time, as the tap asks for it."""
        return self.now

    def truth(self) -> dict[str, str]:
        jobs = [posting.job for posting in self.sandbox.organisation.published()]
        return {job["id"]: job["jobTitle"] for job in jobs}

    def run(self, refresh: str, upto: int | None = None, *, jobs: bool = True) -> bool:
        """Run the tap into the target, with `jobs` or without; True if both came to their ends.

        A minute after the last run: versions are seconds, and a target that died has told no state.
        """
        self.now += 60
        config = {
            "api_key": self.sandbox.key,
            "base_url": self.base_url,
            "rate_limit_requests": 100_000,
            "detail_refresh": refresh,
            "max_concurrent_requests": 2,
            "changes_url": self.changes_url,
        }
        catalog = catalog_of(config)
        (of_jobs,) = (it for it in catalog["streams"][0]["metadata"] if it["breadcrumb"] == [])
        of_jobs["metadata"]["selected"] = jobs
        tap = TapPublicJobs(config=config, catalog=catalog, state=self.target.state)
        complete = True
        with captured() as output, pytest.MonkeyPatch.context() as patch:
            for module in (snapshot, streams):
                patch.setattr(module, "time", self)
            try:
                tap.sync_all()
            except PublicJobsError:
                complete = False
        self.target.load(output, upto)
        self.keeping.load(output, upto)
        return complete and upto is None

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

    @rule(refresh=REFRESHES)
    def sync(self, refresh: str) -> None:
        assert self.run(refresh)
        assert self.target.titles("jobs") == self.truth()
        details = self.target.titles("job_details")
        assert {key: details.get(key) for key in self.truth()} == self.truth()
        self.check_flags()

    @rule(jobs=st.booleans())
    def sync_what_webhooks_named(self, *, jobs: bool) -> None:
        """The details are as they are at the API, and the list is read only for `jobs`."""
        assert self.run("notified", jobs=jobs)
        for target in (self.target, self.keeping):
            assert target.published("job_details") == self.truth()
        if jobs:
            assert self.target.titles("jobs") == self.truth()

    def check_flags(self) -> None:
        """Every row tells whether its job is published, and what it was keeps its content."""
        for target in (self.target, self.keeping):
            assert target.published("jobs") == self.truth()
            assert target.published("job_details") == self.truth()
        for stream in ("jobs", "job_details"):
            assert self.keeping.titles(stream).keys() >= self.known[stream]

    @rule(refresh=ANY_REFRESH, upto=st.integers(0, 40), jobs=st.booleans())
    def crash(self, refresh: str, upto: int, *, jobs: bool) -> None:
        """The target, or the machine, dies after so many messages."""
        self.run(refresh, upto=upto, jobs=jobs)

    @rule(refresh=ANY_REFRESH, data=st.data())
    @precondition(lambda self: self.truth())
    def fail(self, refresh: str, data: st.DataObject) -> None:
        """One detail fails all its tries; the run goes on and ends incomplete."""
        published = [it.job["publicId"] for it in self.sandbox.organisation.published()]
        self.sandbox.fail_next("http_500", None, data.draw(st.sampled_from(published)))
        before = self.target.titles("job_details").keys()
        if not self.run(refresh):
            assert self.target.titles("job_details").keys() >= before
        self.sandbox.recover()

    @invariant()
    def what_is_published_is_never_lost(self) -> None:
        """Once it was loaded, a job stays for as long as it is published."""
        for stream, known in self.known.items():
            loaded, published = self.target.titles(stream).keys(), self.truth().keys()
            assert loaded >= known & published
            self.known[stream] = loaded & published


class TestHistories(Histories.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=30, stateful_step_count=15, deadline=None)

    @pytest.fixture(autouse=True)
    def _small_and_quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """State after every second record, and no waiting between tries."""
        monkeypatch.setattr(ledger, "FEWEST_BETWEEN_STATES", 2)
        monkeypatch.setattr(client, "FIRST_WAIT", 0.0)
