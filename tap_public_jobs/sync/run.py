"""One run: the streams ask it for rows, and it keeps the state."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.limit.fanout import fan_out
from tap_public_jobs.limit.verdict import FEW_TRIES, MAX_TRIES
from tap_public_jobs.lines import quoted
from tap_public_jobs.sync.listing import ListReader, ListReading, is_too_many
from tap_public_jobs.sync.notes import (
    NOT_ASKED,
    STILL_THERE,
    Listing,
    note_detail,
    note_failure,
    note_pending,
)
from tap_public_jobs.sync.plan import Reason
from tap_public_jobs.sync.report import Counts
from tap_public_jobs.sync.services import RunSettings, Services
from tap_public_jobs.sync.source import JobRef, Json
from tap_public_jobs.sync.state import (
    MANY_FAILING,
    TOLERANCE,
    Publication,
    SyncState,
    is_new,
)

logger = logging.getLogger(__name__)

# Details.
FEWEST_BETWEEN_CHECKPOINTS = 50


@dataclass(kw_only=True)
class Run:
    """One run, which the streams share; `start_run` makes it.

    Attributes:
        settings: What the user has decided.
        services: What the run uses.
        state: What is known of the jobs; the run adds to it.
        now: When the run began, by the clock. Its own time is `state.run_time`.
        listing: The published jobs.
        plan: The details to fetch, and why.
        outage_since: Since when many details had been failing before the run; 0 if few had.
        counts: What the run has done so far; the report reads it.
        not_found: Why, by job, until the list is read again.
        unpublished: Ids of jobs that were unpublished during the run.
        failed: Why, by job, a detail did not arrive.
    """

    settings: RunSettings
    services: Services
    state: SyncState
    now: int
    listing: Listing
    plan: Mapping[JobRef, Reason]
    outage_since: int
    counts: Counts
    not_found: dict[JobRef, str] = field(default_factory=dict)
    unpublished: list[str] = field(default_factory=list)
    failed: dict[JobRef, str] = field(default_factory=dict)

    @property
    def summaries(self) -> list[dict[str, Json]]:
        """The summaries of the published jobs, without withheld fields."""
        return [ref.summary for ref in self.listing.jobs.values() if ref.summary]

    def publications(self) -> Iterator[tuple[str, Publication]]:
        """Yield when each job was published, by id; nothing if the list is not complete."""
        if not self.listing.is_complete:
            logger.info("Not updating job_publications: the list of jobs is not complete.")
            return
        closed = self.state.closed
        for job_id, job in self.state.jobs.items():
            if publication := job.publication:
                yield job_id, publication
        yield from [(it, job.publication) for it, job in closed.items() if not job.is_written]
        for job_id, closed_job in closed.items():
            closed[job_id] = closed_job._replace(is_written=True)

    def details(self) -> Iterator[tuple[JobRef, dict[str, Json]]]:
        """Fetch the details of the plan, and yield each as it arrives.

        A detail is noted when the consumer asks for the next one, because it is written by then. A
        STATE message follows each time that enough details were noted since the last one.

        Raises:
            TapError: The run cannot continue.
            SystemExit: A signal stopped the run.
        """
        counts = self.counts.details
        counts.planned = len(self.plan)
        counts.unchanged = len(self.listing.jobs) - counts.planned
        reasons = Counter[str](self.plan.values())
        # At most 20 or so in a run, so that their size together is linear in the number of jobs.
        between_checkpoints = max(FEWEST_BETWEEN_CHECKPOINTS, len(self.listing.jobs) // 20)
        with self.services.report.fetching(counts, reasons):
            for ref, answer in fan_out(self._fetch, self.plan, workers=self.settings.workers):
                counts.done += 1
                if isinstance(answer, NotFoundError):
                    self.not_found[ref] = str(answer)
                elif isinstance(answer, RequestError):
                    self._note_failure(ref, str(answer))
                    if len(self.failed) % MANY_FAILING == 0:
                        with suppress(SystemExit):  # a signal; other responses may still arrive
                            self.services.api.page(1)  # ends the run if it cannot be read either
                else:
                    yield ref, answer
                    note_detail(self.state, ref, answer)
                    counts.fetched += 1
                    if counts.fetched % between_checkpoints == 0:
                        self.services.checkpoints.write(self.state)
            if self.not_found:
                self._classify_not_found()

    def _fetch(self, ref: JobRef) -> tuple[JobRef, dict[str, Json] | RequestError]:
        """Request a detail, unless the listing has brought it already."""
        if arrived := self.listing.details.pop(ref, None):
            return ref, arrived
        failing_since = self.state.jobs[ref.id].failing_since
        is_known_to_fail = failing_since > 0 and not is_new(failing_since, self.now)
        none_has_arrived = self.counts.details.fetched == 0
        none_arrives = none_has_arrived and len(self.failed) >= MANY_FAILING
        tries = FEW_TRIES if is_known_to_fail or none_arrives else MAX_TRIES
        try:
            return ref, self.services.api.detail(ref, tries)
        except RequestError as error:
            return ref, error

    def _note_failure(self, ref: JobRef, why: str) -> None:
        """Note that a detail has failed, at once, so that a run that is stopped remembers it."""
        self.failed[ref] = why
        self.counts.details.failed = len(self.failed)
        note_failure(self.state, ref.id, self.outage_since or int(self.services.clock()))

    def _classify_not_found(self) -> None:
        """Decide which of the details that were not found belong to jobs that are still published.

        An undecided job is pending: the next run finds it out.
        """
        reading = self._read_list_again()
        pending = []
        for ref, why in self.not_found.items():
            listed = reading.jobs.get(ref.id) if reading else None
            job = self.state.jobs[ref.id]
            if reading is None:
                self._note_failure(ref, f"{why}, and the list is not complete")
            elif listed is None and not reading.has_drifted:
                self.unpublished.append(ref.id)
            elif (
                listed is None
                or listed.public_id != ref.public_id
                # It was closed, as a webhook has just said, and the list's cache is behind.
                or (job.owed == "named" and not job.failing_since)
            ):
                pending.append(ref.id)
            else:
                self._note_failure(ref, f"{why}, although the job is listed")
        if pending:
            line = (
                "Not found: %d details. The next run checks whether these jobs are still published."
            )
            logger.info(line, len(pending))
        self.counts.details.unpublished = len(self.unpublished)
        note_pending(self.state, [*self.unpublished, *pending])

    def _read_list_again(self) -> ListReading | None:
        """Read the list once more; return None if it is not complete."""
        reader = ListReader(
            api=self.services.api,
            state=self.state,
            now=int(self.services.clock()),
            workers=self.settings.workers,
            report=self.services.report,
            sleep=self.services.sleep,
        )
        reading = reader.read()
        unlisted = {ref.id for ref in self.not_found} - reading.jobs.keys()
        is_complete = reading.is_accepted and not is_too_many(unlisted, self.listing.jobs)
        return reading if is_complete else None

    def note_record(self, stream: str) -> None:
        """Count a record that has been written."""
        self.counts.records[stream] += 1

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
        cycle, unpublished = self.state.cycle, self.unpublished
        return (
            cycle is not None
            and cycle.refresh == "all"
            and all(
                job_id in unpublished
                or (job.fetched_at >= cycle.started_at and not job.failing_since)
                for job_id, job in self.state.jobs.items()
            )
        )

    def end_stream(self, stream: str, undeclared: Collection[str]) -> None:
        """Note the fields that have no column, and keep the state for the SDK's next message."""
        seen = self.state.undeclared.setdefault(stream, [])
        new_fields = sorted({*undeclared}.difference(seen))
        seen += new_fields
        self.counts.new_fields[stream] = new_fields
        self.services.checkpoints.keep(self.state)

    def finish(self) -> str:
        """End the run, and log what has been missing for an hour.

        Returns:
            What is missing for less than that; empty if nothing is.
        """
        if self.state.cycle and self.listing.is_complete:
            self.state.cycle = self.state.cycle._replace(has_ended=True)
        gaps = [*self._gaps()]
        old = [(self.now - since, why) for since, why in gaps if not is_new(since, self.now)]
        new = {why: since for since, why in gaps if is_new(since, self.now)}
        self.services.report.still_missing(old)
        if not new:
            return ""
        has_drifted = self.listing.has_drifted and STILL_THERE in self.listing.missing.values()
        until = max(new.values()) + TOLERANCE
        return self.services.report.incomplete(new, until, has_drifted=has_drifted)

    def _gaps(self) -> Iterator[tuple[int, str]]:
        """Yield what the run could not see or load, and since when."""
        state, listing = self.state, self.listing
        untouched = "" if listing.is_complete else ", so job_publications was not updated"
        for since, why in listing.doubts:
            yield since, why + untouched
        not_asked = [state.jobs[it] for it, what in listing.missing.items() if what == NOT_ASKED]
        if not_asked and listing.is_complete:
            why = f"{len(not_asked):,} more known jobs are not in the list"
            yield max(job.missing_since for job in not_asked), why
        for job_id, finding in listing.missing.items():
            if finding.kind in {"still there", "failed"}:
                job, why = state.jobs[job_id], finding.reason or "its detail still loads"
                yield job.missing_since, f"{quoted(job.public_id)} is not in the list, but {why}"
        for ref, why in self.failed.items():
            since = state.jobs[ref.id].failing_since
            yield since, f"the detail of {quoted(ref.public_id)} is missing: {why}"
