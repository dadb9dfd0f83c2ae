"""Whether there is work, which details a run fetches, and why."""

from collections.abc import Mapping
from random import Random
from typing import Literal

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.notifications import Notifications
from tap_public_jobs.sync.state import HOUR, LAGGING, Cycle, Job, LastRead, Listing, SyncState

# Which details a run fetches again.
Refresh = Literal["all", "changed"]

Reason = Literal["new", "changed", "pending", "refreshed"]

# Seconds. A nightly run that begins a second early still begins a new cycle.
RESUME_WITHIN = 20 * HOUR


def continues(changes: Notifications, last: LastRead) -> bool:
    """Return whether a log is the one that was read last, and not an earlier copy of it."""
    return changes.log_id == last.log_id and changes.position >= last.position


def is_covered(state: SyncState, changes: Notifications | None) -> bool:
    """Return whether a notification log has kept every notification since the last run."""
    return (
        changes is not None
        and state.last_read is not None
        and continues(changes, state.last_read)
        and changes.forgotten <= state.last_read.position
        and state.listed_at is not None
    )


def has_work(
    state: SyncState,
    changes: Notifications | None,
    now: int,
    forms: Mapping[str, str] | None = None,
) -> bool:
    """Return whether a run under `detail_refresh: notified` has anything to do.

    A gap that was less than an hour old in the last run is work. An older one waits for other work.

    Args:
        state: Of the last run.
        changes: What the notification log says, if there is one.
        now: Seconds since the epoch.
        forms: Per stream that the run writes, what its records are made of; None if they are those
            of the last run.
    """
    if changes is None or state.last_read is None or not is_covered(state, changes):
        return True
    forms = forms or state.forms
    return (
        changes.position > state.last_read.position
        or bool(state.awaited)
        or state.has_new_gap(min(now, state.run_time))  # at the time of the last run
        or (state.cycle is not None and not state.cycle.has_ended)
        or any(state.forms.get(stream) != form for stream, form in forms.items())
        or ("job_details" in forms and any(map(_is_owed, state.jobs.values())))
    )


def _is_owed(job: Job) -> bool:
    """Return whether a detail is to be fetched, and nothing is known to prevent it.

    What is known to fail waits for other work, and a job that no list shows is not fetched.
    """
    return job.detail_hash in {"", LAGGING} and not (job.failing_since or job.missing_since)


def is_open(state: SyncState, now: int) -> bool:
    """Return whether the last cycle has something left to do."""
    return state.cycle is not None and (not state.cycle.has_ended or state.has_new_gap(now))


def begin_cycle(state: SyncState, refresh: Refresh, *, was_open: bool) -> Cycle:
    """Begin a cycle, or resume the last one.

    A run that refreshes the same details resumes it within 20 hours, because after that its first
    details are too old. Only a cycle that fetches all details begins a version of their records,
    because some targets show no row of a version that is never activated.

    Args:
        state: Has noted the listing.
        refresh: Which details the run fetches again.
        was_open: Whether the last one had something left to do before that.
    """
    last, now = state.cycle, state.run_time
    if last and was_open and last.refresh == refresh and now - last.started_at < RESUME_WITHIN:
        return last._replace(has_ended=False)
    return Cycle(now, refresh, last.version if last and refresh == "changed" else now)


def plan_details(
    state: SyncState, listing: Listing, cycle: Cycle, max_age: float, covered_since: float
) -> dict[JobRef, Reason]:
    """Decide which details a run has to fetch.

    Args:
        state: Has noted the listing.
        listing: The published jobs; details that it has already are written in any case.
        cycle: What its earlier runs have fetched is not fetched again.
        max_age: Seconds. Under `changed`, a detail is fetched again between half this age and this
            age, each at its own point, so that not all expire in one run.
        covered_since: The first run since which webhooks have named what changes, so that what was
            fetched from then on does not expire; infinity without webhooks.

    Returns:
        Why each is fetched, in the order of the list; those that are known to fail come last.
    """
    reasons: dict[JobRef, Reason] = {}
    for ref in sorted(listing.jobs.values(), key=lambda ref: state.jobs[ref.id].failing_since > 0):
        job = state.jobs[ref.id]
        age = state.run_time - job.fetched_at
        if not job.fetched_at:
            reasons[ref] = "new"
        elif not job.detail_hash:
            reasons[ref] = "pending"
        elif job.detail_hash != state.row_hash(ref):
            reasons[ref] = "changed"
        elif job.fetched_at < cycle.started_at and (
            cycle.refresh == "all"
            or ref in listing.details
            or (age >= _expiry(ref.id, max_age) and job.fetched_at < covered_since)
        ):
            reasons[ref] = "refreshed"
    return reasons


def _expiry(job_id: str, max_age: float) -> float:
    """Return at what age a detail expires, which is always the same for a job."""
    return max_age * Random(job_id).uniform(0.5, 1)  # noqa: S311  # spreads requests, no secret
