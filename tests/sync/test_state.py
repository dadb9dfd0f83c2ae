"""What one run remembers for the next: jobs, evidence, forms, and the last pass over details."""

import json
from typing import Any

import pytest

from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.limit.throttle import HeldSlots
from tap_public_jobs.sync.notes import correct_evidence
from tap_public_jobs.sync.state import (
    HOUR,
    ClosedJob,
    Cycle,
    KnownJob,
    LastRead,
    Publication,
    SyncState,
)
from tap_public_jobs.sync.state_json import FORMAT, dump, load

# Seconds since the epoch.
NOW = 1_800_000_000
LISTED = KnownJob("public-x", None, 1000, 2000)

FULL = SyncState(
    run_time=NOW,
    listed_at=2000,
    short_since=NOW,
    jobs={
        "x": LISTED._replace(row_hash="a", detail_hash="b", fetched_at=NOW, owed="named"),
        "new": KnownJob("public-new", 2000),
        "ä/ \u2028😀": LISTED._replace(missing_since=NOW, failing_since=NOW - 1),
    },
    closed={
        "y": ClosedJob(Publication("public-y", None, 1, 2, 3), closed_at=NOW, is_written=True),
        "z": ClosedJob(Publication("public-z", 0, 1, 2, 3), closed_at=NOW - 1),
    },
    awaited={"public-w": NOW},
    key_hash="a-hash",
    forms={"jobs": "form"},
    undeclared={"job_details": ["salaryPeriod", "ä\0"]},
    cycle=Cycle(NOW, "changed", NOW - 1, has_ended=True),
    last_read=LastRead("a-log", 99_000_000_000),
    held_slots=HeldSlots(2000, 60),
)


def written(state: SyncState) -> dict[str, Any]:
    """The state in Singer state, as a target passes it on."""
    singer_state: dict[str, Any] = {"bookmarks": {"jobs": {"other": 1}, "job_details": {}}}
    dump(state, singer_state)
    return dict(json.loads(json.dumps(singer_state)))


def value_of(singer_state: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = singer_state["bookmarks"]["jobs"]["sync"]
    return value


@pytest.mark.parametrize("state", [FULL, SyncState()], ids=["full", "empty"])
def test_a_state_is_read_as_it_was_written(state: SyncState) -> None:
    """The number of the format changes with the format, or states are lost."""
    assert load(written(state)) == state
    assert value_of(written(state))["format"] == 8


def test_a_merge_with_an_earlier_state_brings_nothing_back() -> None:
    """Meltano merges the objects of states, and replaces all other values."""
    later = SyncState(jobs={"x": LISTED}, forms={"job_details": "1"})

    merged = load(merge(written(later), written(FULL)))

    assert merged.jobs == {"x": LISTED}
    assert (merged.closed, merged.awaited, merged.undeclared) == ({},) * 3
    assert (merged.cycle, merged.last_read) == (None, None)
    assert merged.forms == {"job_details": "1"}


@pytest.mark.parametrize(
    "change",
    [
        {"format": FORMAT - 1},
        {"format": FORMAT + 1},
        {"jobs": {"x": ["p", None, 1, 1, "h", "d", 1, "no", 0, 0]}},
        {"jobs": [["x", "p", None, 1, 1, "h", "d", 1, "no", 0]]},
        {"jobs": [["x", None, None, 1, 1, "h", "d", 1, "no", 0, 0]]},
        {"jobs": [[None, "p", None, 1, 1, "h", "d", 1, "no", 0, 0]]},
        {"jobs": [["x", "p", None, 10**12, 1, "h", "d", 1, "no", 0, 0]]},
        {"jobs": [["x", "p", None, 1, 1, "h", "d", 1, "no", "now", 0]]},
        {"jobs": [["x", "p", None, 1, 1, "h", "d", 1, "perhaps", 0, 0]]},
        {"jobs": 7},
        {"at": -1},
        {"listedAt": 10**20},
        {"listedAt": "now"},
        {"shortSince": None},
        {"awaited": [["x"]]},
        {"awaited": [["x", "now"]]},
        {"forms": [["jobs", 7]]},
        {"closed": [["x", "p", None, 1, 2, 3, "now", False]]},
        {"closed": [["x", "p", None, 1, 2, 3, 4]]},
        {"undeclared": [7]},
        {"cycle": ["now", "all", NOW, False]},
        {"cycle": [NOW, "all", NOW, None]},
        {"log": ["a-log"]},
        {"log": ["a-log", 1 << 63]},
        {"at": 253_402_300_799},
        {"heldSlots": [2000, None]},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_a_damaged_state_is_refused(change: dict[str, Any]) -> None:
    state = written(FULL)
    value_of(state).update(change)

    with pytest.raises(DamagedStateError):
        load(state)


@pytest.mark.parametrize("name", [*value_of(written(SyncState()))])
def test_a_state_with_a_part_missing_is_refused(name: str) -> None:
    state = written(SyncState())
    del value_of(state)[name]

    with pytest.raises(DamagedStateError):
        load(state)


def test_evidence_of_a_clock_that_was_ahead_is_corrected() -> None:
    """And a closing is forgotten an hour after it, once it is written."""
    state = load(written(FULL))
    correct_evidence(state, NOW - 60)

    odd, y = state.jobs["ä/ \u2028😀"], state.closed["y"]
    assert (odd.missing_since, odd.failing_since) == (NOW - 60, NOW - 60)
    assert (state.short_since, state.awaited) == (NOW - 60, {"public-w": NOW - 60})
    assert (y.closed_at, state.jobs["x"]) == (NOW - 60, FULL.jobs["x"])
    correct_evidence(state, NOW - 60 + HOUR)
    assert state.closed.keys() == {"z"}


def merge(source: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """Merge as Meltano's `merge` does."""
    for key, value in source.items():
        if isinstance(value, dict):
            merge(value, into.setdefault(key, {}))
        else:
            into[key] = value
    return into
