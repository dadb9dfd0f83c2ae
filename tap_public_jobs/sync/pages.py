"""Reads a paginated list once, from the first page to the last."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from tap_public_jobs.api.models import job_ref
from tap_public_jobs.errors import PageError
from tap_public_jobs.sync.fanout import fan_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tap_public_jobs.api.models import JobRef, Page
    from tap_public_jobs.sync.services import Api

MAX_PAGES_WITHOUT_NEW_JOBS = 3


@dataclass
class Sweep:
    """One walk from the first page to the last.

    Attributes:
        jobs: By id, in the order of the list.
        unusable: Where an item is that has no usable id or publicId, such as `page 2, item 3`.
        collected: Items on all pages, repeated ones included.
        total: The largest number that a page counts; None if no page has one.
    """

    jobs: dict[str, JobRef] = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)
    collected: int = 0
    total: int | None = None

    def add(self, number: int, page: Page) -> bool:
        """Add a page; return whether it has a job that the sweep had not seen."""
        before = len(self.jobs) + len(self.unusable)
        if page.total is not None:
            self.total = max(page.total, self.total or 0)  # a page beyond the last may say 0
        self.collected += len(page.items)
        for position, item in enumerate(page.items, start=1):
            if job := job_ref(item):
                self.jobs[job.id] = job
            else:
                self.unusable.append(f"page {number}, item {position}")
        return len(self.jobs) + len(self.unusable) > before

    def shortfall(self, accounted: int) -> int | None:
        """Return how many jobs the list lacks; None if it does not say how many there are.

        Args:
            accounted: Jobs that the list shows, or that are known to be absent from it.
        """
        if self.total is None:
            return None
        return max(self.total - accounted, len(self.unusable), 0)

    def problem(self, shown: int) -> str:
        """Describe a list that falls short, and of which this many jobs were seen."""
        if self.unusable:
            places = "; ".join(self.unusable[:10])
            return f"a job without a usable id or publicId was left out: {places} of the list"
        if self.total is None:
            return "the list does not say how many jobs there are"
        return f"the list shows {shown:,} of {self.total:,} jobs"

    @property
    def is_at_total(self) -> bool:
        """Whether the pages so far have as many items as the list counts."""
        return self.total is not None and self.collected >= self.total


def read_pages(api: Api, workers: int) -> Sweep:
    """Read pages until the list ends.

    Raises:
        PublicJobsError: A page cannot be read.
    """
    sweep = Sweep()
    without_new_jobs = 0
    for number, page, is_next_here in _pages(api, workers):
        if isinstance(page, PageError):
            # The API does not document pages beyond the last: an error there is the end.
            if number == 1 or not sweep.is_at_total:
                raise page
            break
        has_new_jobs = sweep.add(number, page)
        # No single number is trusted: a short page ends the list only if the count fits too;
        # otherwise only an empty page does.
        is_short = len(page.items) < page.size
        is_end = not page.items or (sweep.is_at_total and (is_short or not has_new_jobs))
        if is_end and not is_next_here:
            break
        # A server that ignores the number of the page never ends the list.
        without_new_jobs = 0 if has_new_jobs else without_new_jobs + 1
        if without_new_jobs == MAX_PAGES_WITHOUT_NEW_JOBS:
            break
    return sweep


def _pages(api: Api, workers: int) -> Iterator[tuple[int, Page | PageError, bool]]:
    """Yield each page with its number, and whether the next one has been fetched with it.

    Pages that the first one promises are fetched several at once, but not before the walk gets
    there: the promise may be wrong.
    """
    first = _page(api, 1)
    yield 1, first, False
    promised = _pages_in(first)
    for start in range(2, promised + 1, workers):
        numbers = range(start, min(start + workers, promised + 1))
        fetched = dict(fan_out(lambda it: (it, _page(api, it)), numbers, workers=workers))
        for number in numbers:
            yield number, fetched[number], number + 1 in fetched
    for number in count(promised + 1):
        yield number, _page(api, number), False


def _page(api: Api, number: int) -> Page | PageError:
    try:
        return api.page(number)
    except PageError as error:
        return error


def _pages_in(first: Page | PageError) -> int:
    """Return how many pages there should be, by the first of them."""
    if isinstance(first, PageError) or first.total is None or len(first.items) < first.size:
        return 1
    # A full last page is followed by one more, which may be empty.
    return first.total // first.size + 1
