"""What one run remembers for the next, as one JSON value in Singer state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from tap_public_jobs.api.models import hash_of
from tap_public_jobs.sync.checks import (
    ENTRY,
    PERIOD,
    checked,
    milliseconds_or_none,
    number,
    seconds,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tap_public_jobs.api.listing import Listing
    from tap_public_jobs.api.models import JobRef

Json = Any
Refresh = Literal["all", "changed", "none"]
"""Which details a run fetches again; `none` if the stream is not selected."""

FORMAT = 2
"""Version of the state's format. `bookmarks` reads format 1 too."""

STREAMS = ("jobs", "job_publications", "job_details")

MOST_CLOSED = 1_000
"""Closed jobs to remember while nobody selects `job_publications`."""

LONGEST_FIELD = 100
"""Characters of a field's name that is worth remembering."""

MOST_FIELDS = 200
"""Names of undeclared fields to remember per stream, should a server invent new ones each time."""


class DamagedStateError(ValueError):
    """A state that this version of the tap cannot read."""


class Entry(NamedTuple):
    """What is known of a published job."""

    public_id: str
    """Empty if only a state of format 1 knows the job."""
    first_seen: int
    """Milliseconds since the epoch; 0 if no listing has been noted yet."""
    opened_after: int | None
    """Milliseconds since the epoch."""
    detail_hash: str = ""
    """Hash of the summary when the detail was fetched; empty if the detail is pending."""
    fetched_at: int = 0
    """Seconds since the epoch at which the detail was fetched; 0 if it never was."""


class Period(NamedTuple):
    """When a job was published. All times are milliseconds since the epoch."""

    public_id: str
    opened_after: int | None
    first_seen: int
    last_seen: int
    unpublished_at: int | None


class Run(NamedTuple):
    """A run that has not finished."""

    started_at: int
    """Seconds since the epoch; later than everything that earlier runs fetched."""
    refresh: str


class LogPosition(NamedTuple):
    """How far the change log has been read."""

    log: str
    """Identity of the log."""
    position: int
    """Of the last row that was read."""


@dataclass
class SyncState:
    """What is known of the organisation's jobs.

    Attributes:
        jobs: The published jobs, by id.
        closed: Periods that have ended, and whose records are not written yet, by id.
        listed_at: When the last complete listing began, in milliseconds since the epoch.
        key_hash: Hash of the API key.
        forms: Per stream, a hash of what its records are made of.
        fields: Per stream, the undeclared fields that were seen.
        versions: Per stream, the last version that was used.
        run: The run that has not finished, if there is one.
        log: How far the change log has been read, if it ever was.
    """

    jobs: dict[str, Entry] = field(default_factory=dict)
    closed: dict[str, Period] = field(default_factory=dict)
    listed_at: int | None = None
    key_hash: str = ""
    forms: dict[str, str] = field(default_factory=dict)
    fields: dict[str, list[str]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    run: Run | None = None
    log: LogPosition | None = None

    @classmethod
    def read(cls, state: Json) -> Self:
        """Read what `write` returned.

        Raises:
            DamagedStateError: It is damaged, or of a newer format.
        """
        try:
            return cls._read(state)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            msg = f"{type(error).__name__}: {error}"
            raise DamagedStateError(msg) from error

    @classmethod
    def _read(cls, state: Json) -> Self:
        if type(state["format"]) is not int or state["format"] != FORMAT:
            msg = f"format {state['format']!r} is not known"
            raise ValueError(msg)
        run, log = state["run"], state["log"]
        return cls(
            jobs={text(key): Entry(*checked(values, ENTRY)) for key, *values in state["jobs"]},
            closed={
                text(key): Period(*checked(values, PERIOD)) for key, *values in state["closed"]
            },
            listed_at=milliseconds_or_none(state["listedAt"]),
            key_hash=text(state["key"]),
            forms={name: text(value) for name, value in state["forms"].items() if value},
            fields={name: [*map(text, names)] for name, names in state["fields"].items()},
            versions={name: seconds(value) for name, value in state["versions"].items()},
            run=Run(seconds(run[0]), text(run[1])) if run else None,
            log=LogPosition(text(log[0]), number(log[1], (1 << 63) - 1)) if log else None,
        )

    def write(self) -> dict[str, Json]:
        """Return the state as JSON, about 60 characters per job besides its identifiers.

        Jobs are lists, and absent values are null, because Meltano may merge this with an earlier
        state: it would keep the keys of jobs that are no longer published.
        """
        return {
            "format": FORMAT,
            "jobs": [[key, *entry] for key, entry in self.jobs.items()],
            "closed": [[key, *period] for key, period in self.closed.items()],
            "listedAt": self.listed_at,
            "key": self.key_hash,
            "forms": dict.fromkeys(STREAMS) | self.forms,
            "fields": self.fields,
            "versions": self.versions,
            "run": list(self.run) if self.run else None,
            "log": list(self.log) if self.log else None,
        }

    @property
    def known(self) -> dict[str, str]:
        """The publicIds of the published jobs, by id."""
        return {key: entry.public_id for key, entry in self.jobs.items() if entry.public_id}

    def next_listing_time(self, now: float) -> int:
        """Return the time of a listing that begins now, later than that of any before."""
        return max(int(now * 1000), (self.listed_at or 0) + 1)

    def note_listing(self, listing: Listing, began_at: int) -> None:
        """Note which jobs are published.

        A job that a listing shows for the first time, complete or not, begins a period.
        Only a complete listing ends one.
        """
        for key in listing.gone:
            entry = self.jobs.pop(key)
            last_seen = max(entry.first_seen, self.listed_at or 0)
            self.closed[key] = Period(
                entry.public_id, entry.opened_after, entry.first_seen, last_seen, began_at
            )
        for key, job in listing.jobs.items():
            entry = self.jobs.get(key, Entry("", 0, None))
            if not entry.first_seen:
                # The detail hash stays: a state of format 1 knows details, but no times.
                entry = entry._replace(first_seen=began_at, opened_after=self.listed_at)
            self.jobs[key] = entry._replace(public_id=job.public_id)
            self.closed.pop(key, None)  # published again, in the same row
        if listing.is_complete:
            self.jobs = {key: self.jobs[key] for key in listing.jobs}
            self.listed_at = began_at

    def periods(self) -> dict[str, Period]:
        """Return the periods of the published jobs, and those that ended, by id.

        Only after a complete listing.
        """
        seen_at = self.listed_at or 0
        current = {
            key: Period(entry.public_id, entry.opened_after, entry.first_seen, seen_at, None)
            for key, entry in self.jobs.items()
        }
        return current | self.closed

    def keep_closed(self, most: int) -> None:
        """Forget all but the last closed jobs."""
        self.closed = dict(list(self.closed.items())[-most:])

    def note_forms(self, forms: Mapping[str, str]) -> bool:
        """Note what the records of the selected streams are made of.

        If the records of `job_details` change, all details become pending.

        Returns:
            Whether they changed.
        """
        before = self.forms.get("job_details")
        details = forms.get("job_details", before)
        self.forms = {**forms, "job_details": details} if details else dict(forms)
        # A state of format 1 knows details, and not what they were made of.
        if before in {None, details}:
            return False
        self.jobs = {
            key: entry._replace(detail_hash="", fetched_at=0) for key, entry in self.jobs.items()
        }
        self.run = None
        return True

    def mark_pending_by_public_id(self, public_ids: Collection[str]) -> None:
        """Have the details of these jobs fetched, even if they look unchanged."""
        for key, entry in self.jobs.items():
            if entry.public_id in public_ids:
                self.mark_pending(key)

    def note_detail(self, job: JobRef, now: float) -> None:
        """Note that the record of a job's detail has been written.

        Args:
            job: As it was listed.
            now: Seconds since the epoch.
        """
        fetched_at = max(int(now), self.run.started_at if self.run else 0)
        self.jobs[job.id] = self.jobs[job.id]._replace(
            detail_hash=job.summary_hash, fetched_at=fetched_at
        )

    def mark_pending(self, job_id: str) -> None:
        """Have the detail of a job fetched."""
        self.jobs[job_id] = self.jobs[job_id]._replace(detail_hash="")

    def has_all_details(self, without: Collection[str]) -> bool:
        """Whether this run has written the details of all jobs but these."""
        run = self.run
        return run is not None and all(
            entry.fetched_at >= run.started_at and entry.detail_hash
            for key, entry in self.jobs.items()
            if key not in without
        )

    def next_version(self, stream: str, now: float) -> int:
        """Return a version that is later than any before, in seconds since the epoch."""
        version = max(int(now), self.versions.get(stream, 0) + 1)
        self.versions[stream] = version
        return version

    def note_fields(self, stream: str, names: Collection[str]) -> list[str]:
        """Note which undeclared fields a stream has; returns those that no earlier run saw."""
        seen = self.fields.get(stream, [])
        short = {name for name in names if len(name) <= LONGEST_FIELD}
        new = sorted(short - {*seen})[: max(0, MOST_FIELDS - len(seen))]
        if new:
            self.fields[stream] = [*seen, *new]
        return new


def hash_key(api_key: str) -> str:
    """Hash an API key, so that a state can recognise it and not reveal it."""
    return hash_of(["api_key", api_key])
