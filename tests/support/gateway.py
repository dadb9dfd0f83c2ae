"""An organisation at work for a year, and its API behind a cache, two replicas and incidents.

The recruiters are those of the demo. What was published at any moment follows from the seed alone,
so a cache or a replica can show an earlier moment. Times are seconds since the epoch.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple

from fake_api import Document, FakeApi
from public_jobs_sandbox.recruiters import Recruiters
from public_jobs_sandbox.state import Sandbox
from typing_extensions import override

from tap_public_jobs.errors import PageError, RequestError, TapError
from tap_public_jobs.limit.verdict import MAX_TRIES
from tap_public_jobs.sync.source import JobRef, Page

Json = Any
Jobs = dict[str, Document]  # published at a moment, by id, in the order of the list

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
BEGIN = 1_799_971_200.0  # midnight, UTC

JOBS = 150
# What people do on a working day, in office hours and at any hour; and in a campaign, in minutes.
IN_OFFICE, AT_ANY_HOUR, IN_A_CAMPAIGN = 18, 2, 50
# The shares of edits that only the detail shows, that change the publicId, and that are a closed
# job's return.
HIDDEN, RENAMED, REOPENED = 0.4, 0.01, 0.01
# The shares of notifications that are lost, late and repeated; and how many a day are of drafts.
LOST, LATE, REPEATED, DRAFTS = 0.02, 0.05, 0.03, 2

# What the API shows of a job; the last one in its detail alone.
FIELDS = ("id", "publicId", "jobTitle", "maxSalary", "roleOverview")

PAGE_SIZE = 100
# The total is counted anew this often, and a replica lags by this much at most.
COUNTED_EVERY, MOST_LAG = 5 * MINUTE, 30.0
FAULTS = 0.001


class Event(NamedTuple):
    """A job that changed, was opened (none before) or closed (none after).

    Attributes:
        notified_at: When its webhooks arrive, if they do.
    """

    at: float
    before: Document | None
    after: Document | None
    notified_at: tuple[float, ...]

    @property
    def key(self) -> str:
        (key,) = {str(job["id"]) for job in (self.before, self.after) if job}
        return key

    @property
    def public_ids(self) -> list[str]:
        return [job["publicId"] for job in (self.before, self.after) if job]


class Incident(NamedTuple):
    """Something that goes wrong between two moments."""

    kind: str
    begin: float
    end: float


class Chronicle:
    """What was published at each moment of a year, and what happened, from a seed."""

    def __init__(self, seed: int, days: int) -> None:
        self.end = BEGIN + days * DAY
        self._random = Random(seed)  # noqa: S311  # a simulation
        self._sandbox = Sandbox.demo(JOBS, seed=seed)
        self._recruiters = Recruiters(self._sandbox, seed)
        self._edits = 0
        self._moments = [(BEGIN - DAY, self._published())]
        for day in range(days):
            if day % 7 < 5:
                self._work(BEGIN + day * DAY, is_campaign=day == days // 2 // 7 * 7)
        self.events = [*self._events()]

    @property
    def hours(self) -> float:
        """How many hours the year has."""
        return (self.end - BEGIN) / HOUR

    def day(self, part: float) -> float:
        """The midnight before this part of the year has passed."""
        return BEGIN + int(part * (self.end - BEGIN) / DAY) * DAY

    def at(self, moment: float) -> Jobs:
        """What is published at a moment."""
        return self._moments[self._last(moment)][1]

    def between(self, begin: float, end: float) -> list[Jobs]:
        """What is published at one of two moments, or between them."""
        return [jobs for _, jobs in self._moments[self._last(begin) : self._last(end) + 1]]

    def _last(self, moment: float) -> int:
        return max(0, bisect_right(self._moments, moment, key=itemgetter(0)) - 1)

    def _work(self, midnight: float, *, is_campaign: bool) -> None:
        """Let the recruiters do their work, and others edit jobs."""
        hours = [(8.0, 18.0)] * IN_OFFICE + [(0.0, 24.0)] * AT_ANY_HOUR
        hours += [(10.0, 10.3)] * IN_A_CAMPAIGN if is_campaign else []
        work = self._recruiters.work()
        for hour in sorted(self._random.uniform(*between) for between in hours):
            # Neither do the recruiters all of it in the morning, nor does it take longer.
            if self._random.random() < 0.5 or next(work, None) is None:
                self._edit()
            self._moments.append((midnight + hour * HOUR, self._published()))
        for _ in work:
            self._moments.append((self._moments[-1][0] + MINUTE, self._published()))

    def _edit(self) -> None:
        """Close a job, if there are more than at first; else open one again, or edit one."""
        organisation, kind = self._sandbox.organisation, self._random.random()
        jobs = [it.job for it in organisation.published()]
        closed = [it.job for it in organisation.postings.values() if not it.is_published]
        if len(jobs) > JOBS:
            organisation.unpublish(self._random.choice(jobs[1:])["publicId"])
            return
        if kind < REOPENED:
            organisation.publish(self._random.choice(closed))
            return
        job = self._random.choice(jobs[-PAGE_SIZE // 2 :])
        self._edits += 1
        fields = {"jobTitle": f"Title {self._edits}"}
        if kind < REOPENED + RENAMED:
            fields["publicId"] = f"role-{self._edits}"
        if kind > 1 - HIDDEN:
            fields = {"roleOverview": f"Overview {self._edits}"}
        organisation.edit(job["publicId"], **fields)

    def _published(self) -> Jobs:
        """What is published now, the newest first, with short texts."""
        found: Jobs = {}
        last = self._moments[-1][1] if self._edits else {}
        for posting in reversed(self._sandbox.organisation.published()):
            job = {name: posting.job[name] for name in FIELDS}
            job["roleOverview"] = job["roleOverview"][:40]
            found[job["id"]] = job if job != last.get(job["id"]) else last[job["id"]]
        return found

    def _events(self) -> Iterator[Event]:
        events = [
            Event(at, before.get(key), after.get(key), self._notified(at))
            for (_, before), (at, after) in pairwise(self._moments)
            for key in {**before, **after}
            if before.get(key) != after.get(key)
        ]
        for number in range(round(DRAFTS * self.hours / 24)):
            draft = dict.fromkeys(FIELDS, f"draft-{number}")
            at = self._random.uniform(BEGIN, self.end)
            events.append(Event(at, draft, draft, self._notified(at)))
        yield from sorted(events, key=itemgetter(0))

    def _notified(self, at: float) -> tuple[float, ...]:
        """When the webhooks of an event arrive."""
        notified = at + self._random.uniform(1, 20)
        if self._random.random() < LATE:
            notified += self._random.uniform(0, 2 * HOUR)
        again = [notified + self._random.uniform(0, DAY)] * (self._random.random() < REPEATED)
        return () if self._random.random() < LOST else (notified, *again)


class Gateway(FakeApi):
    """The API of an organisation through a cache, two replicas and all that goes wrong.

    Args:
        organisation: Whose jobs it shows.
        incidents: What goes wrong, and when.
        seed: Of faults and lags.

    Attributes:
        now: The time; requests and waits move it on.
        broken: The id of the job whose detail fails or is refused in some incidents.
        requests: Each request since the run began, every try counted.
        retries: How many of them were further tries; the tap's summary has it.
    """

    def __init__(self, organisation: Chronicle, incidents: list[Incident], seed: int) -> None:
        super().__init__(PAGE_SIZE)
        self.organisation = organisation
        self.now = BEGIN
        self.retries = 0
        *_, self.broken = organisation.at(BEGIN)  # the oldest, which nobody closes
        self._incidents = incidents
        self._random = Random(seed)  # noqa: S311  # a simulation
        self._cache: dict[str, tuple[float, Json]] = {}

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.now += seconds

    def is_on(self, *kinds: str) -> bool:
        """Whether one of these incidents is going on."""
        return any(it.kind in kinds and it.begin <= self.now < it.end for it in self._incidents)

    @property
    def lifetime(self) -> float:
        """How long an answer is cached."""
        return 10 * MINUTE if self.is_on("slow cache") else MINUTE

    @override
    def page(self, number: int) -> Page:
        try:
            page: Page = self._get(f"page {number}", MAX_TRIES, lambda api: api.page(number))
        except RequestError as error:
            message = f"Page {number} of the list of jobs cannot be read: {error}."
            raise PageError(message) from error
        return page

    @override
    def detail(self, job: JobRef, tries: int = MAX_TRIES) -> Document:
        found: Document = self._get(f"detail {job.public_id}", tries, lambda api: api.detail(job))
        return found

    def _get(self, request: str, tries: int, ask: Callable[[FakeApi], Json]) -> Json:
        status = 0
        for number in range(tries):
            self.now += 1.0  # sixty in a minute
            self.requests.append(request)
            self.retries += number > 0
            status = self._fault(request)
            if not status:
                return self._cached(request, ask)
            self.now += min(2.0**number, MINUTE) / 2
        if status == 403:
            self.requests.append("page 1")  # is it the key, or this job?
        message = f"{request}: the response is {status}"
        raise RequestError(message, status)

    def _fault(self, request: str) -> int:
        """The status of a failure, or 0."""
        if self.is_on("revoked key"):
            message = "The API refuses the key (401)."
            raise TapError(message)
        broken = self.organisation.at(self.now)[self.broken]
        is_broken = request == f"detail {broken['publicId']}"
        if is_broken and self.is_on("refused detail"):
            return 403
        if self.is_on("outage") or self._random.random() < FAULTS:
            return 503
        if request.startswith("detail") and self.is_on("no details"):
            return 500
        return 500 if is_broken and self.is_on("failing detail") else 0

    def _cached(self, request: str, ask: Callable[[FakeApi], Json]) -> Json:
        born, answer = self._cache.get(request, (-math.inf, None))
        if not born <= self.now < born + self.lifetime:
            lag = self._random.choice((0.0, self._random.uniform(0, MOST_LAG)))
            answer = ask(self._origin(self.now - lag))  # a 404 is not cached
            self._cache[request] = self.now, answer
        return answer

    def _origin(self, at: float) -> FakeApi:
        """The API behind the cache, as it is at a moment."""
        api = FakeApi(PAGE_SIZE)
        api.published = self.organisation.at(at)
        if self.is_on("new field"):
            api.published = {key: it | {"remote": "yes"} for key, it in api.published.items()}
        is_other = self.is_on("other organisation")
        if is_other:
            others = [it | {"id": f"x{it['id']}"} for it in api.published.values()]
            api.published = {it["id"]: it | {"publicId": it["id"]} for it in others}
        if is_other or self.is_on("details not found"):
            api.answers = {job["publicId"]: None for job in api.published.values()}
        if self.is_on("lost page"):
            api.answers[2] = lambda page: page._replace(items=[])
        total = len(self.organisation.at(at - at % COUNTED_EVERY))
        if self.is_on("empty list", "halved list"):
            total = 0 if self.is_on("empty list") else len(api.published) // 2
            api.hidden = {*[*api.published][total:]}
        api.total = total + 3 * self.is_on("high total")
        return api


def usual_incidents(organisation: Chronicle) -> Iterator[Incident]:
    """What goes wrong in any year: a cache, deployments, outages, two broken details."""
    end = organisation.end
    yield Incident("slow cache", (BEGIN + end) / 2, end)
    week = BEGIN + DAY + 10 * HOUR
    while week < end:
        yield Incident("outage", week, week + 2 * MINUTE)
        week += 7 * DAY
    for kind, part, hour, hours in (
        ("outage", 0.22, 13, 3),
        ("outage", 0.6, 1.6, 1.2),
        ("failing detail", 0.3, 9, 72),
        ("refused detail", 0.5, 9, organisation.hours / 12),
        ("new field", 0.7, 11, 10_000),
    ):
        begin = organisation.day(part) + hour * HOUR
        yield Incident(kind, begin, begin + hours * HOUR)


def worse_incidents(organisation: Chronicle) -> Iterator[Incident]:
    """Those of a year in which more goes wrong; some of each kind meet the nightly run."""
    yield from usual_incidents(organisation)
    for kind, parts, hour, hours in (
        ("empty list", (0.03, 0.64), 1.8, 0.7),
        ("empty list", (0.05, 0.26, 0.68, 0.83), 11.9, 0.7),
        ("halved list", (0.09, 0.8), 1.5, 2),
        ("halved list", (0.13, 0.57, 0.9), 14.5, 2),
        ("lost page", (0.15, 0.72), 1.9, 0.5),
        ("other organisation", (0.28,), 1.5, 1),
        ("other organisation", (0.78,), 12.5, 1),
        ("high total", (0.4,), 9, organisation.hours / 12),
        ("no details", (0.74,), 9, 72),
        ("details not found", (0.86,), 1.5, 2),
        ("revoked key", (0.94,), 12.5, 1),
    ):
        for begin in (organisation.day(part) + hour * HOUR for part in parts):
            yield Incident(kind, begin, begin + hours * HOUR)
