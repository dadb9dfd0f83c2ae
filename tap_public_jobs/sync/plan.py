"""Whether there is work, which details a run fetches, and why."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from tap_public_jobs.api.models import hash_of
from tap_public_jobs.sync.gaps import HOUR
from tap_public_jobs.sync.state import Cycle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tap_public_jobs.api.models import JobRef
    from tap_public_jobs.changelog import Changes
    from tap_public_jobs.sync.state import Entry, Form, LastRead, SyncState

# Which details a run fetches again; `none` if the stream is not selected.
Refresh = Literal["all", "changed", "none"]

Reason = Literal["new", "changed", "pending", "refreshed"]

# Seconds.
DAY = 86_400
# A nightly run that begins a second early still begins a new cycle.
RESUME_WITHIN = 20 * HOUR

# Records.
FEWEST_BETWEEN_CHECKPOINTS = 50


def continues(end: Changes, last: LastRead) -> bool:
    """Whether a change log is the one that was read last; False for an earlier copy of it."""
    return end.log_id == last.log_id and end.position >= last.position


def is_covered(state: SyncState, end: Changes | None) -> bool:
    """Whether a change log names every job that has changed since the last run."""
    return (
        end is not None
        and state.last_read is not None
        and continues(end, state.last_read)
        and end.forgotten <= state.last_read.position
        and state.listed_at is not None
    )


def has_work(
    state: SyncState, end: Changes | None, now: float, forms: Mapping[str, Form] | None = None
) -> bool:
    """Whether a run under `detail_refresh: notified` has anything to do.

    A new gap is work; a known one is tried again when there is other work.

    Args:
        state: Of the last run.
        end: Of the change log, if there is one.
        now: Seconds since the epoch.
        forms: Per stream that the run writes, what its records are made of; those of the last run
            by default.
    """
    if end is None or state.last_read is None or not is_covered(state, end):
        return True
    if end.position > state.last_read.position or state.awaited:
        return True
    if state.cycle is None or state.cycle.is_open(now):
        return True
    forms = state.forms if forms is None else forms
    if not state.forms or any(state.forms.get(stream) != form for stream, form in forms.items()):
        return True
    with_gap = {job_id for _, job_id in state.gaps}
    return "details" in {form.shows for form in forms.values()} and any(
        not entry.detail_hash and key not in with_gap for key, entry in state.jobs.items()
    )


class Plan(NamedTuple):
    """What a run fetches.

    Attributes:
        reasons: Why, by job, in the order of the list; jobs whose details are a gap come last.
        published: How many jobs are published.
        fetched_before: How many details the run had fetched before it was interrupted.
    """

    reasons: dict[JobRef, Reason]
    published: int
    fetched_before: int = 0

    @property
    def unchanged(self) -> int:
        """How many details need not be fetched."""
        return self.published - len(self.reasons) - self.fetched_before

    @property
    def checkpoint_every(self) -> int:
        """Records between two checkpoints, so that the size of all states is linear in the jobs."""
        return max(FEWEST_BETWEEN_CHECKPOINTS, self.published // 20)

    def __str__(self) -> str:
        """Return the numbers behind the plan."""
        counts = Counter(self.reasons.values())
        parts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()))
        numbers = f"{len(self.reasons):,} of {self.published:,} details"
        return f"{numbers} ({parts})" if parts else numbers


def begin_cycle(state: SyncState, refresh: Refresh, now: float) -> bool:
    """Begin a cycle, or resume the last one if it is open.

    It is resumed by a run that refreshes the same details, within 20 hours. Later, its first
    details are too old.

    Args:
        state: The cycle is added to it.
        refresh: Which details the run fetches again.
        now: Seconds since the epoch.

    Returns:
        Whether a cycle is resumed.
    """
    # A time in the future shows that the clock was set back since: treat it as very old.
    for key, entry in state.jobs.items():
        if entry.fetched_at > now + DAY:
            state.jobs[key] = entry._replace(fetched_at=1)
    cycle = state.cycle
    is_recent = cycle is not None and abs(now - cycle.started_at) < RESUME_WITHIN
    if cycle and is_recent and cycle.refresh == refresh and cycle.is_open(now):
        state.cycle = cycle._replace(open_until=None)
        return True
    latest = max((entry.fetched_at for entry in state.jobs.values()), default=0)
    state.cycle = Cycle(max(int(now), latest + 1), refresh)
    return False


def plan_details(
    state: SyncState,
    jobs: Iterable[JobRef],
    now: float,
    max_age: float,
    arrived: Collection[str] = (),
) -> Plan:
    """Decide which details a run has to fetch.

    Args:
        state: Has the listing and the cycle.
        jobs: The published jobs.
        now: Seconds since the epoch.
        max_age: Seconds. Under `changed`, a detail is fetched again between half this age and this
            age, each at its own point, so that not all expire in one run.
        arrived: Ids of jobs whose details have arrived already: they are paid for, so written.
    """
    cycle = state.cycle or Cycle(int(now), "all")
    listed = sorted(jobs, key=lambda job: ("detail", job.id) in state.gaps)
    reasons = {
        job: reason
        for job in listed
        if (
            reason := _reason(job, state.jobs[job.id], cycle, now, max_age)
            or ("refreshed" if job.id in arrived else None)
        )
    }
    fetched_before = sum(
        job not in reasons and state.jobs[job.id].fetched_at >= cycle.started_at for job in listed
    )
    return Plan(reasons, len(listed), fetched_before)


def _reason(job: JobRef, entry: Entry, cycle: Cycle, now: float, max_age: float) -> Reason | None:
    if not entry.fetched_at:
        return "new"
    if not entry.detail_hash:
        return "pending"
    if entry.detail_hash != job.summary_hash:
        return "changed"
    if entry.fetched_at >= cycle.started_at:
        return None
    is_expired = not max_age or now - entry.fetched_at >= max_age * _share(job.id)
    return "refreshed" if cycle.refresh == "all" or is_expired else None


def _share(job_id: str) -> float:
    """Return a number from 0.5 to 1 that is always the same for a job."""
    digest = urlsafe_b64decode(hash_of(job_id))
    return 0.5 + int.from_bytes(digest) / (1 << 8 * len(digest)) / 2
