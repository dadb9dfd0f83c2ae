"""One run: the only owner of the state, the plan and the outcomes of a run."""

from __future__ import annotations

import logging
import math
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.listing import Known, ListReader
from tap_public_jobs.sync.outcomes import Outcomes
from tap_public_jobs.sync.plan import begin_run, has_work, is_covered, plan_details

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from tap_public_jobs.api.models import JobRef
    from tap_public_jobs.changelog import Changes
    from tap_public_jobs.report import Report
    from tap_public_jobs.sync.listing import Listing
    from tap_public_jobs.sync.pages import Api
    from tap_public_jobs.sync.plan import Plan, Refresh
    from tap_public_jobs.sync.state import Period, SyncState

logger = logging.getLogger(__name__)

Json = Any

# Seconds from a signal to the last record. The rest of two seconds is for the state.
GRACE = 1.2


class Environment(NamedTuple):
    """What a run works with.

    Attributes:
        api: Answers requests.
        report: Counts what happens.
        key_hash: Hash of the API key.
        workers: Requests at once.
        clock: Returns seconds since the epoch.
        sleep: Waits for a number of seconds.
    """

    api: Api
    report: Report
    key_hash: str
    workers: int
    clock: Callable[[], float]
    sleep: Callable[[float], object]

    def read_list(self, known: Known) -> Listing:
        """Read the list; see `ListReader`."""
        return ListReader(self.api, known, self.workers, self.sleep).read()


def start_run(  # noqa: PLR0913, PLR0917  # each is one decision of the caller
    environment: Environment,
    state: SyncState,
    changes: Changes | None,
    forms: Mapping[str, str],
    refresh: str,
    max_age: float,
) -> Run | None:
    """Decide whether there is work, and if so, read the list.

    Args:
        environment: What the run works with.
        state: What earlier runs know; this run adds to it.
        changes: What the change log says, read before the list, so that the list and the details
            show everything notified until then.
        forms: Per stream that the run writes, a hash of what its records are made of.
        refresh: Which details to fetch again: the setting `detail_refresh`.
        max_age: Seconds; the setting `detail_max_age_days`.

    Returns:
        None if there is no work.

    Raises:
        PublicJobsError: The list cannot be read.
    """
    report, key_hash, clock = environment.report, environment.key_hash, environment.clock
    if refresh == "notified":
        if not has_work(state, changes, forms):
            logger.info("The change log has no news since the last run: nothing to fetch.")
            return None
        if is_covered(state, changes):
            max_age = math.inf  # webhooks name what changes
        elif state.listed_at is not None:
            logger.info(
                "The change log does not cover everything since the last run; running as "
                "detail_refresh: changed."
            )
    known = Known(
        {key: entry.public_id for key, entry in state.jobs.items()},
        {*state.missing},
        state.shortfall,
        {*state.failed},
        is_new_key=state.key_hash not in {"", key_hash},
    )
    began_at = state.next_listing_time(clock())
    listing = environment.read_list(known)
    if state.listed_at is not None:
        report.opened = len(listing.jobs.keys() - state.jobs.keys())
    report.closed = len(listing.gone)
    state.key_hash = key_hash
    state.note_listing(listing, began_at)
    if state.note_forms(forms):
        logger.info("The selected columns changed; fetching all details again.")
    if changes:
        state.note_changes(changes, is_read=listing.is_complete)
    kind: Refresh = "all" if refresh == "all" else "changed"
    is_resumed = begin_run(state, kind if "job_details" in forms else "none", clock())
    if is_resumed:
        logger.info("Resuming the last run: fetching only the details that it did not fetch.")
    # After a lost state nothing confirms an empty list: without a version it empties no table.
    if listing.jobs or state.versions:
        state.begin_versions(clock(), is_resumed=is_resumed)
    plan = plan_details(state, listing.jobs.values(), clock(), max_age)
    return Run(environment, state, listing, known, plan, is_resumed)


@dataclass
class Run:
    """One run, which the streams share; `start_run` makes it.

    Attributes:
        environment: What the run works with.
        state: What is known of the jobs; this run adds to it.
        listing: The published jobs.
        known: What earlier runs knew.
        plan: The details to fetch.
        is_resumed: Whether an earlier run has fetched a part of them.
        outcomes: Of the details so far.
    """

    environment: Environment
    state: SyncState
    listing: Listing
    known: Known
    plan: Plan
    is_resumed: bool
    outcomes: Outcomes = field(default_factory=Outcomes)
    _is_fetching: bool = False
    _stop_by: float | None = None
    _exit_status: int = 0

    @property
    def summaries(self) -> list[dict[str, Json]]:
        """The summaries of the published jobs, as the API sent them."""
        return self.listing.summaries

    def publications(self) -> Iterator[tuple[str, Period]]:
        """Yield when each job was published, by id; nothing if the list is not complete."""
        if not self.listing.is_complete:
            logger.info("No records of job_publications: the list of jobs is not complete.")
            return
        yield from self.state.periods().items()
        self.state.closed.clear()

    def details(self) -> Iterator[tuple[JobRef, dict[str, Json]]]:
        """Fetch the details of the plan, and yield each as it arrives.

        The consumer comes back for the next one once a detail is written.

        Raises:
            PublicJobsError: The run cannot continue.
            SystemExit: `stop` was called.
        """
        with self.environment.report.fetching(self.plan, self.outcomes):
            yield from self._fetch(self.plan.reasons)
            if self.outcomes.not_found:
                listing = self._read_list_again()
                yield from self._fetch(self.outcomes.settle(listing))
                self.outcomes.settle(listing)
        self.state.note_failed(self.outcomes.failed)
        # The next run looks for them in the list.
        self.state.mark_pending([job.id for job in self.outcomes.unpublished])

    def _read_list_again(self) -> Listing:
        if not self.listing.is_complete:
            return self.listing
        return self.environment.read_list(Known(shortfall=self.listing.shortfall))

    def _fetch(self, jobs: Iterable[JobRef]) -> Iterator[tuple[JobRef, dict[str, Json]]]:
        environment = self.environment

        def ask(job: JobRef) -> tuple[JobRef, dict[str, Json] | RequestError]:
            try:
                return job, environment.api.detail(job)
            except RequestError as error:
                return job, error

        self._is_fetching = True
        try:
            for job, answer in fan_out(
                ask, jobs, workers=environment.workers, stop_by=lambda: self._stop_by
            ):
                if isinstance(answer, NotFoundError):
                    self.outcomes.not_found[job] = str(answer)
                elif isinstance(answer, RequestError):
                    if self.outcomes.note_failure(job, str(answer)):
                        self._check_list()
                else:
                    yield job, answer
                    self.state.note_detail(job, environment.clock())
                    self.outcomes.note_written()
        finally:
            self._is_fetching = False
        if self._stop_by is not None:
            sys.exit(self._exit_status)

    def _check_list(self) -> None:
        """End the run if the list cannot be read either."""
        try:
            self.environment.api.page(1)
        except Exception:
            if self._stop_by is None:  # a stop lets no further request through
                raise

    def stop(self, exit_status: int) -> bool:
        """End `details` within `GRACE` seconds, from a signal handler.

        Returns:
            Whether details are being fetched.
        """
        if self._is_fetching:
            self._exit_status = exit_status
            self._stop_by = time.monotonic() + GRACE
        return self._is_fetching

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether enough details were written since the last checkpoint."""
        written = self.outcomes.written
        return written > 0 and written % self.plan.checkpoint_every == 0

    def has_everything(self, stream: str) -> bool:
        """Whether a stream has written every record, so that a target may remove all others."""
        listing, run = self.listing, self.state.unfinished
        if not listing.is_complete or listing.missing:
            return False
        if stream == "jobs":
            return True
        unpublished = {job.id for job in self.outcomes.unpublished}
        return (
            stream == "job_details"
            and run is not None
            and run.refresh == "all"  # a detail of a closed job cannot be fetched again
            and self.state.has_all_details(without=unpublished)
        )

    def finish(self) -> Collection[str]:
        """End the run: log what was missing before and still is.

        Returns:
            What is missing for the first time, one sentence each.
        """
        gaps = self._gaps()
        new = [sentence for sentence, is_known in gaps if not is_known]
        again = [sentence for sentence, is_known in gaps if is_known]
        # The next run fetches only what failed, but only once: otherwise one broken detail would
        # keep all others from being refreshed.
        if self.is_resumed or not new:
            self.state.unfinished = None
        if again:
            logger.warning("Still missing: %s. Everything else was synced.", in_short(again))
        return new

    def _gaps(self) -> list[tuple[str, bool]]:
        """Return a sentence for each thing that is missing, and whether it was missing before."""
        listing, known = self.listing, self.known
        gaps = [(problem, listing.is_complete) for problem in listing.problems]
        gaps += [
            (f"the list does not show the job {known.jobs[key]!r}: {why}", key in known.missing)
            for key, why in listing.missing.items()
        ]
        return gaps + [
            (f"the detail of {job.public_id!r} is missing: {why}", job.id in known.failed)
            for job, why in self.outcomes.failed.items()
        ]


def in_short(sentences: Collection[str], most: int = 10) -> str:
    """Join sentences, with the number of those beyond the first ones."""
    more = f"; and {len(sentences) - most:,} more" if len(sentences) > most else ""
    return "; ".join([*sentences][:most]) + more
