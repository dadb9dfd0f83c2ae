"""The published jobs as one run sees them, read from a list that may drift between two pages."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.gaps import MOST_ABSENT, is_mass
from tap_public_jobs.sync.pages import Sweep, read_pages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tap_public_jobs.sync.gaps import Gaps
    from tap_public_jobs.sync.services import Services
    from tap_public_jobs.sync.state import SyncState

logger = logging.getLogger(__name__)

MAX_SWEEPS = 8

# Tries of a request that only confirms something.
TRIES_TO_CONFIRM = 3

CONFIRMED_BETWEEN_CHECKPOINTS = 50

# Listed jobs to ask for until the detail of one arrives.
MOST_WITNESSES = 3

EXISTS = "its detail exists"

Json = Any


class Listing(NamedTuple):
    """The published jobs, as far as the list shows them.

    Attributes:
        jobs: By id, in the order in which they were first seen.
        gone: Ids of known jobs that are not published any more; none unless the list is complete.
        missing: Ids of known jobs that are neither listed nor confirmed gone.
        is_complete: Whether a job that is neither in `jobs` nor in `missing` is not published.
    """

    jobs: dict[str, JobRef]
    gone: list[str]
    missing: list[str]
    is_complete: bool


@dataclass
class ListReader:
    """Asks the API for the list, and for the known jobs that it lacks.

    The list can change between two pages, and then a sweep misses jobs.
    So sweeps are combined until they have seen at least as many jobs as the last one counts.
    Even then a swap of two jobs can hide a third.
    So a job counts as gone only if its own detail is gone too.

    Attributes:
        services: What the run works with.
        state: What earlier runs know. What is confirmed is added to it as answers arrive, so that a
            run that is stopped keeps it.
        gaps: Of earlier runs.
        jobs: The listed jobs so far, by id.
        details: The details that arrived, by id of the job.
    """

    services: Services
    state: SyncState
    gaps: Gaps
    jobs: dict[str, JobRef] = field(default_factory=dict)
    details: dict[str, dict[str, Json]] = field(default_factory=dict)

    def sweep(self, absent: Collection[str]) -> Sweep:
        """Read the list until another sweep would show nothing new; return the last sweep.

        Args:
            absent: Ids of jobs that the total may count although the list does not show them.

        Raises:
            PublicJobsError: A page cannot be read.
        """
        for number in count(1):
            sweep = self._sweep_once()
            short = sweep.shortfall(len(self.jobs))
            beyond = sweep.shortfall(len(self.jobs.keys() | self.state.jobs.keys()))
            explained = max(len(sweep.unusable), len({*absent} - self.jobs.keys()))
            if number == MAX_SWEEPS or short is None or short <= explained:
                break
            if self.gaps.is_known("total", size=beyond or 0):
                break
            logger.info("Reading the list again: %s.", sweep.problem(len(self.jobs)))
            self.services.sleep(number)  # a cached total lags for some seconds
        return sweep

    def _sweep_once(self) -> Sweep:
        sweep = read_pages(self.services.api)
        self.jobs |= sweep.jobs  # a publicId may have changed since the last sweep
        return sweep

    def find(self, sweep: Sweep) -> Listing:
        """Ask for the known jobs that the list lacks, and decide what the list is good for.

        If one of them still has a detail, the list may have drifted: it is read once more.

        Args:
            sweep: The last one.

        Raises:
            PublicJobsError: The run cannot continue.
        """
        known, confirmed = self.state.jobs, self.state.confirmed
        # A publicId that is listed for another job no longer belongs to this one.
        taken = {job.public_id for job in self.jobs.values()}
        doubtful = [
            JobRef(key, entry.public_id)
            for key, entry in known.items()
            if not (key in self.jobs or key in confirmed or entry.public_id in taken)
        ]
        answers: dict[str, str] = {}
        # Some lists are incomplete whatever they answer: the total counts more, or too many jobs
        # have been absent for less than an hour.
        beyond = sweep.shortfall(len(self.jobs.keys() | known.keys()))
        is_explained = beyond == 0 or self.gaps.is_known("total", size=beyond or 0)
        unlisted = known.keys() - self.jobs.keys()
        is_mass_again = self.gaps.is_just_met("list") and is_mass(unlisted, self.state.listed_jobs)
        if is_explained and not is_mass_again:
            answers = self._confirm(doubtful)
            is_news = not answers.keys() <= self.gaps.of_jobs("missing").keys()
            if is_news and len(answers) <= MOST_ABSENT:
                logger.info("Reading the list again: it lacks jobs that still have a detail.")
                sweep = self._sweep_once()
        absent = {
            job.id: answers.get(job.id, "")
            for job in doubtful
            if not (job.id in confirmed or job.id in self.jobs)
        }
        return self._judge(sweep, absent)

    def _judge(self, sweep: Sweep, absent: Mapping[str, str]) -> Listing:
        """Note the gaps of the list, and decide whether it is complete.

        Args:
            sweep: The last one.
            absent: Why, by id, a known job that is not listed is not confirmed gone; empty if this
                run did not ask for it.
        """
        jobs, known, gaps = self.jobs, self.state.jobs, self.gaps
        size = sweep.shortfall(len(jobs.keys() | known.keys()))
        if size != 0:
            gaps.meet(("total", ""), sweep.problem(len(jobs)), size or 0)
        gone = [key for key in known if not (key in jobs or key in absent)]
        perhaps_gone = {*gone, *(key for key, reason in absent.items() if not reason)}
        is_doubtful = len(absent) > MOST_ABSENT or is_mass(perhaps_gone, self.state.listed_jobs)
        if is_doubtful:
            lacks = len(gone) + len(absent)
            why = f"the list lacks {lacks:,} of {len(known):,} known jobs at once"
            gaps.meet(("list", ""), why, lacks)
        for key, reason in absent.items():
            if reason:
                why = f"the list does not show the job {known[key].public_id!r}: {reason}"
                gaps.meet(("missing", key), why, within=("list", "") if is_doubtful else None)
        is_complete = not (gaps.is_doubt("total") or gaps.is_doubt("list"))
        gaps.end("missing", jobs)
        if is_complete:
            gaps.heal()
            gaps.end("missing", gone)
            gaps.end("detail", gone)
            if is_doubtful and len(absent) <= MOST_ABSENT:
                gaps.end("list")  # it was right
        return Listing(jobs, gone if is_complete else [], [*absent], is_complete)

    def _confirm(self, jobs: Collection[JobRef]) -> dict[str, str]:
        """Ask whether jobs are gone, and end after those that make the list doubtful.

        Returns:
            Why not, by id.
        """
        found: dict[str, str] = {}
        # A list that is known to be doubtful is believed; a few of its jobs are asked for again.
        most = MOST_ABSENT + (not self.gaps.is_known("list"))
        # Those come first that were not asked for longest.
        asked = {key: gap.last_met for key, gap in self.gaps.of_jobs("missing").items()}
        rest = iter(sorted(jobs, key=lambda job: asked.get(job.id, 0)))
        confirmed = self.state.confirmed
        arrive: bool | None = None
        self.services.report.confirming(len(jobs))
        while some := [*islice(rest, most - len(found))]:
            for job, why in self.ask(some):
                if not why and arrive is None:
                    arrive = EXISTS in found.values() or self._details_arrive()
                if arrive and not why:
                    confirmed[job.id] = int(self.services.clock())
                    if len(confirmed) % CONFIRMED_BETWEEN_CHECKPOINTS == 0:
                        self.services.checkpoint(self.state)
                        logger.info("%d of them are unpublished so far.", len(confirmed))
                else:
                    found[job.id] = why or "no detail of a listed job arrives either"
        return found

    def _details_arrive(self) -> bool:
        """Whether a 404 means anything: the detail of a listed job arrives, if one is listed."""
        broken = self.gaps.of_jobs("detail")

        def order(job: JobRef) -> tuple[bool, int]:
            entry = self.state.jobs.get(job.id)
            is_current = entry and entry.detail_hash == job.summary_hash
            return job.id in broken, entry.fetched_at if entry and is_current else 0

        # The one whose detail is oldest: this run needs it anyway, if it needs any.
        witnesses = sorted(self.jobs.values(), key=order)[:MOST_WITNESSES]
        for job in witnesses:
            try:
                self.details[job.id] = self.services.api.detail(job, TRIES_TO_CONFIRM)
            except RequestError:
                continue
            return True
        return not witnesses

    def ask(self, jobs: Iterable[JobRef]) -> Iterator[tuple[JobRef, str]]:
        """Request details; yield why a job is not gone, or nothing if it is."""
        return fan_out(self._why_not_gone, jobs, workers=self.services.workers)

    def _why_not_gone(self, job: JobRef) -> tuple[JobRef, str]:
        try:
            self.details[job.id] = self.services.api.detail(job, TRIES_TO_CONFIRM)
        except NotFoundError:
            return job, ""
        except RequestError as error:
            return job, str(error)
        return job, EXISTS
