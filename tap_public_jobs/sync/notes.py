"""What a run finds out, and what its state notes of it."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.source import JobRef, Json, hash_of
from tap_public_jobs.sync.state import (
    REPLICA_LAG,
    ClosedJob,
    KnownJob,
    LastRead,
    Owed,
    SyncState,
    is_new,
)


class Finding(NamedTuple):
    """What a run knows of a job that a list lacks.

    Attributes:
        kind: What its own detail answered, if it was requested.
        reason: Why the request failed.
    """

    kind: Literal["gone", "still there", "failed", "not asked"]
    reason: str = ""


GONE = Finding("gone")
STILL_THERE = Finding("still there")
NOT_ASKED = Finding("not asked")


class Listing(NamedTuple):
    """What a run found out about the published jobs.

    Attributes:
        jobs: The listed jobs by id, in the order in which they were first seen.
        details: The details of listed jobs that it has already fetched.
        gone: Ids of known jobs that are not published any more; none unless the list is complete.
        missing: By id, what is known of a job that is not listed, and not confirmed as unpublished.
        short_since: When the list first fell short by more than known jobs explain; 0 once it shows
            its whole total by itself.
        doubts: Since when the list has been in doubt, and why: it lacks jobs that no run has seen,
            or too many that are known.
        is_complete: Whether no doubt is new. Then all published jobs are in `jobs` or `missing`.
        has_drifted: Whether the list changed while it was last read.
    """

    jobs: dict[str, JobRef]
    details: dict[JobRef, Json]
    gone: list[str]
    missing: dict[str, Finding]
    short_since: int
    doubts: list[tuple[int, str]]
    is_complete: bool
    has_drifted: bool


def correct_evidence(state: SyncState, now: int) -> None:
    """Move evidence of the future to now, and forget closings that are written and an hour old.

    A clock that was ahead in one run leaves such evidence behind. It would stay new until the clock
    gets there.
    """
    state.short_since = min(state.short_since, now)
    state.awaited = {public_id: min(at, now) for public_id, at in state.awaited.items()}
    for job_id, job in state.jobs.items():
        missing, failing = min(job.missing_since, now), min(job.failing_since, now)
        state.jobs[job_id] = job._replace(missing_since=missing, failing_since=failing)
    for job_id, closed in [*state.closed.items()]:
        state.closed[job_id] = closed._replace(closed_at=min(closed.closed_at, now))
        if closed.is_written and not is_new(state.closed[job_id].closed_at, now):
            del state.closed[job_id]


def note_notifications(state: SyncState, notifications: Notifications, now: int) -> None:
    """Note which details and jobs a notification log names; the next run reads on after it."""
    named = {*notifications.public_ids}
    for job_id, job in state.jobs.items():
        if job.public_id in named:  # its detail is owed, even if its summary looks unchanged
            state.jobs[job_id] = job._replace(owed="named")
    state.awaited |= dict.fromkeys(named, now)
    state.last_read = LastRead(notifications.log_id, notifications.position)


def note_listing(
    state: SyncState, listing: Listing, *, forms: Mapping[str, str], run_time: int, now: int
) -> int:
    """Note which jobs are published, and which of them the notification log has named.

    A complete list alone begins and ends the period of a job. So openings and closings have the
    same times, also if all jobs are replaced at once and no list is complete for an hour.

    Args:
        state: Has noted the notifications.
        listing: What the run found out.
        forms: Per stream that the run writes, what its records are made of.
        run_time: Of this run.
        now: The clock's time, for evidence.

    Returns:
        How many jobs were opened since the last complete list; 0 if there was none.
    """
    known = {job.public_id for job in state.jobs.values()}
    _close(state, listing.gone, run_time, now)
    outage_since = state.outage_since(now)
    for job_id, finding in listing.missing.items():
        job = state.jobs[job_id]
        since = outage_since if finding.kind == "failed" else 0
        state.jobs[job_id] = job._replace(missing_since=job.missing_since or since or now)
    opened = 0
    for job_id, ref in listing.jobs.items():
        job = state.jobs.get(job_id) or KnownJob(ref.public_id, state.listed_at)
        job = job._replace(public_id=ref.public_id, missing_since=0)
        if listing.is_complete:
            opened += job.first_seen is None
            job = job._replace(first_seen=job.first_seen or run_time, last_seen=run_time)
            state.closed.pop(job_id, None)  # published again, in the same row
        if ref.public_id in state.awaited:
            job = job._replace(owed="named")
        state.jobs[job_id] = job
    known |= {ref.public_id for ref in listing.jobs.values()}
    # Once no replica lags, what no list has shown is a draft, or any list will show it.
    state.awaited = {
        public_id: at
        for public_id, at in state.awaited.items()
        if public_id not in known and now - at < REPLICA_LAG
    }
    state.short_since = listing.short_since
    state.forms = {**forms}
    state.run_time = run_time
    if state.listed_at is None:
        opened = 0
    if listing.is_complete:
        state.listed_at = run_time
    return opened


def _close(state: SyncState, job_ids: Iterable[str], run_time: int, now: int) -> None:
    for job_id in job_ids:
        publication = state.jobs[job_id].publication
        if publication:  # else no complete list has ever shown the job
            ended = publication._replace(unpublished_at=run_time)
            state.closed[job_id] = ClosedJob(ended, closed_at=now)
        del state.jobs[job_id]  # last: a signal between the two must not lose the job


def note_failure(state: SyncState, job_id: str, since: int) -> None:
    """Note that a job's detail failed; it is fetched again until it arrives."""
    job = state.jobs[job_id]
    state.jobs[job_id] = job._replace(failing_since=job.failing_since or since)


def note_pending(state: SyncState, job_ids: Iterable[str]) -> None:
    """Have the next run fetch these details, or find out that their jobs are gone."""
    for job_id in job_ids:
        state.jobs[job_id] = state.jobs[job_id]._replace(owed="again", failing_since=0)


def note_detail(state: SyncState, ref: JobRef, detail: Mapping[str, Json]) -> None:
    """Note that the record of a job's detail has been written.

    An answer may come from a replica or a cache that is behind. The next run looks at it again if
    it shows nothing of what a webhook was about, or if it contradicts a summary that is new or has
    changed. If that is still so, a run looks once more after ten minutes, and then any answer
    counts.
    """
    job, row_hash, detail_hash = state.jobs[ref.id], state.row_hash(ref), hash_of(detail)
    is_named, is_same = job.owed == "named", detail_hash == job.detail_hash
    # Of a first load, each detail would be fetched twice if it never equals its summary.
    has_news = job.fetched_at > 0 or job.opened_after is not None
    is_changed = job.owed == "no" and has_news and job.row_hash != row_hash
    contradicts = any(detail.get(name, it) != it for name, it in ref.compared.items())
    owed: Owed = "no"
    if (is_named and is_same) or ((is_named or is_changed) and contradicts):
        owed = "again"
    elif (
        (is_same or contradicts)
        and job.owed != "no"
        and state.run_time - job.fetched_at < REPLICA_LAG
    ):
        owed = "later"
    state.jobs[ref.id] = job._replace(
        row_hash=row_hash,
        detail_hash=detail_hash,
        fetched_at=state.run_time,
        owed=owed,
        failing_since=0,
    )
