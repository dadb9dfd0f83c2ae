"""What a year of operations brings: alerts, wrong rows, surplus requests and late rows."""

import logging
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from harness import captured, run_tap
from model_target import ModelTarget

from dev.benchmarks.bench import Bench, Claim, Section, table
from dev.benchmarks.organisation import (
    BEGIN,
    COUNTED_EVERY,
    DAY,
    HOUR,
    MINUTE,
    MOST_LAG,
    PAGE_SIZE,
    Event,
    Gateway,
    Incident,
    Posting,
    SimulatedOrganisation,
    usual_incidents,
    worse_incidents,
)
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.state_json import load
from tap_public_jobs.sync.work import has_work

# In the quick form, and in the full.
DAYS = (91, 365)

RETRIED_AFTER = 12 * MINUTE
# While frequent runs fail, there is an alert this often.
ALERT_EVERY = HOUR
# The parts of the year after which the key is replaced, and the state is lost.
KEY_ROTATES, STATE_IS_LOST = 0.36, 0.82
# A run may read the list this long after it began, because it retries or waits.
LONGEST_RUN = 15 * MINUTE
# A detail that is older may be fetched again: half of `detail_max_age_days`.
OLD = 3.5 * DAY
MOST_LATE = 2  # runs
# Incidents in which nothing can be read, and those in which one detail cannot.
CLOSED = "outage", "revoked key", "no details", "details not found", "other organisation"
BROKEN = "failing detail", "refused detail"

Json = Any
Row = dict[str, Json]


class Schedule(NamedTuple):
    """When the tap runs, and with which `detail_refresh`: `nightly` at 02:00, else `refresh`."""

    name: str
    every: float
    refresh: str
    nightly: str
    most_alerts: int
    most_surplus: int = 10  # percent

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
    Schedule("nightly `all`", DAY, "all", "all", 8),
    Schedule("hourly `changed`", HOUR, "changed", "changed", 8),
    Schedule("`notified` every 15 minutes", 15 * MINUTE, "notified", "changed", 30),
    # Measured for 90 days: 4 alerts, and 69 % of surplus, because each run looks again at what is
    # missing for less than an hour. A year has four times as many days, and the same incidents.
    Schedule("`notified` every 2 minutes", 2 * MINUTE, "notified", "changed", 16, most_surplus=70),
)

# Causes of a failed run, and what its error then says; the first that matches counts.
CAUSES = {
    "API": "cannot be read|refuses the key",
    "key": "api_key has changed",
    "loss": "from the list at once",
    "total": r"list shows [\d,]+ of|does not say how many",
    "missing": "not in the list",
    "detail": "the detail of",
    "other": "",
}


@dataclass
class Tally:
    """What a year brought.

    Attributes:
        failures: Failed runs by cause; those that were retries do not count again.
        alerts: When a retry failed, and why.
        wrong_dates: Dates that were not true, and that no cache or replica explains.
        wrong_rows: Published jobs that were closed or deleted.
        late: How many openings and edits the tables lacked after two runs that could read them.
        needed: The least number of requests.
        surplus: All others.
    """

    failures: Counter[str] = field(default_factory=Counter)
    alerts: list[str] = field(default_factory=list)
    wrong_dates: set[tuple[str, ...]] = field(default_factory=set)
    wrong_rows: set[tuple[str, ...]] = field(default_factory=set)
    late: int = 0
    needed: int = 0
    surplus: int = 0

    @property
    def surplus_percent(self) -> float:
        """The surplus requests for each hundred that were needed."""
        return 100 * self.surplus / self.needed


class Year:
    """One organisation under one schedule."""

    def __init__(
        self,
        schedule: Schedule,
        organisation: SimulatedOrganisation,
        gateway: Gateway,
        folder: Path,
    ) -> None:
        self.schedule, self.organisation, self.gateway = schedule, organisation, gateway
        self.tally, self.target = Tally(), ModelTarget()
        self.state: dict[str, Json] = {}
        # The rows that the last run left in the tables, by stream.
        self.rows: dict[str, dict[str, Row]] = {}
        self.postings = {it.id: it for it in organisation.postings}
        url = f"sqlite:///{folder / 'changes.db'}"
        self._log = NotificationLog(url)
        self._log.append({self._log.name: []})
        self._config = {
            "base_url": "https://jobs.example.com",
            "max_concurrent_requests": 1,
            **({"changes_url": url} if schedule.is_notified else {}),
        }
        notified = [(at, event) for event in organisation.events for at in event.notified_at]
        self._notifications = sorted(notified, key=lambda it: it[0], reverse=True)
        self._events = [*reversed(organisation.events)]
        # Since when runs of a frequent schedule fail, and when the last alert was.
        self._failing_since = self._alerted_at = -math.inf
        # Events that the tables do not show yet, and after how many runs.
        self._pending: list[tuple[Event, int]] = []
        # When each detail was fetched last, and in which version; and absences that were asked for.
        self._fetched: dict[str, tuple[float, Json]] = {}
        self._absent: set[tuple[str, float]] = set()

    def play(self) -> Tally:
        """Run on schedule until the year ends, and twelve minutes after each failure."""
        is_idle = False
        for at, refresh in self.schedule.runs(self.organisation.end):
            if at < self.gateway.now:
                continue
            if self.gateway.now <= self.organisation.day(STATE_IS_LOST) + 12 * HOUR < at:
                self.state = {}
                self._fetched.clear()
            is_due = self._notify(at) or refresh != "notified"
            self.gateway.now = at
            # To ask whether there is work takes less time than to run the tap.
            if is_idle and not is_due and not self._has_work(at):
                self._look_for_late_rows(at)
                continue
            cause = self._run(refresh, is_due=is_due)
            is_idle = not self.gateway.requests
            self._look_for_late_rows(at)
            if self.schedule.every < RETRIED_AFTER:
                self._note_result(at, cause)
            elif cause:
                self.tally.failures[cause] += 1
                self.gateway.now += RETRIED_AFTER
                self._notify(self.gateway.now)
                if again := self._run(refresh, is_due=False):
                    self.tally.alerts.append(f"day {(at - BEGIN) / DAY:.2f}, {again}")
        return self.tally

    def _has_work(self, at: float) -> bool:
        """Return whether a run without news has anything to do."""
        state = load(self.state)
        last = state.last_read
        return last is None or has_work(state, Notifications(*last), int(at))

    def _note_result(self, at: float, cause: str) -> None:
        """Note the result of a frequent run, whose retry is the next one, as the schedule does."""
        if not cause:
            self._failing_since = self._alerted_at = -math.inf
            return
        if self._failing_since == -math.inf:
            self._failing_since = at
            self.tally.failures[cause] += 1
        is_old = at - self._failing_since >= RETRIED_AFTER
        if is_old and at - self._alerted_at >= ALERT_EVERY:
            self._alerted_at = at
            self.tally.alerts.append(f"day {(at - BEGIN) / DAY:.2f}, {cause}")

    def _notify(self, until: float) -> bool:
        """Note in the log what was notified until a moment, and return whether anything was."""
        news: list[str | None] = []
        while self._notifications and self._notifications[-1][0] <= until:
            news += self._notifications.pop()[1].public_ids
        if news and self.schedule.is_notified:
            self._log.append({self._log.name: news})
        return bool(news)

    def _run(self, refresh: str, *, is_due: bool) -> str:
        """Run the tap; return why it failed, or nothing."""
        gateway = self.gateway
        began = gateway.now
        gateway.requests.clear()
        key = "a-key" if began < self.organisation.day(KEY_ROTATES) else "a-new-key"
        key = "another-key" if gateway.is_on("other organisation") else key
        config = self._config | {"api_key": key, "detail_refresh": refresh}
        time = {"clock": lambda: gateway.now, "sleep": gateway.sleep}
        error = ""
        with captured() as output:
            try:
                run_tap(config, state=self.state, client=gateway, **time)
            except PublicJobsError as reason:
                error = str(reason)
        self.target.read(output.messages)
        states = output.of("STATE")
        self.state = states[-1]["value"] if states else self.state
        before, self.rows = self.rows, self.target.rows
        deleted = {
            (stream, key)
            for stream in ("jobs", "job_details")
            for key in before.get(stream, {}).keys() - self.rows[stream].keys()
        }
        self._check_rows(began, deleted, output.records("job_publications"))
        self._count_requests(began, refresh, is_due=is_due)
        causes = (cause for cause, pattern in CAUSES.items() if re.search(pattern, error))
        return next(causes) if error else ""

    def _check_rows(self, began: float, deleted: set[tuple[str, str]], written: list[Row]) -> None:
        """Compare what the run has written and deleted with what was published."""
        now, tally = self.gateway.now, self.tally
        stale = self.gateway.lifetime + MOST_LAG + COUNTED_EVERY
        for stream, key in deleted:
            posting = self.postings.get(key)
            if posting and posting.is_always_published(began - stale, now):
                tally.wrong_rows.add((stream, key, f"{began}"))
        for row in written:
            posting = self.postings.get(row["id"])
            if posting is None:
                continue
            for column in ("firstSeenAt", "lastSeenAt"):
                at = _seconds(row[column])
                if not posting.is_ever_published(at - stale, at + LONGEST_RUN):
                    tally.wrong_dates.add((posting.id, column, row[column]))
            for column in ("openedAfter", "unpublishedAt"):
                at = _seconds(row[column]) if row[column] else 0.0
                if at and posting.is_always_published(at - stale, at + LONGEST_RUN):
                    tally.wrong_dates.add((posting.id, column, row[column]))
                    if column == "unpublishedAt":
                        tally.wrong_rows.add((posting.id, column, row[column]))

    def _look_for_late_rows(self, began: float) -> None:
        """Count the openings and edits from before this run that the tables still lack."""
        while self._events and self._events[-1].at <= began:
            event = self._events.pop()
            if event.kind in {"opened", "edited"} and self._can_show(event):
                self._pending.append((event, 0))
        pending = []
        for event, runs in self._pending:
            known_at = min(event.notified_at) if self.schedule.is_notified else event.at
            # Until then, a cache or a replica may show what was before.
            can_be_read = known_at + self.gateway.lifetime + MOST_LAG <= began
            if self._shows(event) or not event.posting.is_published(began):
                continue
            is_broken = event.posting is self.gateway.broken and self.gateway.is_on(*BROKEN)
            if self.gateway.is_on(*CLOSED) or is_broken or not can_be_read:
                pending.append((event, runs))
            elif runs < MOST_LATE:
                pending.append((event, runs + 1))
            else:
                self.tally.late += 1
        self._pending = pending

    def _can_show(self, event: Event) -> bool:
        """Return whether the next runs can notice an event at all."""
        if self.schedule.is_notified:
            return bool(event.notified_at)
        before, after = event.posting.at(event.at - 1), event.posting.at(event.at)
        return self.schedule.refresh == "all" or before.overview == after.overview

    def _shows(self, event: Event) -> bool:
        _, _, title, overview = event.posting.at(event.at)
        job, detail = (
            self.rows.get(it, {}).get(event.posting.id) for it in ("jobs", "job_details")
        )
        if not job or not detail:
            return False
        shown = int(job["jobTitle"].split()[1]), *map(int, detail["roleOverview"].split())
        return all(it >= least for it, least in zip(shown, (title, title, overview), strict=True))

    def _count_requests(self, began: float, refresh: str, *, is_due: bool) -> None:
        """Count the requests that a client that knew all changes would send, and all others."""
        published = self.organisation.published(began)
        jobs = {it.at(self.gateway.now).public_id: it for it in self.organisation.postings}
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

    def _needs(self, posting: Posting | None, public_id: str, refresh: str) -> bool:
        """Return whether a detail is new, changed or old, or first shows that a job is gone."""
        now = self.gateway.now
        if posting is None or not posting.is_published(now):
            closings = [closed for _, closed in posting.periods if closed <= now] if posting else []
            absence = public_id, max(closings, default=0.0)
            is_first = absence not in self._absent
            self._absent.add(absence)
            return is_first
        version = (*posting.at(now), self.gateway.is_on("new field"))
        fetched_at, fetched = self._fetched.get(posting.id, (0.0, None))
        if posting.id not in self.rows.get("job_details", {}):
            return False  # the request failed
        self._fetched[posting.id] = now, version
        return refresh == "all" or fetched != version or now - fetched_at > OLD


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def measure(bench: Bench) -> Section:
    """Play a usual year and a worse one under each schedule."""
    days = DAYS[bench.full]
    lines, claims = [], []
    for schedule in SCHEDULES:
        for name, incidents in (("usual", usual_incidents), ("worse", worse_incidents)):
            year = f"{schedule.name}, {name}"
            tally = play(schedule, incidents, bench.seed, days)
            bench.report(f"{year} ({days} days): {_cells(tally)}; alerts: {tally.alerts}")
            lines.append(f"{year} | {_cells(tally)}")
            claims.append(Claim(f"{year}: {{}} rows are wrong", len(tally.wrong_rows), at_most=0))
            if bench.full and incidents is usual_incidents:  # in a quarter they weigh more
                alerts, surplus = len(tally.alerts), tally.surplus_percent
                claims += [
                    Claim(f"{year}: at most {{}} alerts", alerts, schedule.most_alerts),
                    Claim(
                        f"{year}: at most {{}} % of requests are surplus",
                        surplus,
                        schedule.most_surplus,
                    ),
                ]
    return Section(
        "A year of operations", [EXPLANATION.format(days), table(COLUMNS, lines)], claims
    )


EXPLANATION = (
    "{} days of an organisation with 150 jobs, in memory: some 4,700 openings, closings and edits "
    "a year, caches of one and of ten minutes, a replica that lags by up to 30 s, a total that is "
    "counted every five minutes, faults, deployments, outages, a detail that fails for three days "
    "and is refused for a month, notifications that are lost, late or repeated, a new key, a new "
    "field and a lost state. In the worse year the list is also empty, halved, another "
    "organisation's or without its second page, its total is too high, and no detail answers. "
    "A failed run is repeated after twelve minutes; if that fails too, it is an alert. Runs every "
    "two minutes are not repeated, and count once until one succeeds: there is an alert when they "
    "have failed for twelve minutes, and then each hour. "
    "Dates and rows are wrong if no cache and no replica explains them; rows are late if two runs "
    "after that have not brought them. The least number of requests is that of somebody who knows "
    "what has changed; all tries that fail are surplus."
)

COLUMNS = (
    f"year | failed: {' | '.join(CAUSES)} | "
    "failed retries | wrong dates | wrong rows | late rows | requests | surplus, %"
)


def _cells(tally: Tally) -> str:
    failures = " | ".join(f"{tally.failures[cause]}" for cause in CAUSES)
    wrong = f"{len(tally.wrong_dates)} | {len(tally.wrong_rows)} | {tally.late}"
    requests = tally.needed + tally.surplus
    return (
        f"{failures} | {len(tally.alerts)} | {wrong} | {requests:,} | {tally.surplus_percent:.1f}"
    )


def play(
    schedule: Schedule,
    incidents: Callable[[SimulatedOrganisation], Iterable[Incident]],
    seed: int,
    days: int,
) -> Tally:
    """Play one year in memory, without the tap's own log."""
    organisation = SimulatedOrganisation(seed, days)
    # Its detail fails and is refused.
    begin, end = organisation.day(0.3), min(organisation.day(0.5) + 31 * DAY, organisation.end)
    longest = max(organisation.postings, key=lambda it: it.seconds_published(begin, end))
    random = Random(seed)  # noqa: S311  # a simulation
    gateway = Gateway(organisation, [*incidents(organisation)], longest, random)
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return Year(schedule, organisation, gateway, Path(folder)).play()
    finally:
        logging.disable(logging.NOTSET)
