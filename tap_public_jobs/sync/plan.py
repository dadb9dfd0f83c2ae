"""Which details a run fetches, why, and whether it resumes another run."""

from random import Random
from typing import Literal

from tap_public_jobs.sync.notes import Listing
from tap_public_jobs.sync.source import JobRef
from tap_public_jobs.sync.state import HOUR, Cycle, Refresh, SyncState

# Seconds. A nightly run that begins a second early still begins a new cycle.
RESUME_WITHIN = 20 * HOUR

Reason = Literal["new", "changed", "pending", "refreshed"]


def next_cycle(state: SyncState, refresh: Refresh, run_time: int, now: int) -> Cycle:
    """Begin a cycle, or resume the last one if it has something left to do.

    A run that refreshes the same details resumes it within 20 hours, because after that its first
    details are too old. Only a cycle that fetches all details begins a version of their records,
    because some targets show no row of a version that is never activated.

    Args:
        state: Before the listing is noted, because a job that this run is the first to miss reopens
            no cycle.
        refresh: Which details the run fetches again.
        run_time: Of this run.
        now: The clock's time, for evidence.
    """
    last = state.cycle
    is_open = last is not None and (not last.has_ended or state.has_new_gap(now))
    is_recent = last is not None and run_time - last.started_at < RESUME_WITHIN
    if last and is_open and is_recent and last.refresh == refresh:
        return last._replace(has_ended=False)
    version = last.version if last and refresh == "changed" else run_time
    return Cycle(run_time, refresh, version)


def plan_details(
    state: SyncState, listing: Listing, cycle: Cycle, max_age: float
) -> dict[JobRef, Reason]:
    """Decide which details a run has to fetch.

    Args:
        state: Has noted the listing.
        listing: The published jobs; details that it has already are written in any case.
        cycle: What its earlier runs have fetched is not fetched again.
        max_age: Seconds. Under `changed`, a detail is fetched again between half this age and this
            age, each at its own point, so that not all expire in one run.

    Returns:
        Why each is fetched, in the order of the list.
    """
    reasons: dict[JobRef, Reason] = {}
    for ref in listing.jobs.values():
        job = state.jobs[ref.id]
        age = state.run_time - job.fetched_at
        if not job.fetched_at:
            reasons[ref] = "new"
        elif job.is_due(state.run_time) or job.failing_since:
            reasons[ref] = "pending"
        elif state.has_changed(ref):
            reasons[ref] = "changed"
        elif job.fetched_at < cycle.started_at and (
            cycle.refresh == "all" or ref in listing.details or age >= _expiry(ref.id, max_age)
        ):
            reasons[ref] = "refreshed"
    return reasons


def _expiry(job_id: str, max_age: float) -> float:
    """Return at what age a detail expires, which is always the same for a job."""
    return max_age * Random(job_id).uniform(0.5, 1)  # noqa: S311  # spreads requests, no secret
