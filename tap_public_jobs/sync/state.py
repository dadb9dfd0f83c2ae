"""What one run remembers for the next.

There are two kinds of time, both in whole seconds since the epoch.
Each run has its own, `run_time`: the clock's time, or a second after that of the last run if the
clock went back. Listings, periods, versions and fetched details have it, so they are in order.
*Evidence* (`missing_since`, `failing_since`, `short_since`, `closed_at`, `awaited`) is by the
clock: since when something has been wrong, or when it was seen. After a run whose clock was days
ahead, the times of runs are a second apart, so an hour measured in them would never pass.

A *known* job is one that a list has shown. If a list lacks it, it is *unlisted*, and *missing*
until its own detail confirms that it is *gone*; then it is *closed*. An *awaited* job is one that a
webhook has named, and that no list has shown.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tap_public_jobs.limit.throttle import HeldSlots
from tap_public_jobs.sync.source import JobRef, hash_of

HOUR = 3_600
DAY = 24 * HOUR
# How long something may be wrong before runs only warn of it.
TOLERANCE = HOUR

# Seconds. A replica or a cache of the API may lag behind its webhooks by this much.
REPLICA_LAG = 600

# If this many details or more fail, they probably have one cause, such as an API that is down.
MANY_FAILING = 5

# Seconds. Details that have failed for longer are broken for good, and no part of an outage.
LONGEST_OUTAGE = 7 * DAY

# Whether a detail has to be fetched although its summary and its age do not ask for it: it was
# named by a webhook, or has to be looked at again in the next run, or once no replica lags.
Owed = Literal["no", "named", "again", "later"]

# Which details a run fetches again. The setting has `notified`, too: whether a run is needed.
Refresh = Literal["all", "changed"]


class Publication(NamedTuple):
    """When a job was published: one record of `job_publications`.

    Attributes:
        public_id: As last listed.
        opened_after: The last complete list before any list showed the job; None if there was none.
        first_seen: The first complete list that showed it.
        last_seen: The last complete list that showed it.
        unpublished_at: The run that found that the job is gone; None while it is published.
    """

    public_id: str
    opened_after: int | None
    first_seen: int
    last_seen: int
    unpublished_at: int | None = None


class KnownJob(NamedTuple):
    """What is known of a job that is published or missing.

    Attributes:
        public_id: As last listed.
        opened_after: The last complete list before any list showed the job; None if there was none.
        first_seen: The first complete list that showed it; None until there is one.
        last_seen: The last complete list that showed it; None until there is one.
        row_hash: Hash of the summary and the columns that the row of its detail was made from.
        detail_hash: Hash of the detail itself.
        fetched_at: When the detail was fetched; 0 if it never was.
        owed: Why and when the detail has to be fetched, whatever its summary and its age.
        missing_since: When a list first lacked the job; 0 while it is listed.
        failing_since: When its detail first failed; 0 once it arrives.
    """

    public_id: str
    opened_after: int | None
    first_seen: int | None = None
    last_seen: int | None = None
    row_hash: str = ""
    detail_hash: str = ""
    fetched_at: int = 0
    owed: Owed = "no"
    missing_since: int = 0
    failing_since: int = 0

    def is_due(self, now: int) -> bool:
        """Return whether the detail has to be fetched by now in any case."""
        return self.owed in {"named", "again"} or (
            self.owed == "later" and now - self.fetched_at >= REPLICA_LAG
        )

    @property
    def publication(self) -> Publication | None:
        """When it was published; None until a complete list has shown it."""
        if self.first_seen is None or self.last_seen is None:
            return None
        return Publication(self.public_id, self.opened_after, self.first_seen, self.last_seen)


class ClosedJob(NamedTuple):
    """What is known of a job that is not published any more.

    Attributes:
        publication: When it was.
        closed_at: When a run found that it is gone, by the clock.
        is_written: Whether its record has been written.
    """

    publication: Publication
    closed_at: int
    is_written: bool = False


class Cycle(NamedTuple):
    """One pass over the details: a run, and the runs that resume it.

    Attributes:
        started_at: The time of its first run.
        refresh: Which details it fetches again.
        version: The Singer version of its records.
        has_ended: Whether one of its runs has come to its end with a complete list.
    """

    started_at: int
    refresh: Refresh
    version: int
    has_ended: bool = False


class LastRead(NamedTuple):
    """How far a notification log has been read.

    Attributes:
        log_id: Identity of the log.
        position: What was read last.
    """

    log_id: str
    position: int


def is_new(since: int, now: int) -> bool:
    """Return whether something has been wrong for less than an hour; 0 means that nothing is.

    Runs only warn of what has been wrong for longer.
    """
    return since > 0 and now - since < TOLERANCE


@dataclass
class SyncState:
    """What is known of an organisation's jobs.

    Attributes:
        run_time: Of the last run that read the list.
        listed_at: The time of the last run with a complete list.
        short_since: As in the last listing.
        jobs: The published jobs, and those that are missing, by id.
        closed: The jobs that were closed within an hour, or whose records are not written yet. One
            that an incomplete list shows again stays here until a complete one does.
        awaited: When the notification log last named a publicId that no list has shown, for as long
            as a replica may lag. The next run looks for it.
        key_hash: Hash of the API key.
        forms: Per stream of the last run, a hash of what its records are made of.
        undeclared: Per stream, the fields without a column that runs have seen.
        cycle: The last one; None until a list has shown a job.
        last_read: How far the notification log has been read, if it ever was.
        held_slots: What the last run had used of the rate limit; None if that is unknown.
    """

    run_time: int = 0
    listed_at: int | None = None
    short_since: int = 0
    jobs: dict[str, KnownJob] = field(default_factory=dict)
    closed: dict[str, ClosedJob] = field(default_factory=dict)
    awaited: dict[str, int] = field(default_factory=dict)
    key_hash: str = ""
    forms: dict[str, str] = field(default_factory=dict)
    undeclared: dict[str, list[str]] = field(default_factory=dict)
    cycle: Cycle | None = None
    last_read: LastRead | None = None
    held_slots: HeldSlots | None = None

    def has_new_gap(self, now: int) -> bool:
        """Return whether the list, a job or its detail has been wrong for less than an hour."""
        return is_new(self.short_since, now) or any(
            is_new(job.missing_since, now) or is_new(job.failing_since, now)
            for job in self.jobs.values()
        )

    def may_be_counted(self, now: int) -> set[str]:
        """Return the ids of jobs that a `total` may count although the list does not show them.

        A cached total still counts jobs that were closed a short time ago.
        """
        lately = {job_id for job_id, job in self.closed.items() if is_new(job.closed_at, now)}
        return self.jobs.keys() | lately

    def outage_since(self, now: int) -> int:
        """Return since when many details have been failing; 0 if few do.

        While many fail, a further one is taken to have the same cause, and to be as old as the
        oldest of them, because each would make runs fail for another hour. A few jobs that are
        broken for good must not hide an outage.
        """
        since = [job.failing_since for job in self.jobs.values()]
        lately = [at for at in since if now - at < LONGEST_OUTAGE]
        return min(lately) if len(lately) >= MANY_FAILING else 0

    def has_changed(self, ref: JobRef) -> bool:
        """Return whether the row of a job's detail would be made from something else now."""
        return self.jobs[ref.id].row_hash != self.row_hash(ref)

    def row_hash(self, ref: JobRef) -> str:
        """Hash what a row of details is made from: the summary, and the columns of the stream."""
        return hash_of([ref.summary_hash, self.forms.get("job_details")])
