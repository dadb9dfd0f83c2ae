"""How a state is kept: as one JSON value in Singer state."""

from collections.abc import Iterable
from typing import get_args

from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.limit.throttle import HeldSlots
from tap_public_jobs.sync.source import Json
from tap_public_jobs.sync.state import (
    ClosedJob,
    Cycle,
    KnownJob,
    LastRead,
    Owed,
    Publication,
    SyncState,
)

FORMAT = 8

# Seconds since the epoch, in the year 9999; a year later, times have no date in Python.
END_OF_TIME = 253_370_000_000

# The types of a row: the id of a job, and then the fields of `KnownJob`, or those of `Publication`
# and the others of `ClosedJob`.
PUBLISHED = (str, *(str if it is Owed else it for it in KnownJob.__annotations__.values()))
CLOSED = (str, *Publication.__annotations__.values(), int, bool)


def load(singer_state: Json) -> SyncState:
    """Read the state of the last run.

    Args:
        singer_state: Singer state that `dump` has put it into, or an empty one.

    Raises:
        DamagedStateError: It is damaged, or of another format.
    """
    try:
        bookmarks = singer_state.get("bookmarks") or {}
        state = (bookmarks.get("jobs") or {}).get("sync")
        return SyncState() if state is None else _read(state)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{type(error).__name__}: {error}"
        raise DamagedStateError(msg) from error


def _read(state: Json) -> SyncState:
    if state["format"] != FORMAT:
        msg = f"format {state['format']!r} is not known"
        raise ValueError(msg)

    def rows(name: str, kinds: Json) -> list[list[Json]]:
        return [_checked(row, kinds) for row in state[name]]

    times = [state[name] for name in ("at", "listedAt", "shortSince")]
    run_time, listed_at, short_since = _checked(times, (int, int | None, int))
    cycle, last_read, held = state["cycle"], state["log"], state["heldSlots"]
    return SyncState(
        run_time=run_time,
        listed_at=listed_at,
        short_since=short_since,
        jobs={job_id: _with_owed(KnownJob(*job)) for job_id, *job in rows("jobs", PUBLISHED)},
        closed={
            job_id: ClosedJob(Publication(*publication), closed_at, is_written)
            for job_id, *publication, closed_at, is_written in rows("closed", CLOSED)
        },
        awaited={public_id: int(at) for public_id, at in rows("awaited", (str, int))},
        key_hash=str(state["key"]),
        forms=dict(rows("forms", (str, str))),
        undeclared={name: [*map(str, names)] for name, *names in state["undeclared"]},
        cycle=Cycle(*_checked(cycle, (int, str, int, bool))) if cycle else None,
        last_read=LastRead(*_checked(last_read, (str, int))) if last_read else None,
        held_slots=HeldSlots(*_checked(held, (int, int))) if held else None,
    )


def _with_owed(job: KnownJob) -> KnownJob:
    """Return a job if what it owes is one of the words for it; raise for another."""
    if job.owed not in get_args(Owed):
        msg = f"{job.owed!r:.50} is out of place"
        raise ValueError(msg)
    return job


def dump(state: SyncState, singer_state: Json) -> None:
    """Put a state into Singer state: about 90 characters per job besides its identifiers.

    Maps are lists of rows, and absent values are null, because Meltano may merge this with an
    earlier state: it would keep the keys of jobs that are no longer published.
    """
    value = {
        "format": FORMAT,
        "at": state.run_time,
        "listedAt": state.listed_at,
        "shortSince": state.short_since,
        "jobs": [[job_id, *job] for job_id, job in state.jobs.items()],
        "closed": [
            [job_id, *job.publication, job.closed_at, job.is_written]
            for job_id, job in state.closed.items()
        ],
        "awaited": [[public_id, at] for public_id, at in state.awaited.items()],
        "key": state.key_hash,
        "forms": [[name, form] for name, form in state.forms.items()],
        "undeclared": [[name, *names] for name, names in state.undeclared.items()],
        "cycle": list(state.cycle) if state.cycle else None,
        "log": list(state.last_read) if state.last_read else None,
        "heldSlots": list(state.held_slots) if state.held_slots else None,
    }
    singer_state.setdefault("bookmarks", {})["jobs"] = {"sync": value}


def _checked(values: Iterable[Json], kinds: Iterable[Json]) -> list[Json]:
    """Return values that have these types, numbers from 0 to `END_OF_TIME`; raise for others."""
    checked = list(values)
    for value, kind in zip(checked, kinds, strict=True):
        if not isinstance(value, kind) or (isinstance(value, int) and not 0 <= value < END_OF_TIME):
            msg = f"{value!r:.50} is out of place"
            raise TypeError(msg)
    return checked
