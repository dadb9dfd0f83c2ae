"""One run: the streams ask it for rows, and it keeps the state."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tap_public_jobs.api.models import JobRef, Json
from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.lines import quoted
from tap_public_jobs.sync.context import RunContext
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.listing import ListReader, is_too_many
from tap_public_jobs.sync.outcomes import Outcomes
from tap_public_jobs.sync.plan import Reason
from tap_public_jobs.sync.state import MANY_FAILING, TOLERANCE, Job, Listing, SyncState, is_new

logger = logging.getLogger(__name__)

# Records.
FEWEST_BETWEEN_CHECKPOINTS = 50


@dataclass
class Run:
    """One run, which the streams share; `start_run` makes it.

    Attributes:
        context: What the run is given.
        state: What is known of the jobs; the run adds to it.
        now: When the run began, by the clock. Its own time is `state.run_time`.
        listing: The published jobs.
        plan: The details to fetch, and why.
        outcomes: What became of the details that did not arrive.
    """

    context: RunContext
    state: SyncState
    now: int
    listing: Listing
    plan: Mapping[JobRef, Reason]
    outcomes: Outcomes

    @property
    def summaries(self) -> list[dict[str, Json]]:
        """The summaries of the published jobs, as the API sent them."""
        return [ref.summary for ref in self.listing.jobs.values() if ref.summary]

    def publications(self) -> Iterator[tuple[str, Job]]:
        """Yield when each job was published, by id; nothing if the list is not complete."""
        if not self.listing.is_complete:
            logger.info("Not updating job_publications: the list of jobs is not complete.")
            return
        closed = self.state.closed
        yield from self.state.jobs.items()
        yield from [(job_id, job) for job_id, job in closed.items() if not job.is_written]
        for job_id, job in closed.items():
            closed[job_id] = job._replace(is_written=True)

    def details(self) -> Iterator[tuple[JobRef, dict[str, Json]]]:
        """Fetch the details of the plan, and yield each as it arrives.

        A detail is noted when the consumer asks for the next one, because it is written by then.

        Raises:
            PublicJobsError: The run cannot continue.
            SystemExit: A signal stopped the run.
        """
        outcomes, report = self.outcomes, self.context.report
        reasons = Counter[str](self.plan.values())
        with report.fetching(reasons, len(self.listing.jobs)):
            for ref, answer in fan_out(self._fetch, self.plan, workers=self.context.workers):
                report.details.answered += 1
                if isinstance(answer, NotFoundError):
                    outcomes.not_found[ref] = str(answer)
                elif isinstance(answer, RequestError):
                    self._note_failure(ref, str(answer))
                    if len(outcomes.failed) % MANY_FAILING == 0:
                        with suppress(SystemExit):  # a signal; other responses may still arrive
                            self.context.api.page(1)  # ends the run if it cannot be read either
                else:
                    yield ref, answer
                    self.state.note_detail(ref, answer)
                    report.details.fetched += 1
            if outcomes.not_found:
                for ref, why in outcomes.classify(self._read_list_again()).items():
                    self._note_failure(ref, why)
        report.details.unpublished = len(outcomes.unpublished)
        if outcomes.renamed:
            line = "%d jobs got a new publicId during the run: the next run fetches their details."
            logger.info(line, len(outcomes.renamed))
        self.state.note_pending([*outcomes.unpublished, *outcomes.renamed])

    def _fetch(self, ref: JobRef) -> tuple[JobRef, dict[str, Json] | RequestError]:
        """Request a detail, unless the listing has brought it already."""
        if arrived := self.listing.details.pop(ref, None):
            return ref, arrived
        failing_since = self.state.jobs[ref.id].failing_since
        is_known = failing_since > 0 and not is_new(failing_since, self.now)
        is_first = self.context.report.details.fetched == 0
        none_arrives = is_first and len(self.outcomes.failed) >= MANY_FAILING
        try:
            return ref, self.context.api.detail(ref, 1 if is_known or none_arrives else None)
        except RequestError as error:
            return ref, error

    def _note_failure(self, ref: JobRef, why: str) -> None:
        """Note that a detail has failed, at once, so that a run that is stopped remembers it."""
        self.outcomes.failed[ref] = why
        self.context.report.details.failed = len(self.outcomes.failed)
        since = self.outcomes.outage_since or int(self.context.clock())
        self.state.note_failure(ref.id, since)

    def _read_list_again(self) -> Mapping[str, JobRef] | None:
        """Return the jobs that are listed now; None if the list is not complete."""
        reader = ListReader(self.context, self.state, int(self.context.clock()))
        reader.read()
        if reader.has_drifted:  # it may have missed a job
            reader.read(most_sweeps=1)
        unlisted = {ref.id for ref in self.outcomes.not_found} - reader.jobs.keys()
        is_complete = reader.is_accepted and not is_too_many(unlisted, self.listing.jobs)
        return reader.jobs if is_complete else None

    def note_record(self, stream: str) -> None:
        """Count a record that has been written."""
        self.context.report.records[stream] += 1

    def checkpoint_if_due(self) -> None:
        """Write a STATE message if enough details were written since the last one."""
        fetched = self.context.report.details.fetched
        # At most 20 or so in a run, so that their size together is linear in the number of jobs.
        every = max(FEWEST_BETWEEN_CHECKPOINTS, len(self.listing.jobs) // 20)
        if fetched > 0 and fetched % every == 0:
            self.context.checkpoint(self.state)

    def version_of(self, stream: str) -> int | None:
        """Return the version of a stream's records; None if they are never activated.

        A resumed run, and one that fetches only some details, keeps the version of the details.
        Publications are history, without a version.
        """
        # A list without jobs empties no table until a list has shown one: the state may be lost.
        if stream == "job_publications" or self.state.cycle is None:
            return None
        return self.state.cycle.version if stream == "job_details" else self.state.run_time

    def has_everything(self, stream: str) -> bool:
        """Return whether every record was written, so that a target may remove all others."""
        if not self.listing.is_complete or self.listing.missing:
            return False
        if stream == "jobs":
            return True
        # Under `changed`, runs write some details; a target would remove the rows of all others.
        fetches_all = self.state.cycle is not None and self.state.cycle.refresh == "all"
        gone = self.outcomes.unpublished
        return fetches_all and all(
            job.detail_hash or job_id in gone for job_id, job in self.state.jobs.items()
        )

    def end_stream(self, stream: str, undeclared: Collection[str]) -> None:
        """Note the fields that have no column, and keep the state for the SDK's next message."""
        seen = self.state.undeclared.setdefault(stream, [])
        new_fields = sorted({*undeclared}.difference(seen))
        seen += new_fields
        self.context.report.new_fields[stream] = new_fields
        self.context.keep(self.state)

    def finish(self) -> str:
        """End the run, and log what has been missing for an hour.

        Returns:
            What is missing for less than that; empty if nothing is.
        """
        if self.state.cycle and self.listing.is_complete:
            self.state.cycle = self.state.cycle._replace(has_ended=True)
        gaps = [*self._gaps()]
        known = [(self.now - since, why) for since, why in gaps if not is_new(since, self.now)]
        new = {why: since for since, why in gaps if is_new(since, self.now)}
        self.context.report.still_missing(known)
        return self.context.report.incomplete(new, max(new.values()) + TOLERANCE) if new else ""

    def _gaps(self) -> Iterator[tuple[int, str]]:
        """Yield what the run could not see or load, and since when."""
        state, listing = self.state, self.listing
        untouched = "" if listing.is_complete else ", so job_publications was not updated"
        for since, why in listing.doubts:
            yield since, why + untouched
        not_asked = [state.jobs[job_id] for job_id, why in listing.missing.items() if not why]
        if not_asked and listing.is_complete:
            why = f"{len(not_asked):,} more known jobs are not in the list"
            yield max(job.missing_since for job in not_asked), why
        for job_id, why in listing.missing.items():
            if why:
                job = state.jobs[job_id]
                yield job.missing_since, f"{quoted(job.public_id)} is not in the list, but {why}"
        for ref, why in self.outcomes.failed.items():
            since = state.jobs[ref.id].failing_since
            yield since, f"the detail of {quoted(ref.public_id)} is missing: {why}"
