"""The facts that a state consists of: about jobs, runs, streams and the change log."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tap_public_jobs.sync.gaps import HOUR

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
