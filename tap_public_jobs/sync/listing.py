"""The published jobs as one run sees them, read from a list that may drift between two pages."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.errors import NotFoundError, PublicJobsError, RequestError
from tap_public_jobs.sync.fanout import fan_out
from tap_public_jobs.sync.pages import read_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from tap_public_jobs.sync.pages import Api, Sweep

logger = logging.getLogger(__name__)

MAX_SWEEPS = 8

# Known jobs that may disappear from the list although they are published. Beyond that, the list is
# not believed.
MOST_MISSING = 20

Json = Any


class Known(NamedTuple):
    """What earlier runs know, which decides what a list is good for.

    Attributes:
        jobs: The publicIds of the published jobs, by id.
        missing: Ids of those that the last list did not show.
        shortfall: Of the last list.
        failed: Ids of published jobs whose details failed.
        is_new_key: Whether the API key differs from that of the last run.
    """

    jobs: Mapping[str, str] = {}
    missing: Collection[str] = ()
    shortfall: int | None = 0
    failed: Collection[str] = ()
    is_new_key: bool = False


class Listing(NamedTuple):
    """The published jobs, as far as the list shows them.

    Attributes:
        jobs: By id, in the order in which they were first seen.
        summaries: Of the same jobs, as the API sent them.
        gone: Ids of known jobs that the list does not show, and whose details confirm it.
        missing: Why, by id, it is unknown whether a known job that the list does not show is
            published.
        shortfall: How many jobs fewer than its total the list shows; None if it has no total.
        problems: In which ways the list falls short, one sentence each.
        is_complete: Whether a job that is neither in `jobs` nor in `missing` is not published: the
            list does not fall short, or no more than the last one did.
    """

    jobs: dict[str, JobRef]
    summaries: list[dict[str, Json]]
    gone: list[str]
    missing: dict[str, str]
    shortfall: int | None
    problems: list[str]
    is_complete: bool


@dataclass
class ListReader:
    """Reads the list in sweeps, from the first page to the last, until it is complete.

    The list can change between two pages, and then a sweep misses jobs.
    So sweeps are combined until they have seen at least as many jobs as the last one counts.
    Even then a swap of two jobs can hide a third.
    So a job counts as unpublished only if its own detail is gone too.

    Attributes:
        api: Answers requests.
        known: What earlier runs know.
        workers: Requests at once.
        sleep: Waits for a number of seconds.
    """

    api: Api
    known: Known
    workers: int
    sleep: Callable[[float], object]
    _jobs: dict[str, JobRef] = field(default_factory=dict)
    _summaries: dict[str, dict[str, Json]] = field(default_factory=dict)

    def read(self) -> Listing:
        """Read the list, and confirm that the jobs that it no longer shows are gone.

        Raises:
            PublicJobsError: A page cannot be read; or the key is new, and no known job is listed.
        """
        sweep = self._sweeps()
        self._refuse_other_organisation()
        known = self.known
        shortfall = self._shortfall(sweep)
        unlisted = [key for key in known.jobs if key not in self._jobs]
        # Missing jobs may be all that the list falls short by.
        may_explain = shortfall is not None and shortfall <= min(len(unlisted), MOST_MISSING)
        unconfirmed: dict[str, str] = {}
        if may_explain or self._is_known(shortfall, len(unlisted)):
            unconfirmed = self._unconfirmed(unlisted)
        missing = {key: why for key, why in unconfirmed.items() if key not in self._jobs}
        gone = [key for key in unlisted if key not in unconfirmed and key not in self._jobs]
        shortfall = self._shortfall(sweep)  # the list may have been read again
        problems = self._problems(sweep, shortfall, len(missing))
        is_complete = not problems or self._is_known(shortfall, len(gone))
        if len(missing.keys() - known.missing) > MOST_MISSING:
            is_complete = False
            lacks = f"{len(unlisted):,} of {len(known.jobs):,} known jobs"
            problems = [f"the list lacks {lacks}, and many of them still have a detail"]
        return Listing(
            self._jobs,
            list(self._summaries.values()),
            gone if is_complete else [],
            missing if is_complete else {},
            shortfall,
            problems,
            is_complete,
        )

    def _sweeps(self) -> Sweep:
        """Read the list until another sweep would show nothing new; return the last sweep."""
        for number in count(1):
            sweep = self._sweep()
            short = self._shortfall(sweep)
            unlisted = [key for key in self.known.jobs if key not in self._jobs]
            missing = len({*unlisted} & {*self.known.missing})
            if number == MAX_SWEEPS or short is None or self._is_known(short, len(unlisted)):
                break
            if short <= max(len(sweep.unusable), missing):
                break
            logger.info("Reading the list again: %s.", self._problems(sweep, short)[0])
            self.sleep(number)  # a cached total lags for some seconds
        return sweep

    def _is_known(self, shortfall: int | None, gone: int) -> bool:
        """Whether the list falls short no more than the last one did.

        What the total counts is not documented (API page, rule 5 of the list): it may go on
        counting the jobs that are gone.
        """
        known = self.known.shortfall
        if shortfall is None or not known:
            return shortfall in {0, known}
        return shortfall <= known + gone

    def _shortfall(self, sweep: Sweep) -> int | None:
        if sweep.total is None:
            return None
        return max(sweep.total - len(self._jobs), len(sweep.unusable), 0)

    def _problems(self, sweep: Sweep, shortfall: int | None, missing: int = 0) -> list[str]:
        if sweep.unusable:
            return [
                f"a job without a usable id or publicId was left out: {place} of the list"
                for place in sweep.unusable
            ]
        if shortfall is None:
            return ["the list does not say how many jobs there are"]
        if shortfall <= missing:
            return []
        shown = len(self._jobs)
        return [f"the list shows {shown:,} of {shown + shortfall:,} jobs"]

    def _refuse_other_organisation(self) -> None:
        known = self.known.jobs
        if self.known.is_new_key and known and not known.keys() & self._jobs.keys():
            msg = (
                f"api_key has changed, and the API lists none of the {len(known):,} jobs "
                "that were synced before: the key seems to belong to another organisation. Set "
                "api_key back, or give each organisation its own state and schema; to replace "
                "the contents of the tables, run once with --full-refresh."
            )
            raise PublicJobsError(msg)

    def _unconfirmed(self, unlisted: Iterable[str]) -> dict[str, str]:
        """Request the details of known jobs that are not listed.

        If one of them still has a detail, the list may have drifted: it is read once more.

        Returns:
            Why, by id, it is unknown whether a job is published.
        """
        # A publicId that is listed for another job no longer belongs to this one.
        taken = {job.public_id for job in self._jobs.values()}
        asked = [
            JobRef(key, self.known.jobs[key])
            for key in unlisted
            if self.known.jobs[key] not in taken
        ]
        new = [job for job in asked if job.id not in self.known.missing]
        found: dict[str, str] = {}
        while new and (most := MOST_MISSING + 1 - len(found)):
            found |= self._ask(new[:most])
            new = new[most:]
        if len(found) > MOST_MISSING:
            return found
        if found:
            logger.info("Reading the list again: it lacks jobs that still have a detail.")
            self._sweep()
        before = [job for job in asked if job.id in self.known.missing]
        return found | self._ask(job for job in before if job.id not in self._jobs)

    def _ask(self, jobs: Iterable[JobRef]) -> dict[str, str]:
        outcomes = fan_out(self._why_not_gone, jobs, workers=self.workers)
        return {job.id: why for job, why in outcomes if why}

    def _why_not_gone(self, job: JobRef) -> tuple[JobRef, str]:
        try:
            self.api.detail(job)
        except NotFoundError:
            return job, ""
        except RequestError as error:
            return job, str(error)
        return job, "its detail exists"

    def _sweep(self) -> Sweep:
        sweep = read_pages(self.api, self.workers)
        self._jobs |= sweep.jobs  # a publicId may have changed since the last sweep
        self._summaries |= sweep.summaries
        return sweep
