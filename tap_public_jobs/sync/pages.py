"""Reads a paginated list once, from the first page to the last."""

import math
from collections import Counter
from dataclasses import dataclass, field

from tap_public_jobs.errors import PageError
from tap_public_jobs.sync.source import JobRef, Page, Source, job_ref

MAX_PAGES_WITHOUT_NEW_JOBS = 3

# How servers refuse a page beyond the last.
NO_SUCH_PAGE = {400, 404, 416, 422}


@dataclass
class Sweep:
    """One walk from the first page to the last.

    Attributes:
        ignored_fields: Of the summaries, to leave out of their hashes.
        jobs: By id, in the order of the list; of the items that share an id, the one whose publicId
            comes first in the order of text.
        postings: The id and the publicId of each item, and which item of its page with these two it
            is: on another page, it would be the same item, which has moved.
        unusable: Where an item is that has no usable id or publicId, such as `page 2, item 3`.
        collected: Items on all pages, repeated ones included.
        totals: The totals of the pages. Some APIs send 0 beyond the last page, which is left out.
        pages: How many were read.
    """

    ignored_fields: frozenset[str] = frozenset()
    jobs: dict[str, JobRef] = field(default_factory=dict)
    postings: set[tuple[str, str, int]] = field(default_factory=set)
    unusable: list[str] = field(default_factory=list)
    collected: int = 0
    totals: set[int] = field(default_factory=set)
    pages: int = 0

    @property
    def total(self) -> int | None:
        """The largest total of a page; None if no page has one."""
        return max(self.totals, default=None)

    @property
    def has_drifted(self) -> bool:
        """Whether jobs came, went or moved between two pages, so that a job may have been missed.

        Then the totals of the pages differ, or a job is on two of them. If one job came and another
        went, and no third one is on two pages, it goes unnoticed.
        """
        return len(self.totals) > 1 or self.collected > self._distinct

    @property
    def further(self) -> list[str]:
        """The publicIds of the items that share an id with the one that is the job."""
        return sorted(
            public_id
            for job_id, public_id, number in self.postings
            if number > 1 or public_id != self.jobs[job_id].public_id
        )

    @property
    def _distinct(self) -> int:
        return len(self.postings) + len(self.unusable)

    def add(self, page: Page) -> bool:
        """Add the next page; return whether it has an item that the sweep had not seen."""
        before = self._distinct
        self.pages += 1
        if page.total is not None and (page.total or page.items or self.pages == 1):
            self.totals.add(page.total)
        self.collected += len(page.items)
        on_page = Counter[tuple[str, str]]()
        for position, item in enumerate(page.items, start=1):
            job = job_ref(item, self.ignored_fields)
            if job is None:
                self.unusable.append(f"page {self.pages}, item {position}")
                continue
            key = job.id, job.public_id
            on_page[key] += 1
            self.postings.add((*key, on_page[key]))
            if job.public_id <= self.jobs.get(job.id, job).public_id:
                self.jobs[job.id] = job
        return self._distinct > before

    def lacks(self, explained: int) -> int:
        """Return how many jobs the total counts beyond these and those without a usable key."""
        return max(0, (self.total or 0) - explained - len(self.further) - len(self.unusable))

    def shortfall(self, shown: int, explained: int) -> str:
        """Say why the list may lack jobs; empty if it does not.

        Args:
            shown: How many jobs it shows.
            explained: How many jobs its total may count: those, and known ones.
        """
        reasons = []
        if self.unusable:
            places = "; ".join(self.unusable[:10])
            reasons.append(
                f"a job without a usable id or publicId was left out: {places} of the list"
            )
        if self.total is None:
            reasons.append("the list does not say how many jobs there are")
        elif self.lacks(explained):
            reasons.append(f"the list shows {shown + len(self.further):,} of {self.total:,} jobs")
        return "; ".join(reasons)

    @property
    def to_come(self) -> float:
        """How many items the total counts beyond the pages so far; infinity without a total."""
        return math.inf if self.total is None else self.total - self.collected


def read_pages(api: Source, ignored_fields: frozenset[str] = frozenset()) -> Sweep:
    """Read pages, one after the other, until the list ends.

    Args:
        api: Answers requests.
        ignored_fields: Of the summaries, to leave out of their hashes.

    Raises:
        TapError: A page cannot be read.
    """
    sweep = Sweep(ignored_fields)
    page, without_new_jobs = Page([], 0, None), 0
    # If a server ignores the number of the page, the list never ends.
    while without_new_jobs < MAX_PAGES_WITHOUT_NEW_JOBS:
        try:
            page = api.page(sweep.pages + 1)
        except PageError as error:
            # The API does not document pages beyond the last: an error there is the end. So is an
            # answer that there is no such page, behind a short page or if less than one is to come:
            # a total may be cached, or count more than the list shows.
            if sweep.to_come <= 0 or (
                error.status in NO_SUCH_PAGE and (page.is_short or sweep.to_come < page.size)
            ):
                break
            raise
        without_new_jobs = 0 if sweep.add(page) else without_new_jobs + 1
        # No single number is trusted: a short page ends the list only if the count fits too;
        # otherwise only an empty page does.
        if not page.items or (sweep.to_come <= 0 and (page.is_short or without_new_jobs)):
            break
    return sweep
