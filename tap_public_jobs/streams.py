"""The streams: `jobs`, and here `job_details`, with one request for each job of the listing."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from singer_sdk.exceptions import RetriableAPIError
from singer_sdk.streams.rest import HTTPRequest
from typing_extensions import override

from tap_public_jobs.backlog import Backlog
from tap_public_jobs.changelog import ChangeLog, ChangeLogError
from tap_public_jobs.detail import Answer, completed, is_detail_of, path_segment
from tap_public_jobs.errors import NotFoundError, PublicJobsError, RequestRefusedError
from tap_public_jobs.fanout import FanOut
from tap_public_jobs.jobs import Jobs
from tap_public_jobs.ledger import DAY, REASONS, DamagedLedgerError, Ledger, between_states
from tap_public_jobs.listing import Job
from tap_public_jobs.naming import field_of
from tap_public_jobs.report import Progress
from tap_public_jobs.snapshot import SnapshotStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from singer_sdk import Tap
    from singer_sdk.helpers.types import Context

    from tap_public_jobs.connection import Connection
    from tap_public_jobs.ledger import Reason

__all__ = ["JobDetails", "Jobs"]

MAX_FAILURES_IN_A_ROW = 5
FEWEST_GONE = 5


class JobDetails(SnapshotStream):
    """The details of all published jobs (API page, "Get a single published job").

    Not a child stream of `jobs`: the SDK would fetch one at a time, and write one STATE message and
    one SCHEMA message for each job.
    """

    name = "job_details"
    path = "/jobs/{publicId}"

    def __init__(self, tap: Tap, connection: Connection, jobs: Jobs) -> None:
        super().__init__(tap, connection)
        self._jobs = jobs
        self._ledger = Ledger()
        self._backlog: Backlog | None = None
        self._is_notified = False
        self._has_begun = False
        self._plan: dict[Job, Reason] = {}
        self._published = 0
        self._gone = 0
        self._failed: list[Answer] = []
        self._failures_in_a_row = 0
        self._unsettled: list[Job] = []
        self._fan_out: FanOut[Job, Answer] | None = None
        self._status: int | None = None

    @property
    @override
    def complete(self) -> bool:
        refreshes_all = self.config["detail_refresh"] == "all"
        return (
            self._jobs.complete
            and not self.problems
            and self._ledger.whole
            # Under `changed` no detail at all is no news, and no reason to forget them.
            and (refreshes_all or bool(self._plan))
        )

    @property
    @override
    def problems(self) -> list[str]:
        problems = [
            f"the detail of {answer.job.public_id!r} is missing: {answer.error}"
            for answer in self._failed
        ]
        if self._all_gone:
            problems.append(
                f"all {self._gone:,} details answered 404 though their jobs are listed, so nothing "
                "is removed from the warehouse: check base_url and any proxy in front of the API"
            )
        return problems

    @property
    @override
    def unpublished(self) -> list[str]:
        return [] if self._all_gone else self._ledger.unpublished

    @property
    def _all_gone(self) -> bool:
        """Whether no detail is there of any job that is listed, which is hardly true."""
        return self._gone == self._published >= FEWEST_GONE

    @override
    def marked(self) -> None:
        self._ledger.unpublished.clear()

    def read_changes(self) -> None:
        """Read what webhooks have told since the last run.

        To be called before anything is listed: whatever is told of until now, the list and the
        details show.

        Raises:
            PublicJobsError: The log cannot be read.
        """
        if not self.config.get("changes_url"):
            return
        self._backlog = Backlog.read(self.stream_state.get("changes"))
        try:
            self._backlog.catch_up(ChangeLog(self.config["changes_url"]).read)
        except ChangeLogError as error:
            raise PublicJobsError(str(error)) from error

    @override
    def begin(self) -> int:
        self._read_ledger()
        self._has_begun = True
        if self._ledger.note_columns(self.row_form):
            self.log("The columns are others than before: all details are fetched again.")
        if self.config["detail_refresh"] == "notified":
            if self._backlog and self._backlog.unbroken and not self._ledger.owes:
                return self._begin_notified(self._backlog)
            self.log("What webhooks told is not all there is yet: this run is one of changed.")
        return self._begin_listed(self._backlog)

    def _read_ledger(self) -> None:
        try:
            self._ledger = Ledger.read(self.stream_state.get("ledger"))
        except DamagedLedgerError as error:
            self.log(
                "The state of earlier runs cannot be read (%s) and is set aside; all details are "
                "fetched again.",
                error,
                level=logging.WARNING,
            )
        if self._ledger.version != self.stream_state.get("version"):
            self._ledger.finish()  # a run that is not the last one, left by a merge of states

    def _begin_listed(self, backlog: Backlog | None) -> int:
        listing = self._jobs.listing
        listed = listing.jobs(self.ABORT_AT_RECORD_COUNT)
        self._published = len(listed)
        self.STATE_MSG_FREQUENCY = between_states(self._published)
        self._plan = self._ledger.plan(
            listed,
            "all" if self.config["detail_refresh"] == "all" else "changed",
            time.time(),
            self.config["detail_max_age_days"] * DAY,
            self.new_version,
            notified=backlog.pending if backlog else (),
            all_listed=listing.whole,
        )
        if backlog and listing.whole:
            backlog.keep({job.public_id for job in listed})
        return self._ledger.version

    def _begin_notified(self, backlog: Backlog) -> int:
        """Plan what webhooks told of alone, without the list unless `jobs` has read it anyway."""
        listing = self._jobs.listing
        listed = {job.public_id: job for job in listing.jobs()} if self._jobs.selected else {}
        if listing.whole:
            backlog.keep(listed)
            self._ledger.keep({job.id for job in listed.values()})
        ids = self._ledger.ids(backlog.pending)
        jobs = (listed.get(name) or Job(ids.get(name, ""), name, "") for name in backlog.pending)
        self._plan = dict.fromkeys(jobs, "notified")
        self._is_notified = True
        self.STATE_MSG_FREQUENCY = between_states(len(self._plan))
        return self.new_version()

    @override
    def save(self) -> None:
        # What earlier runs left is not to be replaced by a ledger that has not read it.
        if self._has_begun and not self.is_test:
            self.stream_state["ledger"] = self._ledger.write()
            if self._backlog:
                self.stream_state["changes"] = self._backlog.write()

    @override
    def settle(self) -> None:
        for job in self._unsettled:
            self._ledger.done(job, time.time())
            self._forget_notification(job)
        self._unsettled.clear()

    def _forget_notification(self, job: Job) -> None:
        if self._backlog:
            self._backlog.done(job.public_id)

    @override
    def finish(self) -> None:
        if not self.problems:
            self._ledger.finish()

    def stop(self, status: int) -> bool:
        """End a fan-out under way, whose results so far are still written; from a signal handler.

        Args:
            status: Exit status of the process.

        Returns:
            Whether there is one.
        """
        if self._fan_out is None:
            return False
        self._status = status
        self._fan_out.stop()
        self.connection.throttle.close()
        return True

    @override
    def get_records(self, context: Context | None) -> Iterator[dict[str, Any]]:
        self._fan_out = FanOut(
            self.fetch_detail, self._plan, workers=self.config["max_concurrent_requests"]
        )
        self.announce()
        with self._progress() as progress:
            for answer in self._announced(self._fan_out):
                progress.done += 1
                if answer.document is None:
                    self._note_missing(answer)
                    continue
                self._failures_in_a_row = 0
                self._unsettled.append(answer.job)
                yield self.columns.row(
                    answer.document,
                    id=answer.job.id,
                    publicId=answer.job.public_id,
                    isPublished=True,
                )
                # The record is written, or nobody had come back for the next.
                if not self.in_batches:
                    self.settle()
        self._fan_out = None
        if self._status is not None:
            sys.exit(self._status)
        self._log_savings()

    def _announced(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Yield answers, those of jobs that were never listed after a state that knows of them.

        At most some 20 such states are written, as of any kind.
        """
        together = len(self._plan) // 20 if self._is_notified else 0
        ahead: list[Answer] = []
        for answer in chain(answers, [None]):
            if answer is not None:
                ahead.append(answer)
            if answer is None or len(ahead) > together:
                found = [it.job for it in ahead if it.document is not None]
                if self._ledger.expect(found):
                    self.announce()
                yield from ahead
                ahead.clear()

    def fetch_detail(self, job: Job) -> Answer:
        """Fetch the detail of one job.

        Raises:
            PublicJobsError: The run cannot go on.
        """
        url = f"{self.url_base}/jobs/{path_segment(job.public_id)}"
        try:
            document = self.fetch(
                HTTPRequest(url, headers=self.http_headers),
                is_answer=partial(is_detail_of, job),
            )
        except NotFoundError:
            return Answer(job)
        except (RetriableAPIError, RequestRefusedError) as error:
            return Answer(job, error=error)
        return Answer(completed(job, document, self._listed_fields), document)

    @cached_property
    def _listed_fields(self) -> set[str]:
        columns = self._jobs.schema["properties"]
        return {field_of(column, self.config["column_naming"]) for column in columns}

    def _note_missing(self, answer: Answer) -> None:
        if answer.error is None:
            self._see_whose_answer_it_is()
            self._ledger.gone(answer.job)
            self._forget_notification(answer.job)
            self._gone += 1
            self.report.skipped += 1
            return
        refused = isinstance(answer.error, RequestRefusedError) and answer.error.status >= 400  # noqa: PLR2004
        if refused and not answer.job.id:
            # Never seen in the list, and nothing that the API could answer: not a job.
            self._see_whose_answer_it_is()
            self.log(
                "A webhook named %r, which the API refuses: %s.",
                answer.job.public_id,
                answer.error,
                level=logging.WARNING,
            )
            self._forget_notification(answer.job)
            return
        self._failed.append(answer)
        if self._backlog:
            self._backlog.postpone(answer.job.public_id)
        self._failures_in_a_row += 1
        if self._failures_in_a_row == MAX_FAILURES_IN_A_ROW:
            msg = (
                f"{MAX_FAILURES_IN_A_ROW} details in a row failed, the last one with "
                f"{answer.error}. The API seems to be down: run again later."
            )
            raise PublicJobsError(msg)

    def _see_whose_answer_it_is(self) -> None:
        """See that it is the API, and the known organisation, which does not know a job.

        Costs a request, but only in a run that has had no other answer, and so not read the list.

        Raises:
            PublicJobsError: It is not.
        """
        if self.connection.reached:
            return
        items = self._jobs.fetch_page(1).items
        listed = {item.get("id") for item in items if isinstance(item, dict)}
        if listed and not listed & self._ledger.entries.keys():
            msg = (
                "None of the jobs that the API lists is one of those that were synced before, so "
                "nothing is set to unpublished. If api_key belongs to another organisation now, "
                "run once with detail_refresh: changed."
            )
            raise PublicJobsError(msg)

    def _log_savings(self) -> None:
        if self._is_notified:
            self.log("Jobs to fetch that webhooks named: %s.", f"{len(self._plan):,}")
            return
        counts = Counter(self._plan.values())
        parts = ", ".join(f"{counts[reason]:,} {reason}" for reason in REASONS if counts[reason])
        self.log(
            "Fetched %s of %s details%s; %s unchanged.",
            f"{len(self._plan):,}",
            f"{self._published:,}",
            f" ({parts})" if parts else "",
            f"{self._published - len(self._plan):,}",
        )

    def _progress(self) -> Progress:
        return Progress(
            len(self._plan),
            self.config["rate_limit_requests"],
            self.config["rate_limit_period_seconds"],
        )
