"""What one run remembers for the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tap_public_jobs.sync.gaps import HOUR

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tap_public_jobs.api.models import HeldSlots, JobRef
    from tap_public_jobs.changelog import Changes
    from tap_public_jobs.sync.gaps import Gap, Key
    from tap_public_jobs.sync.listing import Listing

Json = Any

# Closed jobs to remember while no stream writes publications.
MOST_CLOSED = 1_000

# publicIds to remember that a log named, and that no list has shown.
MOST_AWAITED = 20

# What the records of a stream show.
Shows = Literal["summaries", "publications", "details"]

# In place of the hash of a summary that shows a change which the detail lacked.
LAGGING = "lagging"


class Entry(NamedTuple):
    """What is known of a published job.

    Attributes:
        public_id: As last listed.
        first_seen: Milliseconds since the epoch; see `Period`.
        opened_after: Milliseconds since the epoch; see `Period`.
        detail_hash: Hash of the summary when the detail was fetched; empty if the detail is
            pending; `LAGGING` if it lacked a change that the summary shows.
        fetched_at: Seconds since the epoch at which the detail was fetched; 0 if it never was.
        last_seen: When a complete listing last showed a job that is missing, in milliseconds since
            the epoch; 0 if the last one did.
    """

    public_id: str
    first_seen: int
    opened_after: int | None
    detail_hash: str = ""
    fetched_at: int = 0
    last_seen: int = 0


class Period(NamedTuple):
    """When a job was published. All times are of listings, in milliseconds since the epoch.

    Attributes:
        public_id: As last listed.
        opened_after: The last complete listing before `first_seen`; None if there was none.
        first_seen: The first listing that showed the job.
        last_seen: The last complete listing that showed it.
        unpublished_at: The first complete listing that did not show it; None while it does.
    """

    public_id: str
    opened_after: int | None
    first_seen: int
    last_seen: int
    unpublished_at: int | None


class Cycle(NamedTuple):
    """One pass over the details: a run, and the runs that resume it.

    Attributes:
        started_at: Seconds since the epoch, later than everything that earlier cycles fetched.
        refresh: Which details it fetches again.
        open_until: Until when, in seconds since the epoch, the next run resumes it because of a new
            gap; 0 if it has none, and None if no run has come to its end with a complete list.
    """

    started_at: int
    refresh: str
    open_until: int | None = None

    def is_open(self, now: float) -> bool:
        """Whether there is something left to do; a gap stays new for an hour at most."""
        return self.open_until is None or 0 < self.open_until - now <= HOUR


class Form(NamedTuple):
    """What the records of a stream are made of: a hash of that, and what they show."""

    hash: str
    shows: Shows


class LastRead(NamedTuple):
    """How far a change log has been read, and the identity of the log."""

    log_id: str
    position: int


@dataclass
class SyncState:
    """What is known of the organisation's jobs.

    Attributes:
        jobs: The published jobs, and those that are missing, by id.
        gaps: What runs could not see or load, by kind and job.
        confirmed: When a job of `jobs` that is not listed was confirmed gone, in seconds since the
            epoch, by id. The next complete listing closes it.
        awaited: When the log last named a publicId that no list has shown, in seconds since the
            epoch.
        closed: Periods that have ended, and whose records are not written yet, by id.
        listed_at: When the last complete listing began, in milliseconds since the epoch.
        key_hash: Hash of the API key.
        forms: Per stream of the last run, what its records are made of.
        details_form: A hash of what the details in `jobs` are made of, whenever they were fetched.
        fields: Per stream, the undeclared fields that were seen.
        versions: Per stream, the last version that was used.
        cycle: The last one, if there was one.
        last_read: How far the change log has been read, if it ever was.
        held_slots: What the last run had used of the rate limit; None if that is unknown.
    """

    jobs: dict[str, Entry] = field(default_factory=dict)
    gaps: dict[Key, Gap] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    awaited: dict[str, int] = field(default_factory=dict)
    closed: dict[str, Period] = field(default_factory=dict)
    listed_at: int | None = None
    key_hash: str = ""
    forms: dict[str, Form] = field(default_factory=dict)
    details_form: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    cycle: Cycle | None = None
    last_read: LastRead | None = None
    held_slots: HeldSlots | None = None

    @property
    def listed_jobs(self) -> set[str]:
        """The ids of the known jobs that a complete listing has shown."""
        until = self.listed_at or 0
        return {key for key, entry in self.jobs.items() if entry.first_seen <= until}

    def next_listing_time(self, now: float) -> int:
        """Return the time of a listing that begins now, later than any before, in milliseconds."""
        times = [self.listed_at or 0, *(entry.first_seen for entry in self.jobs.values())]
        return max(int(now * 1000), max(times) + 1)

    def note_listing(self, listing: Listing, began_at: int) -> None:
        """Note which jobs are published.

        A job that a listing shows for the first time, complete or not, begins a period.
        Only a complete listing ends one. `began_at` is in milliseconds since the epoch.
        """
        known = {it.public_id for it in self.jobs.values()}
        known |= {it.public_id for it in listing.jobs.values()}
        others = [it for it in self.awaited.items() if it[0] not in known]
        self.awaited = dict(others[-MOST_AWAITED:])
        for key in listing.gone:
            period = self._period(self.jobs.pop(key))
            self.closed[key] = period._replace(unpublished_at=began_at)
        for key in listing.missing:
            self.jobs[key] = self.jobs[key]._replace(last_seen=self._last_seen(self.jobs[key]))
        for key, job in listing.jobs.items():
            entry = self.jobs.get(key, Entry("", began_at, self.listed_at))
            last_seen = 0 if listing.is_complete else entry.last_seen
            self.jobs[key] = entry._replace(public_id=job.public_id, last_seen=last_seen)
            self.closed.pop(key, None)  # published again, in the same row
        if listing.is_complete:
            self.jobs = {key: self.jobs[key] for key in (*listing.jobs, *listing.missing)}
            self.listed_at = began_at
        self.confirmed = {}  # for a run that is stopped before this, and for no other

    def keep_confirmed(self, since: float, until: float) -> None:
        """Forget what was confirmed at other times, in seconds since the epoch."""
        kept = {key: at for key, at in self.confirmed.items() if since <= at <= until}
        self.confirmed = kept

    def periods(self) -> dict[str, Period]:
        """Return the periods of the published jobs, and those that ended, by id."""
        return {key: self._period(entry) for key, entry in self.jobs.items()} | self.closed

    def _period(self, entry: Entry) -> Period:
        last_seen = self._last_seen(entry)
        return Period(entry.public_id, entry.opened_after, entry.first_seen, last_seen, None)

    def _last_seen(self, entry: Entry) -> int:
        return entry.last_seen or max(entry.first_seen, self.listed_at or 0)

    def note_forms(self, forms: Mapping[str, Form]) -> bool:
        """Note what the records of this run's streams are made of.

        If the records of details change, all details become pending. While no stream writes
        publications, only the last closed jobs are remembered.

        Returns:
            Whether details became pending.
        """
        self.forms = dict(forms)
        if "publications" not in {form.shows for form in forms.values()}:
            self.closed = dict(list(self.closed.items())[-MOST_CLOSED:])
        hashes = [form.hash for form in forms.values() if form.shows == "details"]
        before, self.details_form = self.details_form, "".join(hashes) or self.details_form
        if before in {"", self.details_form}:
            return False
        self.jobs = {
            key: entry._replace(detail_hash="", fetched_at=0) for key, entry in self.jobs.items()
        }
        self.cycle = None
        return True

    def mark_pending(self, job_ids: Collection[str]) -> None:
        """Have the details of these jobs fetched, even if they look unchanged."""
        for key in job_ids:
            self.jobs[key] = self.jobs[key]._replace(detail_hash="")

    def note_changes(self, changes: Changes, now: float) -> None:
        """Note what the log names, so that the next run reads on after it.

        Args:
            changes: The notifications.
            now: Seconds since the epoch.
        """
        named = dict.fromkeys(changes.public_ids, int(now))
        self.mark_pending([key for key, it in self.jobs.items() if it.public_id in named])
        self.awaited = {key: at for key, at in self.awaited.items() if key not in named} | named
        self.last_read = LastRead(changes.log_id, changes.position)

    def note_detail(self, job: JobRef, detail: Mapping[str, Json], now: float) -> None:
        """Note that the record of a job's detail has been written.

        A detail that lacks a change of the list may come from a cache. It is fetched once more.

        Args:
            job: As it was listed.
            detail: As the API sent it.
            now: Seconds since the epoch.
        """
        fetched_at = max(int(now), self.cycle.started_at if self.cycle else 0)
        entry, summary = self.jobs[job.id], job.summary or {}
        is_changed = entry.fetched_at and entry.detail_hash not in {job.summary_hash, LAGGING}
        lags = is_changed and any(detail.get(name, it) != it for name, it in summary.items())
        detail_hash = LAGGING if lags else job.summary_hash
        self.jobs[job.id] = entry._replace(detail_hash=detail_hash, fetched_at=fetched_at)

    def has_all_details(self, without: Collection[str]) -> bool:
        """Whether the cycle fetches all details, and none is pending but those of these jobs."""
        # The detail of a closed job cannot be fetched again, so its row has to stay.
        is_whole = self.cycle is not None and self.cycle.refresh == "all"
        return is_whole and all(
            it.detail_hash for key, it in self.jobs.items() if key not in without
        )

    def begin_versions(self, now: float, *, is_resumed: bool) -> None:
        """Begin versions later than any before, in seconds since the epoch.

        A resumed run keeps the version of its details. Publications are history, without a version.
        """
        for stream, form in self.forms.items():
            before = self.versions.get(stream, 0)
            is_kept = before and is_resumed and form.shows == "details"
            if form.shows != "publications" and not is_kept:
                self.versions[stream] = max(int(now), before + 1)

    def note_fields(self, stream: str, names: Collection[str]) -> list[str]:
        """Note which undeclared fields a stream has; returns those that no earlier run saw."""
        seen = self.fields.get(stream, [])
        new = sorted({*names} - {*seen})
        if new:
            self.fields[stream] = [*seen, *new]
        return new
