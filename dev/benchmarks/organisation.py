"""A year of an organisation, and the API that shows it, in memory and in simulated time.

What was published at any moment follows from the seed alone, so a cache or a replica can show an
earlier moment. All times are seconds since the epoch.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple

from fake_api import FakeApi

from tap_public_jobs.errors import PageError, PublicJobsError, RequestError
from tap_public_jobs.limit.verdict import MAX_TRIES
from tap_public_jobs.sync.source import JobRef, Page

Json = Any
Kind = Literal["opened", "edited", "closed", "saved"]

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
BEGIN = 1_799_971_200.0  # midnight, UTC

# Jobs published at a time; how long one stays published, and how long it stays unchanged.
JOBS, LIFE, UNCHANGED = 150, 60 * DAY, 19 * DAY
# The share of edits that only the detail shows; of the other edits that change the publicId; and of
# closed jobs that are opened again.
HIDDEN, RENAMED, REOPENED = 0.4, 0.02, 0.05
# The shares of notifications that are lost, late and repeated; and how many a year are of drafts.
LOST, LATE, REPEATED, DRAFTS = 0.02, 0.05, 0.03, 500

PAGE_SIZE = 100
# The total is counted anew this often, and a replica lags by this much at most.
COUNTED_EVERY, MOST_LAG = 5 * MINUTE, 30.0
FAULTS = 0.001


class Version(NamedTuple):
    """A posting from a moment on; the list shows `title`, and only the detail `overview`."""

    since: float
    public_id: str
    title: int
    overview: int


@dataclass
class Posting:
    """A job, with the periods in which it is published and its versions."""

    id: str
    periods: list[tuple[float, float]]
    versions: list[Version]

    def is_published(self, at: float) -> bool:
        """Return whether it is published at this moment."""
        return any(opened <= at < closed for opened, closed in self.periods)

    def is_ever_published(self, begin: float, end: float) -> bool:
        """Return whether it is published at any moment between two."""
        return any(opened <= end and begin < closed for opened, closed in self.periods)

    def is_always_published(self, begin: float, end: float) -> bool:
        """Return whether it is published at each moment between two."""
        return any(opened <= begin and end < closed for opened, closed in self.periods)

    def seconds_published(self, begin: float, end: float) -> float:
        """Return for how long it is published between two moments."""
        return sum(
            max(0.0, min(closed, end) - max(opened, begin)) for opened, closed in self.periods
        )

    def at(self, moment: float) -> Version:
        """Return its version at this moment."""
        return self.versions[max(0, bisect_right(self.versions, moment, key=lambda it: it[0]) - 1)]


class Event(NamedTuple):
    """What happens to a posting; `notified_at` is when its webhook arrives, if it does."""

    at: float
    kind: Kind
    posting: Posting
    public_ids: tuple[str, ...]
    notified_at: tuple[float, ...]


class Incident(NamedTuple):
    """Something that goes wrong between two moments."""

    kind: str
    begin: float
    end: float


class SimulatedOrganisation:
    """The postings of a year and what happens to them, from a seed."""

    def __init__(self, seed: int, days: int) -> None:
        self._random = Random(seed)  # noqa: S311  # a simulation
        self.end = BEGIN + days * DAY
        self.postings: list[Posting] = []
        self.events: list[Event] = []
        for _ in range(JOBS):
            self._open(BEGIN - DAY)
        at = BEGIN
        while (at := at + self._random.expovariate(JOBS / LIFE)) < self.end:
            self._open(self._working_time(at))
        bulk = BEGIN + days // 2 * DAY + 10 * HOUR
        for posting in [it for it in self.postings if it.is_published(bulk)][::3]:
            self._edit(posting, bulk + self._random.uniform(0, 20 * MINUTE))
        for number in range(DRAFTS * days // 365):
            at = self._working_time(self._random.uniform(BEGIN, self.end))
            public_id = f"draft-{number}"
            draft = Posting(public_id, [], [Version(at, public_id, 0, 0)])
            self._note_event(at, "saved", draft, public_id)
        self.events.sort(key=lambda it: it.at)

    @property
    def hours(self) -> float:
        """How many hours the year has."""
        return (self.end - BEGIN) / HOUR

    def day(self, part: float) -> float:
        """Return the midnight before this part of the year has passed."""
        return BEGIN + int(part * (self.end - BEGIN) / DAY) * DAY

    def published(self, at: float) -> list[Posting]:
        """Return the published postings, the newest first."""
        return [it for it in reversed(self.postings) if it.is_published(at)]

    def _working_time(self, at: float) -> float:
        """Move most moments to a working day between 8 and 18."""
        if self._random.random() < 0.1:  # noqa: PLR2004
            return at
        day = int((at - BEGIN) // DAY)
        day -= max(0, day % 7 - 4)
        return BEGIN + day * DAY + self._random.uniform(8, 18) * HOUR

    def _open(self, at: float) -> None:
        number = len(self.postings)
        closed = self._working_time(at + 2 * DAY + self._random.expovariate(1 / LIFE))
        posting = Posting(f"{number}", [(at, closed)], [Version(at, f"role-{number}", 0, 0)])
        self.postings.append(posting)
        self._note_event(at, "opened", posting, f"role-{number}")
        edited = at
        while (edited := edited + self._random.expovariate(1 / UNCHANGED)) < closed:
            self._edit(posting, min(self._working_time(edited), closed - MINUTE))
        self._note_event(closed, "closed", posting, posting.at(closed).public_id)
        if self._random.random() < REOPENED:
            again = self._working_time(closed + DAY + self._random.expovariate(1 / (5 * DAY)))
            posting.periods.append((again, again + LIFE / 4))
            self._note_event(again, "opened", posting, posting.at(again).public_id)
            self._note_event(again + LIFE / 4, "closed", posting, posting.at(again).public_id)

    def _edit(self, posting: Posting, at: float) -> None:
        opened = posting.periods[0][0]
        at = max(at, opened + MINUTE)
        _, public_id, title, overview = before = posting.at(at)
        if self._random.random() < HIDDEN:
            overview += 1
        else:
            title += 1
            if self._random.random() < RENAMED:
                public_id = f"role-{posting.id}-{title}"
        later = [it._replace(public_id=public_id) for it in posting.versions if it.since > at]
        later = [
            it._replace(
                title=it.title + title - before.title,
                overview=it.overview + overview - before.overview,
            )
            for it in later
        ]
        earlier = [it for it in posting.versions if it.since <= at]
        posting.versions = [*earlier, Version(at, public_id, title, overview), *later]
        self._note_event(at, "edited", posting, before.public_id, public_id)

    def _note_event(self, at: float, kind: Kind, posting: Posting, *public_ids: str) -> None:
        """Note an event of the year, and when its notifications arrive."""
        if not BEGIN < at < self.end:
            return
        notified = at + self._random.uniform(1, 20)
        if self._random.random() < LATE:
            notified += self._random.uniform(0, 2 * HOUR)
        again = [notified + self._random.uniform(0, DAY)] * (self._random.random() < REPEATED)
        is_lost = self._random.random() < LOST
        self.events.append(
            Event(at, kind, posting, public_ids, () if is_lost else (notified, *again))
        )


@dataclass
class Gateway:
    """What `PublicJobsClient` offers, through a cache, two replicas and all that goes wrong.

    Attributes:
        organisation: Whose jobs it shows.
        incidents: What goes wrong, and when.
        broken: The posting whose detail fails or is refused in some incidents.
        now: The time; requests and waits move it on.
        requests: Each request since the run began, every try counted.
        retries: How many of them were further tries; the tap's summary has it.
    """

    organisation: SimulatedOrganisation
    incidents: list[Incident]
    broken: Posting
    random: Random
    now: float = BEGIN
    requests: list[str] = field(default_factory=list)
    retries: int = 0
    _cache: dict[str, tuple[float, Json]] = field(default_factory=dict)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.now += seconds

    def is_on(self, *kinds: str) -> bool:
        """Return whether one of these incidents is going on."""
        return any(it.kind in kinds and it.begin <= self.now < it.end for it in self.incidents)

    @property
    def lifetime(self) -> float:
        """How long an answer is cached."""
        return 10 * MINUTE if self.is_on("slow cache") else MINUTE

    def page(self, number: int) -> Page:
        """Return one page of the list.

        Raises:
            PageError: It cannot be read.
            PublicJobsError: The key is refused.
        """
        try:
            page: Page = self._get(f"page {number}", MAX_TRIES, lambda api: api.page(number))
        except RequestError as error:
            msg = f"Page {number} of the list of jobs cannot be read: {error}."
            raise PageError(msg) from error
        return page

    def detail(self, job: JobRef, tries: int = MAX_TRIES) -> Json:
        """Return one job.

        Raises:
            NotFoundError: It is not published.
            RequestError: The request failed.
        """
        return self._get(f"detail {job.public_id}", tries, lambda api: api.detail(job))

    def _get(self, request: str, tries: int, ask: Callable[[FakeApi], Json]) -> Json:
        status = 0
        for number in range(tries):
            self.now += 1.0  # sixty in a minute
            self.requests.append(request)
            self.retries += number > 0
            status = self._fault(request)
            if not status:
                return self._answer(request, ask)
            self.now += min(2.0**number, MINUTE) / 2
        if status == 403:  # noqa: PLR2004
            self.requests.append("page 1")  # is it the key, or this job?
        msg = f"{request}: the response is {status}"
        raise RequestError(msg, status)

    def _fault(self, request: str) -> int:
        """Return the status of a failure, or 0."""
        if self.is_on("revoked key"):
            msg = "The API refuses the key (401)."
            raise PublicJobsError(msg)
        is_broken = request == f"detail {self.broken.at(self.now).public_id}"
        if is_broken and self.is_on("refused detail"):
            return 403
        if self.is_on("outage") or self.random.random() < FAULTS:
            return 503
        if request.startswith("detail") and self.is_on("no details"):
            return 500
        return 500 if is_broken and self.is_on("failing detail") else 0

    def _answer(self, request: str, ask: Callable[[FakeApi], Json]) -> Json:
        born, answer = self._cache.get(request, (0.0, None))
        if not born <= self.now < born + self.lifetime:
            lag = self.random.choice((0.0, self.random.uniform(0, MOST_LAG)))
            answer = ask(self._origin(self.now - lag))  # a 404 is not cached
            self._cache[request] = self.now, answer
        return answer

    def _origin(self, at: float) -> FakeApi:
        """Return the API behind the cache, as it is at a moment."""
        api, published = FakeApi(PAGE_SIZE), self.organisation.published(at)
        is_other, has_field = self.is_on("other organisation"), self.is_on("new field")
        for posting in published:
            _, public_id, title, overview = posting.at(at)
            job = {"id": posting.id, "publicId": public_id, "jobTitle": f"Role {title}"}
            job |= {"id": f"x{posting.id}", "publicId": f"x{posting.id}"} if is_other else {}
            job |= {"remote": "yes"} if has_field else {}
            api.published[job["id"]] = job | {"roleOverview": f"{title} {overview}"}
        if is_other or self.is_on("details not found"):
            api.answers = {job["publicId"]: None for job in api.published.values()}
        if self.is_on("lost page"):
            api.answers[2] = lambda page: page._replace(items=[])
        if self.is_on("empty list", "halved list"):
            shown = 0 if self.is_on("empty list") else len(published) // 2
            api.hidden = {*[*api.published][shown:]}
        api.total = lambda: self._total(api, at)
        return api

    def _total(self, api: FakeApi, at: float) -> int:
        """Return how many jobs the API says that it lists."""
        if self.is_on("empty list", "halved list"):
            total = len(api.listed())
        else:
            total = len(self.organisation.published(at - at % COUNTED_EVERY))
        return total + 3 * self.is_on("high total")


def usual_incidents(organisation: SimulatedOrganisation) -> Iterator[Incident]:
    """Yield what goes wrong in any year: a cache, deployments, outages, two broken details."""
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


def worse_incidents(organisation: SimulatedOrganisation) -> Iterator[Incident]:
    """Yield those of a year in which more goes wrong; some of each kind meet the nightly run."""
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
