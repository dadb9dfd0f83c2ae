"""What one run remembers for the next.

There are two kinds of time, both in whole seconds since the epoch.
Each run has its own, `run_time`: the clock's time, or a second after that of the last run if the
clock went back. Listings, periods, versions and fetched details have it, so they are in order.
*Evidence* (`missing_since`, `failing_since`, `short_since`, `closed_at`, `awaited`) says since when
something has been wrong, or is so, by the clock. If it had times of runs, an hour of it would never
pass after a run whose clock was days ahead, because runs are then a second apart.

A *known* job is one that a list has shown. If a list lacks it, it is *unlisted*, and *missing*
until its own detail confirms that it is *gone*; then it is *closed*. An *awaited* job is one that a
webhook has named, and that no list has shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tap_public_jobs.limit.throttle import HeldSlots
from tap_public_jobs.sync.notifications import Notifications
from tap_public_jobs.sync.source import JobRef, Json, hash_of

HOUR = 3_600
DAY = 24 * HOUR
# How long something may be wrong before runs only warn of it.
TOLERANCE = HOUR

# Seconds. A replica or a cache of the API may lag behind its webhooks by this much.
REPLICA_LAG = 600

# Closings to remember while no stream writes publications.
MOST_CLOSED = 1_000

# publicIds to remember that a notification log named, and that no list has shown.
MOST_AWAITED = 20

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
        owed: Whether the detail has to be fetched in any case.
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


class Verdict(NamedTuple):
    """What a run knows of a job that a list lacks.

    Attributes:
        kind: What its own detail answered, if it was requested.
        reason: Why the request failed.
    """

    kind: Literal["gone", "still there", "failed", "not asked"]
    reason: str = ""


GONE = Verdict("gone")
STILL_THERE = Verdict("still there")
NOT_ASKED = Verdict("not asked")


class Listing(NamedTuple):
    """What a run found out about the published jobs, for its state to note.

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
    """

    jobs: dict[str, JobRef]
    details: dict[JobRef, Json]
    gone: list[str]
    missing: dict[str, Verdict]
    short_since: int
    doubts: list[tuple[int, str]]
    is_complete: bool


def is_new(since: int, now: int) -> bool:
    """Return whether something has been wrong for less than an hour; 0 means that nothing is.

    What has been wrong for longer is *known*.
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

    def update_evidence(self, now: int) -> None:
        """Correct evidence of the future, and forget closings that are written and an hour old.

        A clock that was ahead in one run leaves such evidence behind. It would stay new until the
        clock gets there.
        """
        self.short_since = min(self.short_since, now)
        self.awaited = {public_id: min(at, now) for public_id, at in self.awaited.items()}
        for job_id, job in self.jobs.items():
            missing, failing = min(job.missing_since, now), min(job.failing_since, now)
            self.jobs[job_id] = job._replace(missing_since=missing, failing_since=failing)
        for job_id, closed in [*self.closed.items()]:
            self.closed[job_id] = closed._replace(closed_at=min(closed.closed_at, now))
            if closed.is_written and not is_new(self.closed[job_id].closed_at, now):
                del self.closed[job_id]

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

    def note_listing(
        self,
        listing: Listing,
        *,
        notifications: Notifications | None,
        forms: Mapping[str, str],
        run_time: int,
        now: int,
    ) -> int:
        """Note which jobs are published, and which details the notification log names.

        A complete list alone begins and ends the period of a job. So openings and closings have the
        same times, also if all jobs are replaced at once and no list is complete for an hour.

        Args:
            listing: What the run found out.
            notifications: What the log says; the next run reads on after it.
            forms: Per stream that the run writes, what its records are made of.
            run_time: Of this run.
            now: The clock's time, for evidence.

        Returns:
            How many jobs were opened since the last complete list; 0 if there was none.
        """
        if notifications:
            self._note_notifications(notifications, now)
        known = {job.public_id for job in self.jobs.values()}
        self._close(listing.gone, run_time, now)
        outage_since = self.outage_since(now)
        for job_id, verdict in listing.missing.items():
            job = self.jobs[job_id]
            since = outage_since if verdict.kind == "failed" else 0
            self.jobs[job_id] = job._replace(missing_since=job.missing_since or since or now)
        opened = 0
        for job_id, ref in listing.jobs.items():
            job = self.jobs.get(job_id) or KnownJob(ref.public_id, self.listed_at)
            job = job._replace(public_id=ref.public_id, missing_since=0)
            if listing.is_complete:
                opened += job.first_seen is None
                job = job._replace(first_seen=job.first_seen or run_time, last_seen=run_time)
                self.closed.pop(job_id, None)  # published again, in the same row
            if ref.public_id in self.awaited:
                job = job._replace(owed="named")
            self.jobs[job_id] = job
        known |= {public_id for ref in listing.jobs.values() for public_id in ref.public_ids}
        awaited = [it for it in self.awaited.items() if it[0] not in known]
        # Once no replica lags, it is a draft, or any list will show it.
        recent = [it for it in awaited if now - it[1] < REPLICA_LAG]
        self.awaited = dict(recent[-MOST_AWAITED:])
        self.short_since = listing.short_since
        self.forms = {**forms}
        if "job_publications" not in forms:  # no stream writes closings
            self.closed = dict([*self.closed.items()][-MOST_CLOSED:])
        self.run_time = run_time
        if self.listed_at is None:
            opened = 0
        if listing.is_complete:
            self.listed_at = run_time
        return opened

    def _close(self, job_ids: Iterable[str], run_time: int, now: int) -> None:
        for job_id in job_ids:
            publication = self.jobs[job_id].publication
            if publication:  # else no complete list has ever shown the job
                ended = publication._replace(unpublished_at=run_time)
                self.closed[job_id] = ClosedJob(ended, closed_at=now)
            del self.jobs[job_id]  # last: a signal between the two must not lose the job

    def _note_notifications(self, notifications: Notifications, now: int) -> None:
        named = {*notifications.public_ids}
        for job_id, job in self.jobs.items():
            if job.public_id in named:  # its detail is owed, even if its summary looks unchanged
                self.jobs[job_id] = job._replace(owed="named")
        for public_id in notifications.public_ids:
            self.awaited.pop(public_id, None)  # so that it comes last: the last ones are kept
            self.awaited[public_id] = now
        self.last_read = LastRead(notifications.log_id, notifications.position)

    def note_failure(self, job_id: str, since: int) -> None:
        """Note that a job's detail failed; it is fetched again until it arrives."""
        job = self.jobs[job_id]
        self.jobs[job_id] = job._replace(failing_since=job.failing_since or since)

    def note_pending(self, job_ids: Iterable[str]) -> None:
        """Have the next run fetch these details, or find out that their jobs are gone."""
        for job_id in job_ids:
            self.jobs[job_id] = self.jobs[job_id]._replace(owed="again", failing_since=0)

    def outage_since(self, now: int) -> int:
        """Return since when many details have been failing; 0 if few do.

        While many fail, a further one is taken to have the same cause, and to be as old as the
        oldest of them, because each would make runs fail for another hour. A few jobs that are
        broken for good must not hide an outage.
        """
        since = [job.failing_since for job in self.jobs.values()]
        lately = [at for at in since if now - at < LONGEST_OUTAGE]
        return min(lately) if len(lately) >= MANY_FAILING else 0

    def note_detail(self, ref: JobRef, detail: Mapping[str, Json]) -> None:
        """Note that the record of a job's detail has been written.

        An answer may come from a replica or a cache that is behind. The next run looks at it again
        if it shows nothing of what a webhook was about, or if it and a summary that has changed
        contradict each other. If it is still the same, a run looks once more after ten minutes, and
        then any answer counts.
        """
        job, row_hash, detail_hash = self.jobs[ref.id], self.row_hash(ref), hash_of(detail)
        is_named, is_same = job.owed == "named", detail_hash == job.detail_hash
        is_changed = job.owed == "no" and job.fetched_at > 0 and job.row_hash != row_hash
        contradicts = any(detail.get(name, it) != it for name, it in ref.compared.items())
        owed: Owed = "no"
        if (is_named and is_same) or ((is_named or is_changed) and contradicts):
            owed = "again"
        elif is_same and job.owed != "no" and self.run_time - job.fetched_at < REPLICA_LAG:
            owed = "later"
        self.jobs[ref.id] = job._replace(
            row_hash=row_hash,
            detail_hash=detail_hash,
            fetched_at=self.run_time,
            owed=owed,
            failing_since=0,
        )

    def has_changed(self, ref: JobRef) -> bool:
        """Return whether the row of a job's detail would be made from something else now."""
        return self.jobs[ref.id].row_hash != self.row_hash(ref)

    def row_hash(self, ref: JobRef) -> str:
        """Hash what a row of details is made from: the summary, and the columns of the stream."""
        return hash_of([ref.summary_hash, self.forms.get("job_details")])
