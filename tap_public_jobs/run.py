"""One run: reads the state, the change log and the list, and decides what the streams do."""

from __future__ import annotations

import logging
import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from tap_public_jobs.api.fanout import FanOut
from tap_public_jobs.api.listing import Listing, ListReader
from tap_public_jobs.api.models import job_ref
from tap_public_jobs.errors import PublicJobsError, RequestError
from tap_public_jobs.sync.plan import DAY, begin_run, plan_details
from tap_public_jobs.sync.state import MOST_CLOSED, LogPosition, SyncState, hash_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tap_public_jobs.api.listing import Api
    from tap_public_jobs.api.models import Detail, JobRef
    from tap_public_jobs.changelog import Changes
    from tap_public_jobs.report import Report
    from tap_public_jobs.sync.plan import Plan
    from tap_public_jobs.sync.state import Refresh

logger = logging.getLogger(__name__)


class Environment(NamedTuple):
    """The dependencies of a run."""

    config: Mapping[str, Any]
    """The settings."""
    api: Api
    """Answers requests."""
    report: Report
    """Counts what happens."""
    clock: Callable[[], float]
    """Returns seconds since the epoch."""


class Answer(NamedTuple):
    """The outcome of a request for one detail."""

    job: JobRef
    detail: Detail | None = None
    error: RequestError | None = None

    def size(self) -> int:
        """Return the size of the detail in bytes."""
        return self.detail.size if self.detail else 0

    def release(self) -> None:
        """Let the next large detail be read."""
        if self.detail:
            self.detail.release()


class Run:
    """One run, which the streams share.

    Args:
        environment: Its dependencies.
        state: What earlier runs know; this run adds to it.
        listing: The published jobs; None if the run has nothing to do.
        is_resumed: Whether an earlier run has fetched a part of the details.
        is_sample: Whether the SDK only tests the connection: a sample is never complete, and leaves
            the state alone.
    """

    def __init__(
        self,
        environment: Environment,
        state: SyncState,
        listing: Listing | None,
        *,
        is_resumed: bool = False,
        is_sample: bool = False,
    ) -> None:
        self.config, self.api, self.report, self.clock = environment
        self.state = state
        self.listing = listing
        self.is_resumed = is_resumed
        self.is_sample = is_sample
        self._workers: int = self.config["max_concurrent_requests"]
        self._fan_out: FanOut[JobRef, Answer] | None = None
        self._exit_status: int | None = None

    def plan(self) -> Plan:
        """Decide which details to fetch."""
        jobs = self.listing.jobs.values() if self.listing else ()
        # Webhooks name what changes, so that details need not expire.
        is_notified = self.config["detail_refresh"] == "notified"
        max_age = math.inf if is_notified else self.config["detail_max_age_days"] * DAY
        return plan_details(self.state, jobs, self.clock(), max_age)

    def read_list_again(self) -> Listing:
        """Read the list once more, after details that were not found."""
        return ListReader(self.api, workers=self._workers).read()

    def details(self, jobs: Iterable[JobRef]) -> Iterator[Answer]:
        """Request details, several at once, and yield each outcome as it arrives.

        Raises:
            SystemExit: `stop` was called; the outcomes until then have been yielded.
        """

        def fetch(job: JobRef) -> Answer:
            try:
                return Answer(job, self.api.detail(job))
            except RequestError as error:
                return Answer(job, error=error)

        self._fan_out = FanOut(
            fetch, jobs, workers=self._workers, size_of=Answer.size, release=Answer.release
        )
        yield from self._fan_out
        self._fan_out = None
        if self._exit_status is not None:
            sys.exit(self._exit_status)

    def stop(self, exit_status: int) -> bool:
        """End `details`, from a signal handler; returns whether it was running."""
        if self._fan_out is None:
            return False
        self._exit_status = exit_status
        self._fan_out.stop()
        return True


def start_run(environment: Environment, state: SyncState, forms: Mapping[str, str]) -> Run:
    """Decide whether there is work to do, and if so, read the list.

    Args:
        environment: The dependencies of the run.
        state: What earlier runs know; this run adds to it.
        forms: Per selected stream, a hash of what its records are made of.

    Raises:
        PublicJobsError: The change log or the list cannot be read.
    """
    config, api, report, clock = environment
    # Read before the list, so that the list and the details show everything notified until now.
    changes = _read_change_log(config, state)
    if config["detail_refresh"] == "notified":
        if not _covers(state, changes):
            if state.listed_at is not None:
                logger.info(
                    "The change log does not cover everything since the last run; running as "
                    "detail_refresh: changed."
                )
            config = {**config, "detail_refresh": "changed"}
        elif not _has_news(state, changes) and not _has_pending_work(state, forms):
            logger.info("The change log has no news since the last run: nothing to fetch.")
            return Run(environment, state, listing=None)
    key_hash = hash_key(config["api_key"])
    began_at = state.next_listing_time(clock())
    listing = ListReader(
        api,
        workers=config["max_concurrent_requests"],
        known=state.known,
        is_new_key=bool(state.key_hash) and state.key_hash != key_hash,
    ).read()
    if state.listed_at is not None:
        report.opened = len(listing.jobs.keys() - state.jobs.keys())
    report.closed = len(listing.gone)
    state.key_hash = key_hash
    state.note_listing(listing, began_at)
    if "job_publications" not in forms:
        state.keep_closed(MOST_CLOSED)  # until the stream is selected again
    if state.note_forms(forms):
        logger.info("The selected columns changed; fetching all details again.")
    if changes:
        state.mark_pending_by_public_id(set(changes.public_ids))
        state.log = LogPosition(changes.log, changes.position)
    is_resumed = begin_run(state, _refresh(config, forms), clock())
    if is_resumed:
        logger.info("Resuming the last run: fetching only the details that it did not fetch.")
    else:
        state.next_version("job_details", clock())
    return Run(environment._replace(config=config), state, listing, is_resumed=is_resumed)


def _refresh(config: Mapping[str, Any], forms: Mapping[str, str]) -> Refresh:
    if "job_details" not in forms:
        return "none"
    return "all" if config["detail_refresh"] == "all" else "changed"


def sample_run(environment: Environment, jobs: int) -> Run:
    """Read the first page for a test of the connection.

    Args:
        environment: The dependencies of the run.
        jobs: How many of the page's jobs to keep.

    Raises:
        PublicJobsError: It cannot be read, or a sync could not read the change log.
    """
    _read_change_log(environment.config, SyncState())
    page = environment.api.page(1)
    usable = [(job, item) for item in page.items if (job := job_ref(item))][:jobs]
    refs, summaries = {job.id: job for job, _ in usable}, [item for _, item in usable]
    listing = Listing(refs, summaries, gone=[], problems=["it is a sample"])
    environment.report.published = len(page.items) if page.total is None else page.total
    state, now = SyncState(), environment.clock()
    state.note_listing(listing, state.next_listing_time(now))
    begin_run(state, "all", now)
    return Run(environment, state, listing, is_sample=True)


def _read_change_log(config: Mapping[str, Any], state: SyncState) -> Changes | None:
    """Read what was notified since the last run; None if there is no log to read.

    Raises:
        PublicJobsError: It cannot be read, and `notified` needs it.
    """
    if "changes_url" not in config:
        return None
    from tap_public_jobs.changelog import ChangeLog, ChangeLogError  # noqa: PLC0415  # slow

    position = state.log.position if state.log else 0
    try:
        log = ChangeLog(config["changes_url"])
        changes = log.read(position)
        if state.log and changes.log != state.log.log:
            return log.read(0)  # another log, with other positions
    except ChangeLogError as error:
        if config["detail_refresh"] == "notified":
            raise PublicJobsError(str(error)) from error
        logger.warning("%s Continuing without it.", error)
        return None
    return changes


def _covers(state: SyncState, changes: Changes | None) -> bool:
    """Whether the changes name every job that has changed since the last run."""
    return (
        changes is not None
        and state.log is not None
        and changes.log == state.log.log
        and changes.position >= state.log.position
        and changes.forgotten <= state.log.position
        and state.listed_at is not None
    )


def _has_news(state: SyncState, changes: Changes | None) -> bool:
    """Whether anything was notified, even if it names no job."""
    return not (changes and state.log and changes.position == state.log.position)


def _has_pending_work(state: SyncState, forms: Mapping[str, str]) -> bool:
    """Whether the run has work that no change names."""
    if state.run or any(state.forms.get(stream) != form for stream, form in forms.items()):
        return True
    return "job_details" in forms and any(not entry.detail_hash for entry in state.jobs.values())
