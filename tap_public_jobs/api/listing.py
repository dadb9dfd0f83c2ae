"""The published jobs as one run sees them, read from a paginated list that may drift."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tap_public_jobs.api.fanout import FanOut
from tap_public_jobs.api.models import JobRef, job_ref
from tap_public_jobs.errors import (
    NotFoundError,
    PageError,
    PublicJobsError,
    RequestError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tap_public_jobs.api.models import Page

logger = logging.getLogger(__name__)

MAX_SWEEPS = 8
MAX_PAGES_WITHOUT_NEWS = 10

SAMPLE = 20
"""Jobs whose details are requested when more than a few are gone."""

Json = Any


class Api(Protocol):
    """The operations of the API; `PublicJobsClient` implements them."""

    def page(self, number: int) -> Page:
        """Fetch one page of the list."""

    def detail(self, job: JobRef) -> dict[str, Json]:
        """Fetch the detail of one job."""


class Listing(NamedTuple):
    """The published jobs, as far as the list shows them."""

    jobs: dict[str, JobRef]
    """By id, in the order in which they were first seen."""
    summaries: list[dict[str, Json]]
    """Of the same jobs, as the API sent them."""
    gone: list[str]
    """Ids of known jobs that are no longer published; empty unless `is_complete`."""
    problems: list[str]
    """Why a job that is not in `jobs` may be published all the same."""

    @property
    def is_complete(self) -> bool:
        """Whether a job that is not in `jobs` is not published."""
        return not self.problems


@dataclass
class _Sweep:
    """One walk from the first page to the last."""

    jobs: dict[str, JobRef] = field(default_factory=dict)
    summaries: dict[str, dict[str, Json]] = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)
    collected: int = 0
    total: int | None = None
    pages: int = 0

    def add(self, number: int, page: Page) -> bool:
        """Add a page; return whether it has a job that the sweep had not seen."""
        known = len(self.jobs) + len(self.unusable)
        # A page beyond the last may say 0 (API page, "List published jobs", rule 2).
        if page.total is not None and (page.items or number == 1):
            self.total = max(page.total, self.total or 0)
        self.collected += len(page.items)
        self.pages = number
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
        workers: Requests at once.
        known: The publicIds of the jobs that earlier runs saw published, by id.
        is_new_key: Whether the API key differs from that of earlier runs.
    """

    def __init__(
        self,
        api: Api,
        *,
        workers: int = 1,
        known: Mapping[str, str] | None = None,
        is_new_key: bool = False,
    ) -> None:
        self._api = api
        self._workers = workers
        self._known = known or {}
        self._is_new_key = is_new_key
        self._jobs: dict[str, JobRef] = {}
        self._summaries: dict[str, dict[str, Json]] = {}
        self._confirmed: set[str] = set()

    def read(self) -> Listing:
        """Read the list.

        Raises:
            PublicJobsError: A page cannot be read, the pages repeat without end, or the key is new
                and no known job is listed.
        """
        problems: list[str] = []
        for number in range(1, MAX_SWEEPS + 1):
            sweep = self._sweep()
            problems, is_final = self._problems(sweep, is_first=number == 1)
            if is_final:
                break
            if number < MAX_SWEEPS:
                logger.info("Reading the list of jobs again: %s.", problems[0])
        self._refuse_other_organisation()
        gone = [] if problems else [job_id for job_id in self._known if job_id not in self._jobs]
        return Listing(self._jobs, list(self._summaries.values()), gone, problems)

    def _problems(self, sweep: _Sweep, *, is_first: bool) -> tuple[list[str], bool]:
        """Return why the list is not complete, and whether that is final."""
        if sweep.total is None:
            return ["the list does not say how many jobs there are"], True
        seen = len(self._jobs) + len(sweep.unusable)
        if seen < sweep.total:
            return [f"the list shows {seen:,} of {sweep.total:,} jobs"], False
        if sweep.unusable:
            places = [f"{place} of the list" for place in sweep.unusable]
            return [
                f"a job without a usable id or publicId was left out: {it}" for it in places
            ], True
        self._refuse_other_organisation()
        try:
            problems = self._still_published(sweep, is_first=is_first)
        except RequestError as error:
            return [f"a job is no longer listed, but its detail did not return 404: {error}"], True
        return problems, not problems

    def _refuse_other_organisation(self) -> None:
        if self._is_new_key and self._known and not self._known.keys() & self._jobs.keys():
            msg = (
                f"api_key has changed, and the API lists none of the {len(self._known):,} jobs "
                "that were synced before: the key seems to belong to another organisation. Set "
                "api_key back, or give each organisation its own state and schema; to replace "
                "the contents of the tables, run once with --full-refresh."
            )
            raise PublicJobsError(msg)

    def _still_published(self, sweep: _Sweep, *, is_first: bool) -> list[str]:
        """Request the details of known jobs that are not listed; anything but 404 is a problem."""
        gone = [job_id for job_id in self._known if job_id not in self._jobs]
        if len(gone) > sweep.pages + SAMPLE:
            if is_first:
                return [f"the list lacks {len(gone):,} of {len(self._known):,} known jobs"]
            gone = [gone[len(gone) * number // SAMPLE] for number in range(SAMPLE)]
        # A publicId that is listed for another job no longer belongs to this one.
        taken = {job.public_id for job in self._jobs.values()}
        asked = [
            JobRef(job_id, self._known[job_id])
            for job_id in gone
            if job_id not in self._confirmed and self._known[job_id] not in taken
        ]
        found = set(FanOut(self._published_id, asked, workers=self._workers))
        self._confirmed.update({job.id for job in asked} - found)
        return [
            f"the list does not show the job {job.public_id!r}, but its detail exists"
            for job in asked
            if job.id in found
        ]

    def _published_id(self, job: JobRef) -> str | None:
        try:
            self._api.detail(job)
        except NotFoundError:
            return None
        return job.id

    def _sweep(self) -> _Sweep:
        sweep = _Sweep()
        self._walk(sweep)
        self._jobs |= sweep.jobs  # a publicId may have changed since the last sweep
        self._summaries |= sweep.summaries
        return sweep

    def _walk(self, sweep: _Sweep) -> None:
        """Read pages until the list ends, and add each one to the sweep."""
        last: list[JobRef | None] = []
        without_news = 0
        for number, page, is_next_here in self._pages():
            if isinstance(page, PageError):
                # The API does not document pages beyond the last: an error there is the end.
                if number == 1 or not sweep.is_at_total:
                    raise page
                return
            keys = [job_ref(item) for item in page.items]
            if any(keys) and keys == last:
                if sweep.is_at_total:
                    return  # a server that repeats its last page for every number beyond
                raise _endless(number)
            has_news = sweep.add(number, page)
            # No single number is trusted: a short page ends the list only if the count fits too;
            # otherwise only an empty page does.
            is_short = len(page.items) < page.size
            is_end = not page.items or (is_short and sweep.is_at_total)
            if is_end and not is_next_here:
                return
            without_news = 0 if has_news or not page.items else without_news + 1
            if without_news == MAX_PAGES_WITHOUT_NEWS:
                raise _endless(number)
            last = keys

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
            fetched = dict(FanOut(lambda it: (it, self._page(it)), numbers, workers=self._workers))
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


def _endless(number: int) -> PublicJobsError:
    return PublicJobsError(
        f"Page {number} of the list repeats jobs already listed, and the list never ends: the "
        "server ignores the parameter `page`. Check base_url and any proxy in front of it."
    )
