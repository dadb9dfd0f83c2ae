"""The published jobs as one run sees them, read from a list that may drift between two pages."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import NamedTuple

from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.limit.fanout import fan_out
from tap_public_jobs.limit.verdict import FEW_TRIES
from tap_public_jobs.sync.notes import GONE, NOT_ASKED, STILL_THERE, Finding, Listing
from tap_public_jobs.sync.pages import read_pages
from tap_public_jobs.sync.report import Report
from tap_public_jobs.sync.source import JobRef, Json, Source
from tap_public_jobs.sync.state import SyncState, is_new

logger = logging.getLogger(__name__)

Details = dict[JobRef, dict[str, Json]]

# Seconds before the list is read again. A cached total, or a replica, lags for some seconds.
PAUSE = 5.0

# Once this many unlisted jobs turn out not to be gone, a run asks for no further one.
MOST_NOT_GONE = 20

# Listed jobs to ask for until the detail of one loads.
MOST_LISTED_ASKED = 3

NONE_LOADS = Finding("failed", "no detail of a listed job loads either")

# If more than this many jobs and more than half of them are gone at once, the list is in doubt.
DOUBTFUL_FROM = 20
# If this many jobs or more were published, and all are gone at once, it is in doubt, too.
DOUBTFUL_IF_ALL = 5


class ListReading(NamedTuple):
    """What the list showed, read once or twice.

    Attributes:
        jobs: The listed jobs by id, in the order in which they were first seen.
        lacks: How many jobs its total counts beyond these and those that are known.
        shortfall: Why it may lack jobs that no run has seen; empty if it does not.
        short_since: When it first fell short; 0 once it shows its whole total.
        is_accepted: Whether it explains its total, or has fallen short for an hour.
        has_drifted: Whether it changed while it was last read, so that it may lack a job.
        further: The publicIds of items that share an id with a job, and are not loaded.
    """

    jobs: dict[str, JobRef]
    lacks: int
    shortfall: str
    short_since: int
    is_accepted: bool
    has_drifted: bool
    further: list[str]


@dataclass(frozen=True, kw_only=True)
class ListReader:
    """Reads the list, and asks for the known jobs that it lacks.

    The list can change between two pages, and a reader then misses jobs. So it is read
    again if the jobs that it shows and the known ones don't explain its total, and a known job that
    it lacks counts as gone only if its own detail is gone too.

    Attributes:
        api: Answers requests.
        state: What is known of the jobs; reading the list does not change it.
        now: When the run began, by the clock.
        workers: Requests at once.
        report: Logs how long it takes to ask for many jobs.
        sleep: Waits for a number of seconds.
        ignored_fields: Of the summaries, to leave out of their hashes.
    """

    api: Source
    state: SyncState
    now: int
    workers: int
    report: Report
    sleep: Callable[[float], object]
    ignored_fields: frozenset[str] = frozenset()

    def read(self) -> ListReading:
        """Read the list, and once more if its total counts more jobs than it and the state explain.

        Raises:
            TapError: A page cannot be read.
        """
        reading = self._sweep({})
        if reading.lacks and not reading.is_accepted:
            logger.info("Reading the list again: %s.", reading.shortfall)
            self.sleep(PAUSE)
            reading = self._sweep(reading.jobs)
        return reading

    def _sweep(self, earlier: Mapping[str, JobRef]) -> ListReading:
        """Read the list once, and add the jobs to those that it showed before."""
        sweep = read_pages(self.api, self.ignored_fields)
        jobs = {**earlier, **sweep.jobs}  # a publicId may have changed since
        shown, explained = len(jobs), len(jobs.keys() | self.state.may_be_counted(self.now))
        shortfall = sweep.shortfall(shown, explained)
        since = self.state.short_since or (self.now if shortfall else 0)
        # Known jobs that are not listed can explain the total of this run. But an old shortfall
        # ends only when the list shows its total by itself.
        short_since = since if sweep.shortfall(shown, shown) else 0
        return ListReading(
            jobs=jobs,
            lacks=sweep.lacks(explained),
            shortfall=shortfall,
            short_since=short_since,
            is_accepted=not (shortfall and is_new(short_since, self.now)),
            has_drifted=sweep.has_drifted,
            further=sweep.further,
        )

    def resolve_unlisted(self, reading: ListReading) -> Listing:
        """Find out which of the known jobs that the list lacks are gone.

        If one that the last run listed is not confirmed as gone, or the list changed while it was
        read, the pages may lack a published job. So the list is read once more.

        Args:
            reading: What the list showed.

        Raises:
            TapError: The run cannot continue.
        """
        known = self.state.jobs
        unlisted = [job_id for job_id in known if job_id not in reading.jobs]
        loss = self._loss(reading.jobs)
        findings, details = dict.fromkeys(unlisted, NOT_ASKED), Details()
        if reading.is_accepted and not loss:
            asked, details = self._ask_for_unlisted(unlisted, reading.jobs)
            findings |= asked
            lost = any(
                finding not in {GONE, NOT_ASKED} and not known[job_id].missing_since
                for job_id, finding in findings.items()
            )
            # A list that drifted may also lack a job with a new publicId: the old one is a 404.
            if lost or (reading.has_drifted and GONE in findings.values()):
                logger.info("Reading the list again: it may lack jobs that are published.")
                reading = self._sweep(reading.jobs)
        doubts = [(reading.short_since, reading.shortfall), *loss] if reading.shortfall else loss
        is_complete = not any(is_new(since, self.now) for since, _ in doubts)
        findings = {it: finding for it, finding in findings.items() if it not in reading.jobs}
        gone = [it for it, finding in findings.items() if is_complete and finding == GONE]
        return Listing(
            jobs=reading.jobs,
            details=details,
            gone=gone,
            missing={it: finding for it, finding in findings.items() if it not in gone},
            short_since=reading.short_since,
            doubts=doubts,
            is_complete=is_complete,
            has_drifted=reading.has_drifted,
        )

    def _loss(self, jobs: Collection[str]) -> list[tuple[int, str]]:
        """Return since when and why the list is in doubt, if too many jobs disappeared at once.

        Before the first complete list, all known jobs count as listed.
        """
        known, listed_at = self.state.jobs, self.state.listed_at
        listed = [job_id for job_id, job in known.items() if job.last_seen == listed_at]
        since = [known[it].missing_since or self.now for it in listed if it not in jobs]
        lost = [at for at in since if is_new(at, self.now)]
        why = f"{len(lost):,} of {len(listed):,} published jobs disappeared from the list at once"
        return [(max(lost), why)] if is_too_many(lost, listed) else []

    def _ask_for_unlisted(
        self, unlisted: Collection[str], listed: Mapping[str, JobRef]
    ) -> tuple[dict[str, Finding], Details]:
        """Ask for known jobs that the list lacks.

        Returns:
            What the answers mean, by id, and the proof that details work.
        """
        known = self.state.jobs
        asked: dict[str, Finding] = {}
        # First those that the last run listed; of the others, some in each run.
        lost = [job_id for job_id in unlisted if not known[job_id].missing_since]
        missing = [job_id for job_id in unlisted if known[job_id].missing_since]
        Random(self.now).shuffle(missing)  # noqa: S311  # no secret
        refs = (JobRef(job_id, known[job_id].public_id) for job_id in (*lost, *missing))
        self.report.confirming(len(unlisted))
        details_work, proof, not_gone = False, Details(), 0
        while some := [*islice(refs, MOST_NOT_GONE - not_gone)]:
            answers = dict(fan_out(self._ask, some, workers=self.workers))
            findings = [*answers.values()]
            details_work = details_work or STILL_THERE in findings
            if GONE in findings and not details_work:
                proof = self._proof(listed)
                details_work = bool(proof) or not listed
                if not details_work:
                    return dict.fromkeys(unlisted, NONE_LOADS), proof
            not_gone += len(findings) - findings.count(GONE)
            asked |= answers
        return asked, proof

    def _proof(self, listed: Mapping[str, JobRef]) -> Details:
        """Fetch the detail of a listed job, without which a 404 means nothing; empty if none loads.

        The detail that was fetched longest ago comes first, because it is due next: what arrives is
        kept, so no request is wasted. Those that are known to fail come last.
        """

        def turn(ref: JobRef) -> tuple[bool, int]:
            job = self.state.jobs.get(ref.id)
            return (job.failing_since > 0, job.fetched_at) if job else (False, 0)

        return first_detail(self.api, sorted(listed.values(), key=turn), FEW_TRIES)[0]

    def _ask(self, ref: JobRef) -> tuple[str, Finding]:
        try:
            self.api.detail(ref, FEW_TRIES)
        except NotFoundError:
            return ref.id, GONE
        except RequestError as error:
            return ref.id, Finding("failed", str(error))
        return ref.id, STILL_THERE


def first_detail(api: Source, refs: Iterable[JobRef], tries: int) -> tuple[Details, str]:
    """Fetch the detail of one job, of the first few; also return why, if none of them loads.

    Args:
        api: Answers requests.
        refs: The jobs, in the order in which to ask for them.
        tries: Of each request.

    Raises:
        TapError: The run cannot continue.
    """
    why = ""
    for ref in islice(refs, MOST_LISTED_ASKED):
        try:
            return {ref: api.detail(ref, tries)}, ""
        except RequestError as error:
            why = str(error)
    return {}, why


def is_too_many(lost: Collection[object], listed: Collection[object]) -> bool:
    """Return whether so many of the listed jobs are lost at once that the list is in doubt."""
    if len(lost) == len(listed):
        return len(lost) >= DOUBTFUL_IF_ALL
    return len(lost) > max(DOUBTFUL_FROM, len(listed) / 2)
