"""The published jobs as one run sees them, read from a list that may drift between two pages."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING

from tap_public_jobs.api.models import JobRef, hash_of
from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.pages import read_pages
from tap_public_jobs.sync.state import STILL_LOADS, Listing, is_new

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tap_public_jobs.sync.context import RunContext
    from tap_public_jobs.sync.state import SyncState

logger = logging.getLogger(__name__)

MAX_SWEEPS = 8

# Tries of a request that confirms something.
FEW_TRIES = 3

# A run asks for no more unlisted jobs once so many of them still have a detail.
MOST_STILL_THERE = 20

# Listed jobs to ask for until the detail of one loads.
MOST_WITNESSES = 3

# With this many published jobs or more, it is doubtful that all of them are gone at once.
DOUBTFUL_IF_ALL = 5


@dataclass
class ListReader:
    """Reads the list, and asks for the known jobs that it lacks.

    The list can change between two pages, and then it misses jobs.
    So it is read until it shows its total, known jobs included, and a known job that it lacks
    counts as gone only if its own detail is gone too.

    Attributes:
        context: What the run is given.
        state: What earlier runs know; read only.
        now: When the run began, by the clock.
        jobs: The listed jobs so far, by id.
        shortfall: Why the list may lack jobs that no run has seen; empty if it does not.
        short_since: When the list first fell short; 0 once it shows its whole total.
    """

    context: RunContext
    state: SyncState
    now: int
    jobs: dict[str, JobRef] = field(default_factory=dict)
    shortfall: str = ""
    short_since: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether the list does not fall short, or has done so for an hour."""
        return not (self.shortfall and is_new(self.short_since, self.now))

    def read(self, most_sweeps: int = MAX_SWEEPS) -> None:
        """Read the list until another sweep would show nothing new.

        Raises:
            PublicJobsError: A page cannot be read.
        """
        for number in count(1):
            sweep = read_pages(self.context.api)
            self.jobs |= sweep.jobs  # a publicId may have changed since the last sweep
            accounted = len(self.jobs.keys() | self.state.may_be_counted(self.now))
            self.shortfall = sweep.shortfall(accounted, shown=len(self.jobs))
            self.short_since = self.state.short_since
            if self.shortfall:
                self.short_since = self.short_since or self.now
            elif not sweep.shortfall(len(self.jobs), shown=len(self.jobs)):
                self.short_since = 0  # the list shows its total without the help of known jobs
            if self.is_accepted or not sweep.lacks(accounted) or number == most_sweeps:
                return
            logger.info("Reading the list again: %s.", self.shortfall)
            self.context.sleep(number)  # a cached total lags for some seconds

    def resolve_unlisted(self) -> Listing:
        """Find out which of the known jobs that the list lacks are gone.

        If one of them still has a detail, the list may have drifted: it is read once more.

        Raises:
            PublicJobsError: The run cannot continue.
        """
        known = self.state.jobs
        missing = {job_id: "" for job_id in known if job_id not in self.jobs}
        loss = self._loss(missing)
        if self.is_accepted and not loss:
            missing = self._ask_for_unlisted(missing)
            if any(why and not known[job_id].missing_since for job_id, why in missing.items()):
                logger.info("Reading the list again: it lacks jobs whose details still load.")
                self.read(most_sweeps=1)
        is_complete = self.is_accepted and not loss
        unlisted = {job_id: missing.get(job_id) for job_id in known if job_id not in self.jobs}
        gone = [job_id for job_id, why in unlisted.items() if is_complete and why is None]
        still_missing = {job_id: why or "" for job_id, why in unlisted.items()}
        for job_id in gone:
            del still_missing[job_id]
        return Listing(
            self.jobs, gone, still_missing, self.shortfall, self.short_since, loss, is_complete
        )

    def _loss(self, unlisted: Collection[str]) -> str:
        """Say that so many jobs disappeared within an hour that the list may be wrong."""
        known, listed_at = self.state.jobs, self.state.listed_at
        listed = [job_id for job_id, job in known.items() if job.last_seen == listed_at]
        since = {job_id: known[job_id].missing_since for job_id in listed if job_id in unlisted}
        lost = [job_id for job_id, at in since.items() if at == 0 or is_new(at, self.now)]
        if not is_too_many(lost, listed):
            return ""
        return f"{len(lost):,} of {len(listed):,} published jobs disappeared from the list at once"

    def _ask_for_unlisted(self, unlisted: Collection[str]) -> dict[str, str]:
        """Ask for known jobs that the list lacks.

        Returns:
            Why, by id, a job is not confirmed as unpublished; empty if the run did not ask.
        """
        known, unconfirmed = self.state.jobs, dict.fromkeys(unlisted, "")
        # First those that the last run listed; of the others, some in each run.
        order = sorted(
            unlisted,
            key=lambda job_id: (known[job_id].missing_since > 0, hash_of([job_id, self.now])),
        )
        refs = (JobRef(job_id, known[job_id].public_id) for job_id in order)
        self.context.report.confirming(len(order))
        details_work, still_there = False, 0
        while some := [*islice(refs, MOST_STILL_THERE - still_there)]:
            reasons = {ref.id: why for ref, why in self.ask(some)}
            gone = [job_id for job_id, why in reasons.items() if not why]
            details_work = details_work or STILL_LOADS in reasons.values()
            if gone and not details_work and not (details_work := self._details_work()):
                return dict.fromkeys(unlisted, "no detail of a listed job loads either")
            still_there += len(reasons) - len(gone)
            unconfirmed |= reasons
            for job_id in gone:
                del unconfirmed[job_id]
        return unconfirmed

    def _details_work(self) -> bool:
        """Return whether a 404 means anything: the detail of a listed job loads, if one is listed.

        Those come last whose details are known to fail.
        """
        known = self.state.jobs
        witnesses = sorted(
            self.jobs.values(), key=lambda ref: ref.id in known and known[ref.id].failing_since > 0
        )[:MOST_WITNESSES]
        return not witnesses or any(self._why_not_gone(ref)[1] == STILL_LOADS for ref in witnesses)

    def ask(self, refs: Iterable[JobRef]) -> Iterator[tuple[JobRef, str]]:
        """Request details; yield why a job may be published, or nothing if it is not."""
        return fan_out(self._why_not_gone, refs, workers=self.context.workers)

    def _why_not_gone(self, ref: JobRef) -> tuple[JobRef, str]:
        try:
            self.context.api.detail(ref, FEW_TRIES)
        except NotFoundError:
            return ref, ""
        except RequestError as error:
            return ref, str(error)
        return ref, STILL_LOADS


def is_too_many(lost: Collection[str], listed: Collection[str]) -> bool:
    """Return whether so many of the listed jobs are lost at once that the list may be wrong."""
    if len(lost) == len(listed):
        return len(lost) >= DOUBTFUL_IF_ALL
    return len(lost) > max(MOST_STILL_THERE, len(listed) / 2)
