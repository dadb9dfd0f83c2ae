"""How a state is kept: as one JSON value in Singer state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tap_public_jobs.api.models import HeldSlots
from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.sync.gaps import Gap
from tap_public_jobs.sync.state import Cycle, Entry, Form, LastRead, Period, SyncState

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = Any

FORMAT = 4

# Milliseconds since the epoch; later times have no date in Python.
END_OF_TIME = 253_402_300_800_000


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
    if state["format"] == 3:  # noqa: PLR2004  # written until 0.1.0
        state = _from_format_3(state)
    elif state["format"] != FORMAT:
        msg = f"format {state['format']!r} is not known"
        raise ValueError(msg)

    def rows(name: str, *kinds: Json) -> list[list[Json]]:
        return [_checked(row, kinds) for row in state[name]]

    jobs = rows("jobs", str, str, int, int | None, str, int, int)
    closed = rows("closed", str, str, int | None, int, int, int | None)
    cycle, last_read, held = state["cycle"], state["log"], state["heldSlots"]
    return SyncState(
        jobs={key: Entry(*entry) for key, *entry in jobs},
        gaps={(row[0], row[1]): Gap(*row) for row in rows("gaps", str, str, int, int, int, int)},
        confirmed={key: int(at) for key, at in rows("confirmed", str, int)},
        awaited={key: int(at) for key, at in rows("awaited", str, int)},
        closed={key: Period(*period) for key, *period in closed},
        listed_at=_checked([state["listedAt"]], [int | None])[0],
        key_hash=str(state["key"]),
        forms={name: Form(*form) for name, *form in rows("forms", str, str, str)},
        details_form=str(state["detailsForm"]),
        fields={name: [*map(str, names)] for name, names in state["fields"].items()},
        versions={name: _checked([it], [int])[0] for name, it in state["versions"].items()},
        cycle=Cycle(*_checked(cycle, (int, str, int | None))) if cycle else None,
        last_read=LastRead(str(last_read[0]), int(last_read[1])) if last_read else None,
        held_slots=HeldSlots(*_checked(held, (int, int))) if held else None,
    )


def dump(state: SyncState, singer_state: Json) -> None:
    """Put a state into Singer state: about 60 characters per job besides its identifiers.

    Jobs are lists, and absent values are null, because Meltano may merge this with an earlier
    state: it would keep the keys of jobs that are no longer published.
    """
    value = {
        "format": FORMAT,
        "jobs": [[key, *entry] for key, entry in state.jobs.items()],
        "gaps": [[*gap] for gap in state.gaps.values()],
        "confirmed": [[key, at] for key, at in state.confirmed.items()],
        "awaited": [[key, at] for key, at in state.awaited.items()],
        "closed": [[key, *period] for key, period in state.closed.items()],
        "listedAt": state.listed_at,
        "key": state.key_hash,
        "forms": [[name, *form] for name, form in state.forms.items()],
        "detailsForm": state.details_form,
        "fields": state.fields,
        "versions": state.versions,
        "cycle": list(state.cycle) if state.cycle else None,
        "log": list(state.last_read) if state.last_read else None,
        "heldSlots": list(state.held_slots) if state.held_slots else None,
    }
    singer_state.setdefault("bookmarks", {})["jobs"] = {"sync": value}


def _from_format_3(state: Json) -> Json:
    """Add what is new since; what the runs before could not see or load counts as new."""
    last_seen = dict(state["missing"])
    return {
        **state,
        **dict.fromkeys(("gaps", "confirmed", "awaited", "forms"), ()),
        "jobs": [[*job, last_seen.get(job[0], 0)] for job in state["jobs"]],
        "cycle": [*state["unfinished"], None] if state["unfinished"] else None,
        "heldSlots": None,
    }


def _checked(values: Iterable[Json], kinds: Iterable[Json]) -> list[Json]:
    """Return values that have these types, and are before the year 10,000 if they are times."""
    checked = list(values)
    for value, kind in zip(checked, kinds, strict=True):
        if not isinstance(value, kind) or (isinstance(value, int) and not 0 <= value < END_OF_TIME):
            msg = f"{value!r:.50} is out of place"
            raise TypeError(msg)
    return checked
