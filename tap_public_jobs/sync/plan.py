"""Which details a run fetches, and why."""

from random import Random
from typing import Literal

from tap_public_jobs.sync.source import JobRef
from tap_public_jobs.sync.state import Cycle, Listing, SyncState

Reason = Literal["new", "changed", "pending", "refreshed"]


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
