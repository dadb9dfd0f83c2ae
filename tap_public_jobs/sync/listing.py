"""The published jobs as one run sees them, read from a paginated list that may drift."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tap_public_jobs.api.models import JobRef, job_ref
from tap_public_jobs.errors import NotFoundError, PageError, PublicJobsError, RequestError
from tap_public_jobs.sync.fanout import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from tap_public_jobs.api.models import Page

logger = logging.getLogger(__name__)

MAX_SWEEPS = 8
MAX_PAGES_WITHOUT_NEW_JOBS = 3

MOST_MISSING = 20
"""Known jobs that may disappear from the list although they are published. Beyond that, the list
is not believed."""

Json = Any


class Api(Protocol):
    """The operations of the API; `PublicJobsClient` implements them."""

    def page(self, number: int) -> Page:
        """Fetch one page of the list."""

    def detail(self, job: JobRef) -> dict[str, Json]:
        """Fetch the detail of one job."""


class Known(NamedTuple):
    """What earlier runs know, which decides what a list is good for."""

    jobs: Mapping[str, str] = {}
    """The publicIds of the published jobs, by id."""
    missing: Collection[str] = ()
    """Ids of those that the last list did not show."""
    shortfall: int | None = 0
    """Of the last list."""
    is_new_key: bool = False
    """Whether the API key differs from that of the last run."""


class Listing(NamedTuple):
    """The published jobs, as far as the list shows them."""

    jobs: dict[str, JobRef]
    """By id, in the order in which they were first seen."""
    summaries: list[dict[str, Json]]
    """Of the same jobs, as the API sent them."""
    gone: list[str]
    """Ids of known jobs that the list does not show, and whose details confirm it."""
    missing: dict[str, str]
    """Why, by id, it is unknown whether a known job that the list does not show is published."""
    shortfall: int | None
    """How many jobs fewer than its total the list shows; None if it has no total."""
    problems: list[str]
    """In which ways the list falls short, one sentence each."""
    is_complete: bool
    """Whether a job that is neither in `jobs` nor in `missing` is not published: the list does not
    fall short, or as the last one did."""


@dataclass
class _Sweep:
    """One walk from the first page to the last."""

    jobs: dict[str, JobRef] = field(default_factory=dict)
    summaries: dict[str, dict[str, Json]] = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)
    collected: int = 0
    total: int | None = None

    def add(self, number: int, page: Page) -> bool:
        """Add a page; return whether it has a job that the sweep had not seen."""
        known = len(self.jobs) + len(self.unusable)
        # A page beyond the last may say 0 (API page, "List published jobs", rule 2).
        if page.total is not None and (page.items or number == 1):
            self.total = max(page.total, self.total or 0)
        self.collected += len(page.items)
        for position, item in enumerate(page.items, start=1):
            if job := job_ref(item):
                self.jobs[job.id] = job
                self.summaries[job.id] = item
            else:
                self.unusable.append(f"page {number}, item {position}")
        return len(self.jobs) + len(self.unusable) > known

    @property
    def is_at_total(self) -> bool:
        return self.total is not None and self.collected >= self.total


class ListReader:
    """Reads the list in sweeps, from the first page to the last, until it is complete.

    The list can change between two pages, and then a sweep misses jobs.
    So sweeps are combined until they have seen at least as many jobs as the last one counts.
    Even then a swap of two jobs can hide a third.
    So a job counts as unpublished only if its own detail is gone too.

    Args:
        api: Answers requests.
        known: What earlier runs know.
        workers: Requests at once.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        api: Api,
        known: Known = Known(),  # noqa: B008  # immutable
        *,
        workers: int = 1,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._api = api
        self._known = known
        self._workers = workers
        self._sleep = sleep
        self._jobs: dict[str, JobRef] = {}
        self._summaries: dict[str, dict[str, Json]] = {}

    def read(self) -> Listing:
        """Read the list, and confirm that the jobs that it no longer shows are gone.

        Raises:
            PublicJobsError: A page cannot be read; or the key is new, and no known job is listed.
        """
        sweep = self._read_pages()
        self._refuse_other_organisation()
        known = self._known
        shortfall = self._shortfall(sweep)
        unlisted = [key for key in known.jobs if key not in self._jobs]
        # Missing jobs may be all that the list falls short by.
        may_explain = shortfall is not None and shortfall <= min(len(unlisted), MOST_MISSING)
        unconfirmed: dict[str, str] = {}
        if shortfall == known.shortfall or may_explain:
            unconfirmed = self._unconfirmed(unlisted)
        missing = {key: why for key, why in unconfirmed.items() if key not in self._jobs}
        if shortfall != known.shortfall:
            shortfall = self._shortfall(sweep)  # the list may have been read again
        problems = self._problems(sweep, shortfall, len(missing))
        is_complete = not problems or shortfall == known.shortfall
        if len(missing.keys() - known.missing) > MOST_MISSING:
            is_complete = False
            lacks = f"{len(unlisted):,} of {len(known.jobs):,} known jobs"
            problems = [f"the list lacks {lacks}, and many of them still have a detail"]
        gone = [key for key in unlisted if key not in unconfirmed and key not in self._jobs]
        return Listing(
            self._jobs,
            list(self._summaries.values()),
            gone if is_complete else [],
            missing if is_complete else {},
            shortfall,
            problems,
            is_complete,
        )

    def _read_pages(self) -> _Sweep:
        """Read the list until nothing is to be expected of reading it again."""
        for number in count(1):
            sweep = self._sweep()
            short = self._shortfall(sweep)
            missing = sum(key not in self._jobs for key in self._known.missing)
            explained = (0, self._known.shortfall)
            if number == MAX_SWEEPS or short is None or short in explained:
                break
            if short <= max(len(sweep.unusable), missing):
                break
            logger.info("Reading the list again: %s.", self._problems(sweep, short)[0])
            self._sleep(number)  # a cached total lags for some seconds
        return sweep

    def _shortfall(self, sweep: _Sweep) -> int | None:
        if sweep.total is None:
            return None
        return max(sweep.total - len(self._jobs), len(sweep.unusable), 0)

    def _problems(self, sweep: _Sweep, shortfall: int | None, missing: int = 0) -> list[str]:
        if sweep.unusable:
            return [
                f"a job without a usable id or publicId was left out: {place} of the list"
                for place in sweep.unusable
            ]
        if shortfall is None:
            return ["the list does not say how many jobs there are"]
        if shortfall <= missing:
            return []
        shown = len(self._jobs)
        return [f"the list shows {shown:,} of {shown + shortfall:,} jobs"]

    def _refuse_other_organisation(self) -> None:
        known = self._known.jobs
        if self._known.is_new_key and known and not known.keys() & self._jobs.keys():
            msg = (
                f"api_key has changed, and the API lists none of the {len(known):,} jobs "
                "that were synced before: the key seems to belong to another organisation. Set "
                "api_key back, or give each organisation its own state and schema; to replace "
                "the contents of the tables, run once with --full-refresh."
            )
            raise PublicJobsError(msg)

    def _unconfirmed(self, unlisted: Iterable[str]) -> dict[str, str]:
        """Request the details of known jobs that are not listed.

        If one of them still has a detail, the list may have drifted, or the API may lag: the list
        is read once more, and what it still lacks is asked for again.

        Returns:
            Why, by id, it is unknown whether a job is published.
        """
        # A publicId that is listed for another job no longer belongs to this one.
        taken = {job.public_id for job in self._jobs.values()}
        asked = [
            JobRef(key, self._known.jobs[key])
            for key in unlisted
            if self._known.jobs[key] not in taken
        ]
        new = [job for job in asked if job.id not in self._known.missing]
        found: dict[str, str] = {}
        while new and (most := MOST_MISSING + 1 - len(found)):
            found |= self._ask(new[:most])
            new = new[most:]
        if len(found) > MOST_MISSING:
            return found
        if found:
            logger.info("Reading the list again: it lacks jobs that still have a detail.")
            self._sweep()
        rest = [job for job in asked if job.id in found or job.id in self._known.missing]
        return self._ask(job for job in rest if job.id not in self._jobs)

    def _ask(self, jobs: Iterable[JobRef]) -> dict[str, str]:
        outcomes = fan_out(self._why_not_gone, jobs, workers=self._workers)
        return {job.id: why for job, why in outcomes if why}

    def _why_not_gone(self, job: JobRef) -> tuple[JobRef, str]:
        try:
            self._api.detail(job)
        except NotFoundError:
            return job, ""
        except RequestError as error:
            return job, str(error)
        return job, "its detail exists"

    def _sweep(self) -> _Sweep:
        sweep = _Sweep()
        self._walk(sweep)
        self._jobs |= sweep.jobs  # a publicId may have changed since the last sweep
        self._summaries |= sweep.summaries
        return sweep

    def _walk(self, sweep: _Sweep) -> None:
        """Read pages until the list ends, and add each one to the sweep."""
        without_new_jobs = 0
        for number, page, is_next_here in self._pages():
            if isinstance(page, PageError):
                # The API does not document pages beyond the last: an error there is the end.
                if number == 1 or not sweep.is_at_total:
                    raise page
                return
            has_new_jobs = sweep.add(number, page)
            # No single number is trusted: a short page ends the list only if the count fits too;
            # otherwise only an empty page does.
            is_short = len(page.items) < page.size
            is_end = not page.items or (sweep.is_at_total and (is_short or not has_new_jobs))
            if is_end and not is_next_here:
                return
            # A server that ignores the number of the page never ends the list.
            without_new_jobs = 0 if has_new_jobs else without_new_jobs + 1
            if without_new_jobs == MAX_PAGES_WITHOUT_NEW_JOBS:
                return

    def _pages(self) -> Iterator[tuple[int, Page | PageError, bool]]:
        """Yield each page with its number, and whether the next one has been fetched with it.

        Pages that the first one promises are fetched several at once, but not before the walk gets
        there: the promise may be wrong.
        """
        first = self._page(1)
        yield 1, first, False
        promised = _pages_in(first)
        for start in range(2, promised + 1, self._workers):
            numbers = range(start, min(start + self._workers, promised + 1))
            fetched = dict(fan_out(lambda it: (it, self._page(it)), numbers, workers=self._workers))
            for number in numbers:
                yield number, fetched[number], number + 1 in fetched
        for number in count(promised + 1):
            yield number, self._page(number), False

    def _page(self, number: int) -> Page | PageError:
        try:
            return self._api.page(number)
        except PageError as error:
            return error


def _pages_in(first: Page | PageError) -> int:
    """Return how many pages there should be, by the first of them."""
    if isinstance(first, PageError) or first.total is None or len(first.items) < first.size:
        return 1
    # A full last page is followed by one more, which may be empty.
    return first.total // first.size + 1
