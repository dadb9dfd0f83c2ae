"""A year of an organisation under each schedule: which runs fail, and what is wrong or in vain.

In memory, and weekly, because each of the eight years takes minutes: `uv run pytest tests/year.py`.
`YEAR_DAYS=91` presses all incidents into a quarter, `YEAR_SEED=2` plays another year.

The organisation has 150 jobs, and in a year some 5,000 openings, closings and edits. Behind the
API are caches of one and of ten minutes, a replica that lags by up to 30 s, a total that is counted
every five minutes, faults, deployments, outages, a detail that fails for three days and is refused
for a month. Notifications are lost, late or repeated; there are a new key, a new field and a lost
state. In a worse year the list is also empty, halved, another organisation's or without its second
page, its total is too high, and no detail answers.
"""

import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_api import Document
from fake_tap import Pipeline
from harness import captured, run_tap
from model_target import ModelTarget
from support.gateway import (
    BEGIN,
    COUNTED_EVERY,
    DAY,
    HOUR,
    MINUTE,
    MOST_LAG,
    PAGE_SIZE,
    Chronicle,
    Event,
    Gateway,
    Incident,
    usual_incidents,
    worse_incidents,
)
from support.truth import Row, Truth, lost, times_in
from typing_extensions import override

from tap_public_jobs.errors import TapError
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.state_json import load
from tap_public_jobs.sync.work import has_work

DAYS = int(os.environ.get("YEAR_DAYS", "365"))
SEED = int(os.environ.get("YEAR_SEED", "1"))

RETRIED_AFTER = 12 * MINUTE
# While frequent runs fail, there is an alert this often.
ALERT_EVERY = HOUR
# The parts of the year after which the key is replaced, and the state is lost.
KEY_ROTATES, STATE_IS_LOST = 0.36, 0.82
# A detail that is older may be fetched again: half of `detail_max_age_days`.
OLD = 3.5 * DAY
MOST_LATE = 2  # runs
# Incidents in which nothing can be read, and those in which one detail cannot.
CLOSED = "outage", "revoked key", "no details", "details not found", "other organisation"
BROKEN = "failing detail", "refused detail"


class Schedule(NamedTuple):
    """When the tap runs, and with which `detail_refresh`: `nightly` at 02:00, else `refresh`.

    Attributes:
        most_alerts: In a usual year.
        most_surplus: Requests in a usual year for each hundred that were needed.
    """

    name: str
    every: float
    refresh: str
    nightly: str
    most_alerts: int
    most_surplus: int = 10

    @property
    def is_notified(self) -> bool:
        """Whether it reads the notification log."""
        return self.refresh == "notified"

    def runs(self, end: float) -> Iterator[tuple[float, str]]:
        """Yield the beginning of each run, and its `detail_refresh`."""
        at = BEGIN + 2 * HOUR
        while at < end:
            yield at, self.nightly if (at - BEGIN) % DAY == 2 * HOUR else self.refresh
            at += self.every


SCHEDULES = (
    Schedule("nightly all", DAY, "all", "all", 8),
    # A detail that is refused for a month costs each run three tries and a look at the list.
    Schedule("hourly changed", HOUR, "changed", "changed", 8, most_surplus=11),
    # A run looks again at what is missing for less than an hour, and at details behind a cache.
    Schedule("notified every 15 minutes", 15 * MINUTE, "notified", "changed", 30, most_surplus=20),
    Schedule("notified every 2 minutes", 2 * MINUTE, "notified", "changed", 16, most_surplus=70),
)


@dataclass
class Tally:
    """What a year brought.

    Attributes:
        failures: When a run failed, and what it said; retries do not count again.
        alerts: The same of retries.
        false_times: Of rows, if no cache and no replica explains them.
        wrong_rows: Published jobs that were closed or deleted.
        late: Openings and edits that the tables lacked after two runs that could read them.
        needed: The requests of somebody who knows what has changed.
        surplus: All others, each try that fails included.
    """

    failures: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    false_times: set[tuple[str, ...]] = field(default_factory=set)
    wrong_rows: set[tuple[str, ...]] = field(default_factory=set)
    late: list[Event] = field(default_factory=list)
    needed: int = 0
    surplus: int = 0


class Year(Pipeline):
    """One organisation under one schedule."""

    def __init__(self, schedule: Schedule, gateway: Gateway, folder: Path) -> None:
        changes_url = f"sqlite:///{folder / 'changes.db'}"
        super().__init__(
            gateway,
            page_size=PAGE_SIZE,
            max_concurrent_requests=1,
            column_naming="snake_case",
            **({"changes_url": changes_url} if schedule.is_notified else {}),
        )
        self.schedule, self.gateway, self.organisation = schedule, gateway, gateway.organisation
        self.tally, self.judge = Tally(), Truth()
        self.targets = {"hard": ModelTarget()}
        self.rows = self.hard.rows  # that the last run left
        self._log = NotificationLog(changes_url)
        self._log.append({self._log.name: []})
        events = self.organisation.events
        self._notifications = sorted(
            ((at, event.public_ids) for event in events for at in event.notified_at), reverse=True
        )
        self._events = [*reversed(events)]
        self._documents: dict[str, list[tuple[float, Document]]] = {}
        for event in events:
            if job := event.after:
                self._documents.setdefault(job["id"], []).append((event.at, job))
        # Since when runs of a frequent schedule fail, and when the last alert was.
        self._failing_since = self._alerted_at = -math.inf
        # Events that the tables do not show yet, and after how many runs.
        self._pending: list[tuple[Event, int]] = []
        # When each detail was fetched last, and what it was; and absences that were asked for.
        self._fetched: dict[str, tuple[float, Any]] = {}
        self._absent: set[tuple[str, float]] = set()

    def play(self) -> Tally:
        """Run on schedule until the year ends, and twelve minutes after each failure."""
        is_idle, lost_at = False, self.organisation.day(STATE_IS_LOST) + 12 * HOUR
        for at, refresh in self.schedule.runs(self.organisation.end):
            if at < self.gateway.now:
                continue
            if self.gateway.now <= lost_at < at:
                self.state = {}
                self._fetched.clear()
            is_due = self._hear(at) or refresh != "notified"
            self.gateway.now = at
            # To ask whether there is work takes less time than to run the tap.
            if is_idle and not is_due and not self._has_work(at):
                self._look_for_late_rows(at)
                continue
            error = self._run(refresh, is_due=is_due)
            is_idle = not self.gateway.requests
            self._look_for_late_rows(at)
            if self.schedule.every < RETRIED_AFTER:
                self._note_result(at, error)
            elif error:
                self.tally.failures.append(error)
                self.gateway.now += RETRIED_AFTER
                self._hear(self.gateway.now)
                self.tally.alerts += filter(None, [self._run(refresh, is_due=False)])
        return self.tally

    def _has_work(self, at: float) -> bool:
        """Whether a run without news has anything to do."""
        state = load(self.state)
        last = state.last_read
        return last is None or has_work(state, Notifications(*last), int(at))

    def _note_result(self, at: float, error: str) -> None:
        """Note the result of a frequent run, whose retry is the next one, as the schedule does."""
        if not error:
            self._failing_since = self._alerted_at = -math.inf
            return
        if self._failing_since == -math.inf:
            self._failing_since = at
            self.tally.failures.append(error)
        is_old = at - self._failing_since >= RETRIED_AFTER
        if is_old and at - self._alerted_at >= ALERT_EVERY:
            self._alerted_at = at
            self.tally.alerts.append(error)

    def _hear(self, until: float) -> bool:
        """Note in the log what was notified until a moment; returns whether anything was."""
        news: list[str | None] = []
        while self._notifications and self._notifications[-1][0] <= until:
            news += self._notifications.pop()[1]
        if news and self.schedule.is_notified:
            self._log.append({self._log.name: news})
        return bool(news)

    def _run(self, refresh: str, *, is_due: bool) -> str:
        """Run the tap; returns when and why it failed, or nothing."""
        began, known, before = self.gateway.now, times_in(self.state), self.rows
        key = "a-key" if began < self.organisation.day(KEY_ROTATES) else "a-new-key"
        key = "another-key" if self.gateway.is_on("other organisation") else key
        self.run(api_key=key, detail_refresh=refresh)
        self.rows = self.hard.rows
        stale = self.gateway.lifetime + MOST_LAG + COUNTED_EVERY
        published = self.organisation.between(began - stale, self.gateway.now)
        self._check_rows(known, published, before)
        self._count_requests(began, refresh, is_due=is_due)
        return f"day {(began - BEGIN) / DAY:.2f}: {self.error}" if self.error else ""

    @override
    def sync(self, config: dict[str, Any], catalog: dict[str, Any] | None) -> None:
        """Run the tap while the time of the API passes."""
        time = {"clock": lambda: self.gateway.now, "sleep": self.gateway.sleep}
        with captured() as self.output:
            try:
                run_tap(config, catalog=catalog, state=self.state, client=self.api, **time)
            except TapError as error:
                self.error = str(error)

    def _check_rows(
        self,
        known: set[int],
        published: list[dict[str, Document]],
        before: dict[str, dict[str, Row]],
    ) -> None:
        """Compare what the run has written and deleted with what was published."""
        output, tally = self.output, self.tally
        written = output.records("job_publications")
        self.judge.note(
            [written, *(it["value"] for it in output.of("STATE")[-1:])], known, published
        )
        own = [row for row in written if not row["id"].startswith("x")]
        for key, column, time in self.judge.false_times(own):
            tally.false_times.add((key, column, time))
            if column == "unpublished_at":
                tally.wrong_rows.add((key, column, time))
        for stream in ("jobs", "job_details"):
            gone = lost(before.get(stream, {}), self.rows[stream], published)
            tally.wrong_rows |= {(stream, key, f"{self.gateway.now}") for key in gone}

    def _look_for_late_rows(self, began: float) -> None:
        """Note the openings and edits from before this run that the tables still lack."""
        while self._events and self._events[-1].at <= began:
            event = self._events.pop()
            if event.after and self._can_show(event):
                self._pending.append((event, 0))
        pending = []
        published = self.organisation.at(began)
        for event, runs in self._pending:
            known_at = min(event.notified_at) if self.schedule.is_notified else event.at
            # Until then, a cache or a replica may show what was before.
            can_be_read = known_at + self.gateway.lifetime + MOST_LAG <= began
            if self._shows(event) or event.key not in published:
                continue
            is_broken = event.key == self.gateway.broken and self.gateway.is_on(*BROKEN)
            if self.gateway.is_on(*CLOSED) or is_broken or not can_be_read:
                pending.append((event, runs))
            elif runs < MOST_LATE:
                pending.append((event, runs + 1))
            else:
                self.tally.late.append(event)
        self._pending = pending

    def _can_show(self, event: Event) -> bool:
        """Whether the next runs can notice an event at all: the list shows it, or a webhook."""
        if self.schedule.is_notified:
            return bool(event.notified_at)
        before, after = event.before, event.after
        is_hidden = before and after and before["roleOverview"] != after["roleOverview"]
        return self.schedule.refresh == "all" or not is_hidden

    def _shows(self, event: Event) -> bool:
        """Whether the tables have a job as it was at an event, or later."""
        since = [job for at, job in self._documents[event.key] if at >= event.at]
        job, detail = (self.rows[it].get(event.key, {}) for it in ("jobs", "job_details"))
        texts = {(it["jobTitle"], it["roleOverview"]) for it in since}
        return job.get("job_title") in {it["jobTitle"] for it in since} and (
            (detail.get("job_title"), detail.get("role_overview")) in texts
        )

    def _count_requests(self, began: float, refresh: str, *, is_due: bool) -> None:
        """Count the requests that a client that knew all changes would send, and all others."""
        published = self.organisation.at(began)
        jobs = {it["publicId"]: it for it in self.organisation.at(self.gateway.now).values()}
        least_pages = max(1, math.ceil(len(published) / PAGE_SIZE)) if is_due else 0
        pages, details = 0, set[str]()
        for request in self.gateway.requests:
            kind, _, name = request.partition(" ")
            if kind == "page":
                pages += 1
                is_needed = pages <= least_pages
            else:
                is_needed = name not in details and self._needs(jobs.get(name), name, refresh)
                details.add(name)
            self.tally.needed += is_needed
            self.tally.surplus += not is_needed

    def _needs(self, job: Document | None, public_id: str, refresh: str) -> bool:
        """Whether a detail is new, changed or old, or first shows that a job is gone."""
        now = self.gateway.now
        if job is None:
            closings = (
                it.at
                for it in self.organisation.events
                if it.after is None and public_id in it.public_ids and it.at <= now
            )
            absence = public_id, max(closings, default=0.0)
            is_first = absence not in self._absent
            self._absent.add(absence)
            return is_first
        version = job, self.gateway.is_on("new field")
        fetched_at, fetched = self._fetched.get(job["id"], (0.0, None))
        if job["id"] not in self.rows["job_details"]:
            return False  # the request failed
        self._fetched[job["id"]] = now, version
        return refresh == "all" or fetched != version or now - fetched_at > OLD


@pytest.fixture(scope="module")
def organisation() -> Chronicle:
    return Chronicle(SEED, DAYS)


@pytest.mark.timeout(3600)  # the runs of every two minutes take a quarter of an hour
@pytest.mark.parametrize("incidents", [usual_incidents, worse_incidents])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda it: it.name)
def test_no_row_is_wrong_and_few_runs_fail(
    schedule: Schedule,
    incidents: Callable[[Chronicle], Iterable[Incident]],
    organisation: Chronicle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever goes wrong; in a usual year alerts and requests in vain are few, too."""
    monkeypatch.setattr(logging.root, "disabled", True)
    logging.disable(logging.CRITICAL)
    gateway = Gateway(organisation, [*incidents(organisation)], SEED)
    tally = Year(schedule, gateway, tmp_path).play()

    assert not tally.false_times
    assert not tally.wrong_rows
    if incidents is usual_incidents:
        assert len(tally.alerts) <= schedule.most_alerts
        assert tally.surplus <= tally.needed * schedule.most_surplus / 100
