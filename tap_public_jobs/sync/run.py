"""One run: the only owner of the state, the plan, the gaps and the outcomes of a run."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tap_public_jobs.errors import NotFoundError, RequestError
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.gaps import Gaps, is_mass
from tap_public_jobs.sync.listing import ListReader
from tap_public_jobs.sync.outcomes import Outcomes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tap_public_jobs.api.models import JobRef
    from tap_public_jobs.sync.listing import Listing
    from tap_public_jobs.sync.plan import Plan
    from tap_public_jobs.sync.services import Services
    from tap_public_jobs.sync.state import Period, Shows, SyncState

logger = logging.getLogger(__name__)

Json = Any


@dataclass
class Run:
    """One run, which the streams share; `running` makes it.

    Attributes:
        services: What the run works with.
        state: What is known of the jobs; this run adds to it.
        gaps: What this run and earlier ones could not see or load.
        listing: The published jobs.
        plan: The details to fetch.
        arrived: Details that have arrived already, by id of the job.
        outcomes: Of the details so far.
    """

    services: Services
    state: SyncState
    gaps: Gaps
    listing: Listing
    plan: Plan
    arrived: dict[str, dict[str, Json]]
    outcomes: Outcomes = field(default_factory=Outcomes)

    @property
    def summaries(self) -> list[dict[str, Json]]:
        """The summaries of the published jobs, as the API sent them."""
        return [job.summary for job in self.listing.jobs.values() if job.summary]

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
            SystemExit: A signal stopped the run.
        """
        with self.services.report.fetching(self.plan, self.outcomes):
            # First those that have arrived: a run that is killed has not paid for them in vain.
            yield from self._fetch(
                sorted(self.plan.reasons, key=lambda it: it.id not in self.arrived)
            )
            if self.outcomes.not_found:
                listed = self._read_list_again()
                yield from self._fetch(self.outcomes.settle(listed))
                self.outcomes.settle(listed)
        for job, reason in self.outcomes.failed.items():
            why = f"the detail of {job.public_id!r} is missing: {reason}"
            self.gaps.meet(("detail", job.id), why)
        # The next run looks for unpublished jobs in the list.
        again = (*self.outcomes.failed, *self.outcomes.unpublished)
        self.state.mark_pending([job.id for job in again])

    def _read_list_again(self) -> Mapping[str, JobRef] | None:
        """Return the jobs that are listed now; None if the list is not complete."""
        missing = {*self.listing.missing}
        not_found = {job.id for job in self.outcomes.not_found}
        reader = ListReader(self.services, self.state, self.gaps)
        sweep = reader.sweep(missing | not_found)
        unlisted = not_found - reader.jobs.keys()
        lacks = sweep.shortfall(len(reader.jobs.keys() | missing | not_found))
        is_complete = lacks == 0 or self.gaps.is_known("total", size=lacks or 0)
        return reader.jobs if is_complete and not is_mass(unlisted, self.listing.jobs) else None

    def _fetch(self, jobs: Iterable[JobRef]) -> Iterator[tuple[JobRef, dict[str, Json]]]:
        def ask(job: JobRef) -> tuple[JobRef, dict[str, Json] | RequestError]:
            try:
                return job, self.arrived.pop(job.id, None) or self.services.api.detail(job)
            except RequestError as error:
                return job, error

        for job, answer in fan_out(ask, jobs, workers=self.services.workers):
            if isinstance(answer, NotFoundError):
                self.outcomes.not_found[job] = str(answer)
            elif isinstance(answer, RequestError):
                if self.outcomes.note_failure(job, str(answer)):
                    with suppress(SystemExit):  # a signal; what is on its way may still arrive
                        self.services.api.page(1)  # ends the run if the list cannot be read either
            else:
                yield job, answer
                self.state.note_detail(job, answer, self.services.clock())
                self.gaps.end("detail", [job.id])
                self.outcomes.note_written()

    def checkpoint(self) -> None:
        """Write a STATE message if enough details were written since the last one."""
        written = self.outcomes.written
        if written > 0 and written % self.plan.checkpoint_every == 0:
            self.services.checkpoint(self.state)

    def version_of(self, stream: str) -> int | None:
        """Return the version of a stream's records; None if they are never activated."""
        return self.state.versions.get(stream)

    def has_everything(self, shows: Shows) -> bool:
        """Whether every record was written, so that a target may remove all others."""
        if shows == "publications" or not self.listing.is_complete or self.listing.missing:
            return False
        unpublished = {job.id for job in self.outcomes.unpublished}
        return shows == "summaries" or self.state.has_all_details(without=unpublished)

    def end_stream(self, stream: str, undeclared: Collection[str]) -> None:
        """Note the undeclared fields of a stream, for the STATE message that follows it."""
        new_fields = self.state.note_fields(stream, undeclared)
        self.services.report.new_fields[stream] = new_fields
        self.services.keep(self.state)

    def finish(self) -> list[str]:
        """End the run: log the known gaps that it met.

        Returns:
            The new gaps that it met, one sentence each.
        """
        new, known = self.gaps.sentences()
        if known:
            logger.warning("Still missing: %s. Everything else was synced.", in_short(known))
        if self.state.cycle and self.listing.is_complete:
            open_until = self.gaps.open_until()
            self.state.cycle = self.state.cycle._replace(open_until=open_until)
        return new


def in_short(sentences: Collection[str], most: int = 10) -> str:
    """Join sentences, with the number of those beyond the first ones."""
    more = f"; and {len(sentences) - most:,} more" if len(sentences) > most else ""
    return "; ".join([*sentences][:most]) + more
