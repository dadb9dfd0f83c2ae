"""Is there work? One answer, for a run and for the command that asks before it."""

from collections.abc import Mapping

from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.state import KnownJob, LastRead, SyncState


def continues(notifications: Notifications, last: LastRead) -> bool:
    """Return whether a log is the one that was read last, and not an earlier copy of it."""
    return notifications.log_id == last.log_id and notifications.position >= last.position


def is_covered(state: SyncState, notifications: Notifications | None) -> bool:
    """Return whether a notification log has kept every notification since the last run."""
    return (
        notifications is not None
        and state.last_read is not None
        and continues(notifications, state.last_read)
        and notifications.forgotten <= state.last_read.position
        and state.listed_at is not None
    )


def has_work(
    state: SyncState,
    notifications: Notifications | None,
    now: int,
    forms: Mapping[str, str] | None = None,
) -> bool:
    """Return whether a run under `detail_refresh: notified` has anything to do.

    A gap that was less than an hour old in the last run is work. An older one waits for other work.

    Args:
        state: Of the last run.
        notifications: What the notification log says, if there is one.
        now: Seconds since the epoch.
        forms: Per stream that the run writes, what its records are made of; by default, as in the
            last run.
    """
    if notifications is None or state.last_read is None or not is_covered(state, notifications):
        return True
    forms = state.forms if forms is None else forms
    return (
        notifications.position > state.last_read.position
        or bool(state.awaited)
        or state.has_new_gap(min(now, state.run_time))  # at the time of the last run
        or (state.cycle is not None and not state.cycle.has_ended)
        or any(state.forms.get(stream) != form for stream, form in forms.items())
        or ("job_details" in forms and any(_is_owed(it, now) for it in state.jobs.values()))
    )


def _is_owed(job: KnownJob, now: int) -> bool:
    """Return whether a detail is to be fetched, and nothing is known to prevent it.

    What is known to fail waits for other work, and a job that no list shows is not fetched.
    """
    is_owed = job.is_due(now) or not job.fetched_at
    return is_owed and not (job.failing_since or job.missing_since)
