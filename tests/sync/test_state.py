"""What one run remembers for the next: periods of publication, details, gaps, forms, versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sync.samples import NOW, fetched, listed

from tap_public_jobs.api.models import HeldSlots, hash_key
from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.sync.gaps import Gap
from tap_public_jobs.sync.state import Cycle, Entry, Form, LastRead, Period, SyncState
from tap_public_jobs.sync.stored import FORMAT, dump, load

FULL = SyncState(
    jobs={"x": fetched("x"), "ä/ \u2028😀": listed("odd")},
    gaps={
        ("detail", "x"): Gap("detail", "x", NOW - 100, NOW),
        ("total", ""): Gap("total", "", NOW, NOW, 7),
    },
    confirmed={"x": NOW},
    awaited={"public-w": NOW},
    closed={"y": Period("public-y", None, 1, 2, 3), "z": Period("public-z", 0, 1, 2, None)},
    listed_at=2000,
    key_hash=hash_key("secret"),
    forms={"jobs": Form("form", "summaries")},
    details_form="form",
    fields={"job_details": ["salaryPeriod", "ä\0"]},
    versions={"jobs": NOW},
    cycle=Cycle(NOW, "changed", NOW + 60),
    last_read=LastRead("a-log", (1 << 63) - 1),
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
    assert value_of(written(state))["format"] == 4


def test_without_a_state_nothing_is_known() -> None:
    assert load({}) == load({"bookmarks": {"jobs": {}}}) == SyncState()


def test_a_merge_with_an_earlier_state_brings_nothing_back() -> None:
    """Meltano merges the objects of states, and replaces all other values."""
    form = Form("1", "details")
    later = SyncState(jobs={"x": listed("x")}, forms={"job_details": form})

    merged = load(merge(written(later), written(FULL)))

    assert merged.jobs == {"x": listed("x")}
    assert (merged.closed, merged.gaps, merged.confirmed, merged.awaited) == ({},) * 4
    assert (merged.cycle, merged.last_read) == (None, None)
    assert merged.forms == {"job_details": form}


def test_a_state_recognises_the_key_and_does_not_reveal_it() -> None:
    assert hash_key("secret") == hash_key("secret") != hash_key("other")
    assert "secret" not in json.dumps(written(FULL))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": FORMAT + 1},
        {"jobs": {"x": ["p", 1, None, "h", 1, 0]}},
        {"jobs": [["x", "p", 1, None, "h", 1]]},
        {"jobs": [["x", None, 1, None, "h", 1, 0]]},
        {"gaps": [["detail", "x", "now", 1, 0, 0]]},
        {"jobs": [[None, "p", 1, None, "h", 1, 0]]},
        {"jobs": [["x", "p", 10**15, None, "h", 1, 0]]},
        {"listedAt": 10**20},
        {"gaps": 7},
        {"confirmed": [["x", "now"]]},
        {"awaited": [["x"]]},
        {"forms": [["jobs", "form"]]},
        {"closed": [["x", "p", None, 1, 2, "now"]]},
        {"listedAt": "now"},
        {"fields": {"jobs": 7}},
        {"fields": [7]},
        {"versions": {"jobs": 10**30}},
        {"cycle": ["now", "all", None]},
        {"log": ["a-log"]},
        {"heldSlots": [2000, None]},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_a_damaged_state_is_refused(change: dict[str, Any]) -> None:
    state = written(FULL)
    value_of(state).update(change)

    with pytest.raises(DamagedStateError):
        load(state)


@pytest.mark.parametrize("name", list(value_of(written(SyncState()))))
def test_a_state_with_a_part_missing_is_refused(name: str) -> None:
    state = written(SyncState())
    del value_of(state)[name]

    with pytest.raises(DamagedStateError):
        load(state)


def test_a_state_of_format_3_is_read_without_its_gaps_which_had_no_age() -> None:
    """No detail is fetched again, and no date is lost."""
    old = {
        "format": 3,
        "jobs": [["x", "p", 1, None, "h", NOW], ["y", "q", 1, None, "", 0]],
        "missing": [["x", 1500]],
        "failed": ["y"],
        "shortfall": None,
        "closed": [],
        "listedAt": NOW * 1000 + 5,
        "key": "k",
        "forms": [["jobs", "form"]],
        "detailsForm": "form",
        "fields": {},
        "versions": {"jobs": NOW},
        "unfinished": [NOW, "all"],
        "log": ["a-log", 3],
    }

    state = load({"bookmarks": {"jobs": {"sync": old}}})

    assert state.jobs == {"x": Entry("p", 1, None, "h", NOW, 1500), "y": Entry("q", 1, None)}
    assert state.cycle == Cycle(NOW, "all")
    assert (state.details_form, state.versions) == ("form", {"jobs": NOW})
    assert (state.last_read, state.gaps) == (LastRead("a-log", 3), {})


def merge(source: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """Merge as Meltano's `merge` does."""
    for key, value in source.items():
        if isinstance(value, dict):
            merge(value, into.setdefault(key, {}))
        else:
            into[key] = value
    return into
