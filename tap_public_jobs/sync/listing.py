"""The published jobs as one run sees them, read from a list that may drift between two pages."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, islice

from tap_public_jobs.api.client import PublicJobsClient
from tap_public_jobs.api.models import JobRef, hash_of
from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.report import Report
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.pages import read_pages
from tap_public_jobs.sync.state import (
    GONE,
    NOT_ASKED,
    STILL_THERE,
    Listing,
    SyncState,
    Verdict,
    is_new,
)

logger = logging.getLogger(__name__)

MAX_SWEEPS = 8

# Tries of a request for a detail that shows whether a job is published, or whether details work.
TRIES_TO_CONFIRM = 3

# Once this many unlisted jobs turn out not to be gone, a run asks for no further one.
MOST_NOT_GONE = 20

# Listed jobs to ask for until the detail of one loads.
MOST_WITNESSES = 3

NONE_LOADS = Verdict("failed", "no detail of a listed job loads either")

# If more than this many jobs and more than half of them are gone at once, the list is in doubt.
DOUBTFUL_FROM = 20
# If this many jobs or more were published, and all are gone at once, it is in doubt, too.
DOUBTFUL_IF_ALL = 5


@dataclass(kw_only=True)
class ListReader:
    """Reads the list, and asks for the known jobs that it lacks.

    The list can change between two pages, and a reader then misses jobs. So it is read until the
    jobs that it shows and the known ones explain its total, and a known job that it lacks counts as
    gone only if its own detail is gone too.

    Attributes:
        api: Answers requests.
        state: What is known of the jobs; reading the list does not change it.
        now: When the run began, by the clock.
        workers: Requests at once.
        report: Logs how long it takes to ask for many jobs.
        sleep: Waits for a number of seconds.
        ignored_fields: Of the summaries, to leave out of their hashes.
        jobs: The listed jobs so far, by id.
        details: The details of listed jobs that were fetched to find out whether details work.
        shortfall: Why the list may lack jobs that no run has seen; empty if it does not.
        short_since: When the list first fell short; 0 once it shows its whole total.
        has_drifted: Whether the list changed while it was read, so that it may lack a job.
    """

    api: PublicJobsClient
    state: SyncState
    now: int
    workers: int
    report: Report
    sleep: Callable[[float], object]
    ignored_fields: frozenset[str] = frozenset()
    jobs: dict[str, JobRef] = field(default_factory=dict)
    details: dict[JobRef, dict[str, object]] = field(default_factory=dict)
    shortfall: str = ""
    short_since: int = 0
    has_drifted: bool = False

    @property
    def is_accepted(self) -> bool:
        """Whether the list that was read explains its total, or has fallen short for an hour."""
        return not (self.shortfall and is_new(self.short_since, self.now))

    def read(self, most_sweeps: int = MAX_SWEEPS) -> None:
        """Read the list until it explains its total, or was read often enough.

        Raises:
            PublicJobsError: A page cannot be read.
        """
        for number in count(1):
            sweep = read_pages(self.api, self.ignored_fields)
            self.jobs |= sweep.jobs  # a publicId may have changed since the last sweep
            self.has_drifted = sweep.has_drifted
            shown = len(self.jobs)
            explained = len(self.jobs.keys() | self.state.may_be_counted(self.now))
            self.shortfall = sweep.shortfall(shown, explained)
            since = self.state.short_since or (self.now if self.shortfall else 0)
            # Known jobs that are not listed can explain the total of this run. But an old shortfall
            # ends only when the list shows its total by itself.
            self.short_since = since if sweep.shortfall(shown, shown) else 0
            if self.is_accepted or not sweep.lacks(explained) or number == most_sweeps:
                return
            logger.info("Reading the list again: %s.", self.shortfall)
            self.sleep(number)  # a cached total lags for some seconds

    def resolve_unlisted(self) -> Listing:
        """Find out which of the known jobs that the list lacks are gone.

        If one that the last run listed is not confirmed as gone, or the list changed while it was
        read, the pages may lack a published job. So the list is read once more.

        Raises:
            PublicJobsError: The run cannot continue.
        """
        known = self.state.jobs
        unlisted = [job_id for job_id in known if job_id not in self.jobs]
        loss = self._loss()
        verdicts = dict.fromkeys(unlisted, NOT_ASKED)
        if self.is_accepted and not loss:
            verdicts |= self._ask_for_unlisted(unlisted)
            lost = any(
                verdict not in {GONE, NOT_ASKED} and not known[job_id].missing_since
                for job_id, verdict in verdicts.items()
            )
            # A list that drifted may also lack a job with a new publicId: the old one is a 404.
            if lost or (self.has_drifted and GONE in verdicts.values()):
                logger.info("Reading the list again: it may lack jobs that are published.")
                self.read(most_sweeps=1)
        doubts = [(self.short_since, self.shortfall), *loss] if self.shortfall else loss
        is_complete = not any(is_new(since, self.now) for since, _ in doubts)
        verdicts = {it: verdict for it, verdict in verdicts.items() if it not in self.jobs}
        gone = [it for it, verdict in verdicts.items() if is_complete and verdict == GONE]
        missing = {it: verdict for it, verdict in verdicts.items() if it not in gone}
        return Listing(
            self.jobs, self.details, gone, missing, self.short_since, doubts, is_complete
        )

    def _loss(self) -> list[tuple[int, str]]:
        """Return since when and why the list is in doubt, if too many jobs disappeared at once.

        Before the first complete list, all known jobs count as listed.
        """
        known, listed_at = self.state.jobs, self.state.listed_at
        listed = [job_id for job_id, job in known.items() if listed_at in {None, job.last_seen}]
        since = [known[it].missing_since or self.now for it in listed if it not in self.jobs]
        lost = [at for at in since if is_new(at, self.now)]
        why = f"{len(lost):,} of {len(listed):,} published jobs disappeared from the list at once"
        return [(max(lost), why)] if is_too_many(lost, listed) else []

    def _ask_for_unlisted(self, unlisted: Collection[str]) -> dict[str, Verdict]:
        """Ask for known jobs that the list lacks, and return what the answers mean, by id."""
        known = self.state.jobs
        asked: dict[str, Verdict] = {}
        # First those that the last run listed; of the others, some in each run.
        order = sorted(
            unlisted,
            key=lambda job_id: (known[job_id].missing_since > 0, hash_of([job_id, self.now])),
        )
        refs = (JobRef(job_id, known[job_id].public_id) for job_id in order)
        self.report.confirming(len(order))
        details_work, not_gone = False, 0
        while some := [*islice(refs, MOST_NOT_GONE - not_gone)]:
            answers = {ref.id: verdict for ref, verdict in self.ask(some)}
            verdicts = [*answers.values()]
            details_work = details_work or STILL_THERE in verdicts
            if GONE in verdicts and not details_work and not (details_work := self._details_work()):
                return dict.fromkeys(unlisted, NONE_LOADS)
            not_gone += len(verdicts) - verdicts.count(GONE)
            asked |= answers
        return asked

    def _details_work(self) -> bool:
        """Return whether a 404 means anything: the detail of a listed job loads, if one is listed.

        The detail that was fetched longest ago comes first, because it is due next: what arrives is
        kept, so no request is wasted. Those that are known to fail come last.
        """

        def due(ref: JobRef) -> tuple[bool, int]:
            job = self.state.jobs.get(ref.id)
            return (job.failing_since > 0, job.fetched_at) if job else (False, 0)

        witnesses = sorted(self.jobs.values(), key=due)[:MOST_WITNESSES]
        for ref in witnesses:
            with suppress(RequestError):
                self.details[ref] = self.api.detail(ref, TRIES_TO_CONFIRM)
                return True
        return not witnesses

    def ask(self, refs: Iterable[JobRef]) -> Iterator[tuple[JobRef, Verdict]]:
        """Request details, and yield what the answers mean."""
        return fan_out(self._ask, refs, workers=self.workers)

    def _ask(self, ref: JobRef) -> tuple[JobRef, Verdict]:
        try:
            self.api.detail(ref, TRIES_TO_CONFIRM)
        except NotFoundError:
            return ref, GONE
        except RequestError as error:
            return ref, Verdict("failed", str(error))
        return ref, STILL_THERE


def is_too_many(lost: Collection[object], listed: Collection[object]) -> bool:
    """Return whether so many of the listed jobs are lost at once that the list is in doubt."""
    if len(lost) == len(listed):
        return len(lost) >= DOUBTFUL_IF_ALL
    return len(lost) > max(DOUBTFUL_FROM, len(listed) / 2)
