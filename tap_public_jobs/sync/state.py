"""What one run remembers for the next, as one JSON value in Singer state."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tap_public_jobs.errors import DamagedStateError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tap_public_jobs.api.models import JobRef
    from tap_public_jobs.changelog import Changes
    from tap_public_jobs.sync.listing import Listing

Json = Any

FORMAT = 3

# Closed jobs to remember while nobody writes `job_publications`.
MOST_CLOSED = 1_000


class Entry(NamedTuple):
    """What is known of a published job. The first two times are milliseconds since the epoch.

    Attributes:
        detail_hash: Hash of the summary when the detail was fetched; empty if the detail is
            pending.
        fetched_at: Seconds since the epoch at which the detail was fetched; 0 if it never was.
    """

    public_id: str
    first_seen: int
    opened_after: int | None
    detail_hash: str = ""
    fetched_at: int = 0


class Period(NamedTuple):
    """When a job was published. All times are milliseconds since the epoch."""

    public_id: str
    opened_after: int | None
    first_seen: int
    last_seen: int
    unpublished_at: int | None


class Unfinished(NamedTuple):
    """A run that has not fetched all its details."""

    started_at: int  # seconds since the epoch; later than everything that earlier runs fetched
    refresh: str


class LastRead(NamedTuple):
    """How far a change log has been read, and the identity of the log."""

    log: str
    position: int


@dataclass
class SyncState:
    """What is known of the organisation's jobs.

    Attributes:
        jobs: The published jobs, by id.
        missing: When a complete listing last showed a job of `jobs` that the last one did not show,
            in milliseconds since the epoch, by id. It is unknown whether the job is published.
        failed: Ids of the published jobs whose details failed in the last run that requested them.
        shortfall: How many jobs the last list was short of its total; None if it had none.
        closed: Periods that have ended, and whose records are not written yet, by id.
        listed_at: When the last complete listing began, in milliseconds since the epoch.
        key_hash: Hash of the API key.
        forms: Per stream of the last run, a hash of what its records are made of.
        details_form: The same of the details in `jobs`, whenever they were fetched.
        fields: Per stream, the undeclared fields that were seen.
        versions: Per stream, the last version that was used.
        unfinished: The run that has not finished, if there is one.
        log: How far the change log has been read, if it ever was.
    """

    jobs: dict[str, Entry] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    shortfall: int | None = 0
    closed: dict[str, Period] = field(default_factory=dict)
    listed_at: int | None = None
    key_hash: str = ""
    forms: dict[str, str] = field(default_factory=dict)
    details_form: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    unfinished: Unfinished | None = None
    log: LastRead | None = None

    @classmethod
    def read(cls, singer_state: Json) -> Self:
        """Read the state of the last run.

        Args:
            singer_state: Singer state that `write` has put it into, or an empty one.

        Raises:
            DamagedStateError: It is damaged, or of another format.
        """
        try:
            bookmarks = singer_state.get("bookmarks") or {}
            state = (bookmarks.get("jobs") or {}).get("sync")
            return cls() if state is None else cls._read(state)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            msg = f"{type(error).__name__}: {error}"
            raise DamagedStateError(msg) from error

    @classmethod
    def _read(cls, state: Json) -> Self:
        if state["format"] != FORMAT:
            msg = f"format {state['format']!r} is not known"
            raise ValueError(msg)
        entry, period = (str, int, _OPTIONAL, str, int), (str, _OPTIONAL, int, int, _OPTIONAL)
        unfinished, log = state["unfinished"], state["log"]
        return cls(
            jobs={key: Entry(*_checked(values, entry)) for key, *values in state["jobs"]},
            missing={key: _checked(at, [int])[0] for key, *at in state["missing"]},
            failed=_checked(state["failed"], [str] * len(state["failed"])),
            shortfall=_checked([state["shortfall"]], [_OPTIONAL])[0],
            closed={key: Period(*_checked(values, period)) for key, *values in state["closed"]},
            listed_at=_checked([state["listedAt"]], [_OPTIONAL])[0],
            key_hash=str(state["key"]),
            forms={name: str(form) for name, form in state["forms"]},
            details_form=str(state["detailsForm"]),
            fields={name: [*map(str, names)] for name, names in state["fields"].items()},
            versions={name: int(value) for name, value in state["versions"].items()},
            unfinished=Unfinished(*_checked(unfinished, (int, str))) if unfinished else None,
            log=LastRead(str(log[0]), int(log[1])) if log else None,
        )

    def write(self, singer_state: Json) -> None:
        """Put the state into Singer state: about 60 characters per job besides its identifiers.

        Jobs are lists, and absent values are null, because Meltano may merge this with an earlier
        state: it would keep the keys of jobs that are no longer published.
        """
        value = {
            "format": FORMAT,
            "jobs": [[key, *entry] for key, entry in self.jobs.items()],
            "missing": [[key, at] for key, at in self.missing.items()],
            "failed": [*self.failed],
            "shortfall": self.shortfall,
            "closed": [[key, *period] for key, period in self.closed.items()],
            "listedAt": self.listed_at,
            "key": self.key_hash,
            "forms": [[name, form] for name, form in self.forms.items()],
            "detailsForm": self.details_form,
            "fields": self.fields,
            "versions": self.versions,
            "unfinished": list(self.unfinished) if self.unfinished else None,
            "log": list(self.log) if self.log else None,
        }
        singer_state.setdefault("bookmarks", {})["jobs"] = {"sync": value}

    def next_listing_time(self, now: float) -> int:
        """Return the time of a listing that begins now, later than any before, in milliseconds."""
        times = [self.listed_at or 0, *(entry.first_seen for entry in self.jobs.values())]
        return max(int(now * 1000), max(times) + 1)

    def note_listing(self, listing: Listing, began_at: int) -> None:
        """Note which jobs are published.

        A job that a listing shows for the first time, complete or not, begins a period.
        Only a complete listing ends one. `began_at` is in milliseconds since the epoch.
        """
        for key in listing.gone:
            period = self._period(key, self.jobs.pop(key))
            self.closed[key] = period._replace(unpublished_at=began_at)
        listed_at = self.listed_at or 0
        for key in listing.missing:
            self.missing.setdefault(key, max(self.jobs[key].first_seen, listed_at))
        for key, job in listing.jobs.items():
            entry = self.jobs.get(key, Entry("", began_at, self.listed_at))
            self.jobs[key] = entry._replace(public_id=job.public_id)
            self.closed.pop(key, None)  # published again, in the same row
        if listing.is_complete:
            self.missing = {key: self.missing[key] for key in listing.missing}
            self.jobs = {key: self.jobs[key] for key in (*listing.jobs, *listing.missing)}
            self.failed = [key for key in self.failed if key in listing.jobs]
            self.listed_at = began_at
        self.shortfall = listing.shortfall

    def periods(self) -> dict[str, Period]:
        """Return the periods of the published jobs, and those that ended, by id."""
        return {key: self._period(key, entry) for key, entry in self.jobs.items()} | self.closed

    def _period(self, key: str, entry: Entry) -> Period:
        last_seen = self.missing.get(key, max(entry.first_seen, self.listed_at or 0))
        return Period(entry.public_id, entry.opened_after, entry.first_seen, last_seen, None)

    def note_forms(self, forms: Mapping[str, str]) -> bool:
        """Note what the records of this run's streams are made of.

        If the records of `job_details` change, all details become pending. While nobody writes
        `job_publications`, only the last closed jobs are remembered.

        Returns:
            Whether details became pending.
        """
        self.forms = dict(forms)
        if "job_publications" not in forms:
            self.closed = dict(list(self.closed.items())[-MOST_CLOSED:])
        before, self.details_form = self.details_form, forms.get("job_details", self.details_form)
        if before in {"", self.details_form}:
            return False
        self.jobs = {
            key: entry._replace(detail_hash="", fetched_at=0) for key, entry in self.jobs.items()
        }
        self.unfinished = None
        return True

    def mark_pending(self, job_ids: Collection[str]) -> None:
        """Have the details of these jobs fetched, even if they look unchanged."""
        for key in job_ids:
            self.jobs[key] = self.jobs[key]._replace(detail_hash="")

    def note_changes(self, changes: Changes, *, is_read: bool) -> None:
        """Have the details of the notified jobs fetched.

        Args:
            changes: The notifications.
            is_read: Whether the next run may go on after them: the list of this run was complete.
        """
        notified = {*changes.public_ids}
        self.mark_pending([key for key, it in self.jobs.items() if it.public_id in notified])
        if is_read:
            self.log = LastRead(changes.log, changes.position)

    def note_detail(self, job: JobRef, now: float) -> None:
        """Note that the record of a job's detail has been written.

        Args:
            job: As it was listed.
            now: Seconds since the epoch.
        """
        fetched_at = max(int(now), self.unfinished.started_at if self.unfinished else 0)
        entry = self.jobs[job.id]
        self.jobs[job.id] = entry._replace(detail_hash=job.summary_hash, fetched_at=fetched_at)
        if job.id in self.failed:
            self.failed.remove(job.id)

    def note_failed(self, jobs: Iterable[JobRef]) -> None:
        """Note that the details of these jobs failed."""
        self.failed = [*dict.fromkeys([*self.failed, *(job.id for job in jobs)])]

    def has_all_details(self, without: Collection[str]) -> bool:
        """Whether this run has written the details of all jobs but these."""
        run = self.unfinished
        return run is not None and all(
            entry.fetched_at >= run.started_at and entry.detail_hash
            for key, entry in self.jobs.items()
            if key not in without
        )

    def begin_versions(self, now: float, *, is_resumed: bool) -> None:
        """Begin versions later than any before, in seconds since the epoch.

        A resumed run keeps the version of its details.
        """
        for stream in ("jobs", "job_details"):
            before = self.versions.get(stream, 0)
            if not (before and is_resumed and stream == "job_details"):
                self.versions[stream] = max(int(now), before + 1)

    def note_fields(self, stream: str, names: Collection[str]) -> list[str]:
        """Note which undeclared fields a stream has; returns those that no earlier run saw."""
        seen = self.fields.get(stream, [])
        new = sorted({*names} - {*seen})
        if new:
            self.fields[stream] = [*seen, *new]
        return new


_OPTIONAL = (int, NoneType)


def _checked(values: Iterable[Json], kinds: Iterable[Json]) -> list[Json]:
    """Return values that have these types."""
    checked = list(values)
    for value, kind in zip(checked, kinds, strict=True):
        if not isinstance(value, kind):
            msg = f"{value!r:.50} is out of place"
            raise TypeError(msg)
    return checked
