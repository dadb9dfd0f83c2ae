"""The published jobs as one run sees them, read from a paginated list that may drift meanwhile."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from tap_public_jobs.errors import ListingError, PageError
from tap_public_jobs.fanout import FanOut
from tap_public_jobs.ledger import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

MAX_SWEEPS = 3
MAX_PAGES_WITHOUT_NEWS = 10

Json = Any


class Page(NamedTuple):
    """One answer of the list operation (API page, "List envelope").

    The numbers are None where the answer has none that makes sense.
    """

    items: list[Json]
    size: int
    """Items per page, as the server answered it, else as it was asked."""
    total: int | None


class Job(NamedTuple):
    """What it takes to ask for one job's detail, and to know whether that is needed."""

    id: str
    public_id: str
    fingerprint: str
    """Of the summary."""


@dataclass
class _Sweep:
    """One walk from the first page to the last."""

    ids: set[str] = field(default_factory=set)
    totals: set[int] = field(default_factory=set)
    collected: int = 0
    repeated: bool = False

    @property
    def consistent(self) -> bool:
        """Whether nothing was published or unpublished while the pages were read."""
        return self.totals == {self.collected} and not self.repeated

    def same_jobs(self, other: _Sweep | None) -> bool:
        """Whether two sweeps saw the same jobs, which outweighs a `total` that never fits."""
        # No job at all under a total above 0 is a fault, however often it is answered.
        empty_by_mistake = not self.collected and self.totals != {0}
        return other is not None and other.ids == self.ids and not empty_by_mistake


class Listing:
    """Reads the list, page by page and at most once, whoever asks for it.

    Pages are read in sweeps until one is consistent, or two see the same jobs, or `MAX_SWEEPS`
    have been made. Each job is told once, as soon as it is first seen. The first page of a sweep
    says how many there should be; these are fetched several at once.

    Args:
        fetch_page: Answers the page of a number, counted from 1. Called from several threads.
        workers: Pages fetched at once.

    Attributes:
        consistent: Whether the jobs seen are exactly the published ones. Known at the end.
        unusable: Where there were jobs that cannot be keyed, in words.
    """

    def __init__(self, fetch_page: Callable[[int], Page], *, workers: int = 1) -> None:
        self.consistent = False
        self.unusable: list[str] = []
        self._fetch_page = fetch_page
        self._workers = workers
        self._seen: dict[str, Job] = {}
        self._walk = self._sweep_until_consistent()

    @property
    def whole(self) -> bool:
        """Whether a job that was not seen is not published."""
        return self.consistent and not self.unusable

    def summaries(self) -> Iterator[dict[str, Json]]:
        """Yield the summary of each job, as the API answers it, while the pages are read.

        Raises:
            ListingError: A page cannot be read, or the pages repeat without end.
        """
        # Not `yield from`: closing this generator must not close the walk, which `jobs` goes on.
        for summary in self._walk:  # noqa: UP028
            yield summary

    def jobs(self, most: int | None = None) -> list[Job]:
        """Read the list to its end, or until so many jobs are known, and return them.

        Raises:
            ListingError: A page cannot be read, or the pages repeat without end.
        """
        while most is None or len(self._seen) < most:
            if next(self._walk, None) is None:
                break
        return list(self._seen.values())[:most]

    def _sweep_until_consistent(self) -> Iterator[dict[str, Json]]:
        previous = None
        for _ in range(MAX_SWEEPS):
            sweep = _Sweep()
            for number, items in self._pages(sweep):
                for position, (item, job) in enumerate(items, start=1):
                    if job is None:
                        self._note_unusable(f"page {number}, item {position}")
                        continue
                    sweep.repeated |= job.id in sweep.ids
                    sweep.ids.add(job.id)
                    is_new = job.id not in self._seen
                    self._seen[job.id] = job  # a publicId may have changed since the last sweep
                    if is_new:
                        yield item
            self.consistent = sweep.consistent or sweep.same_jobs(previous)
            if self.consistent:
                return
            logger.info("The list changed while it was read; reading it again.")
            previous = sweep
        logger.warning(
            "The list of published jobs was different each of the %d times it was read. All jobs "
            "seen are synced; jobs unpublished since the last complete run stay in the warehouse "
            "until the next complete one.",
            MAX_SWEEPS,
        )

    def _pages(self, sweep: _Sweep) -> Iterator[tuple[int, list[tuple[Json, Job | None]]]]:
        """Yield the number of each page, and its items with their keys."""
        total, last, without_news = None, None, 0
        for number, page in enumerate(self._answers(), start=1):
            if isinstance(page, PageError):
                # Beyond the last page an error is the end, as what is there is not documented.
                if number == 1 or (total is not None and sweep.collected < total):
                    raise page
                return
            keys = [_key(item) for item in page.items]
            if any(keys) and keys == last:
                if sweep.collected == total:
                    return  # a server that answers its last page to every number beyond
                _raise_endless(number)
            # A page beyond the last may say 0 (API page, "List published jobs", rule 2).
            if page.total is not None and (page.items or number == 1):
                total = page.total
                sweep.totals.add(total)
            known = len(sweep.ids)
            sweep.collected += len(page.items)
            yield number, list(zip(page.items, keys, strict=True))
            # No single number is trusted: a short page ends the list only if the count fits too;
            # else an empty page does.
            full = len(page.items) >= page.size
            if not page.items or (not full and sweep.collected == total):
                return
            news = len(sweep.ids) > known or not all(keys)
            without_news = 0 if news else without_news + 1
            if without_news == MAX_PAGES_WITHOUT_NEWS:
                _raise_endless(number)
            last = keys

    def _answers(self) -> Iterator[Page | PageError]:
        """Yield what comes of asking for each page, without end."""
        first = self._answer(1)
        yield first
        expected = range(2, _pages_in(first) + 1)
        yield from FanOut(self._answer, expected, workers=self._workers, ahead=self._workers)
        yield from map(self._answer, count(expected.stop))

    def _answer(self, number: int) -> Page | PageError:
        try:
            return self._fetch_page(number)
        except PageError as error:
            return error

    def _note_unusable(self, place: str) -> None:
        if place not in self.unusable:
            self.unusable.append(place)


def _pages_in(first: Page | PageError) -> int:
    """Tell how many pages there should be, by the first of them."""
    if isinstance(first, PageError) or first.total is None or len(first.items) < first.size:
        return 1
    # After a full page comes one more, if only to be empty.
    return first.total // first.size + 1


def _key(item: Json) -> Job | None:
    """Read the key of a summary: two strings that are not empty and can stand in a URL."""
    if not isinstance(item, dict):
        return None
    job_id, public_id = item.get("id"), item.get("publicId")
    if not is_usable(job_id) or not is_usable(public_id):
        return None
    return Job(job_id, public_id, fingerprint(item))


def is_usable(value: Json) -> TypeGuard[str]:
    """Tell whether a value is text that is not empty and can stand in a URL."""
    if not isinstance(value, str) or not value:
        return False
    # JSON can escape half a surrogate pair, which no encoding of a URL can carry.
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _raise_endless(number: int) -> None:
    msg = (
        f"Page {number} of the list repeats jobs already listed, and the list never ends: the "
        "server ignores the parameter `page`. Check base_url and any proxy in front of it."
    )
    raise ListingError(msg)
