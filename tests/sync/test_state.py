"""What one run remembers for the next: periods of publication, details, gaps, forms, versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sync.samples import NOW, fetched, listed

from tap_public_jobs.api.models import hash_key
from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.sync.state import (
    FORMAT,
    LastRead,
    Period,
    SyncState,
    Unfinished,
)

FULL = SyncState(
    jobs={"x": fetched("x"), "ä/ \u2028😀": listed("odd")},
    missing={"x": 1500},
    failed=["x"],
    shortfall=None,
    closed={"y": Period("public-y", None, 1, 2, 3), "z": Period("public-z", 0, 1, 2, None)},
    listed_at=2000,
    key_hash=hash_key("secret"),
    forms={"jobs": "form"},
    details_form="form",
    fields={"job_details": ["salaryPeriod", "ä\0"]},
    versions={"jobs": NOW},
    unfinished=Unfinished(NOW, "changed"),
    log=LastRead("a-log", (1 << 63) - 1),
)


def written(state: SyncState) -> dict[str, Any]:
    """The state in Singer state, as a target passes it on."""
    singer_state: dict[str, Any] = {"bookmarks": {"jobs": {"other": 1}, "job_details": {}}}
    state.write(singer_state)
    read: dict[str, Any] = json.loads(json.dumps(singer_state))
    return read


def value_of(singer_state: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = singer_state["bookmarks"]["jobs"]["sync"]
    return value


class TestReadAndWrite:
    @pytest.mark.parametrize("state", [FULL, SyncState()], ids=["full", "empty"])
    def test_a_state_is_read_as_it_was_written(self, state: SyncState) -> None:
        assert SyncState.read(written(state)) == state

    def test_without_a_state_nothing_is_known(self) -> None:
        assert SyncState.read({}) == SyncState.read({"bookmarks": {"jobs": {}}}) == SyncState()

    def test_a_merge_with_an_earlier_state_brings_nothing_back(self) -> None:
        """Meltano merges the objects of states, and replaces all other values."""
        later = SyncState(jobs={"x": listed("x")}, forms={"job_details": "1"})

        merged = SyncState.read(merge(written(later), written(FULL)))

        assert merged.jobs == {"x": listed("x")}
        assert (merged.closed, merged.missing, merged.failed) == ({}, {}, [])
        assert (merged.unfinished, merged.log) == (None, None)
        assert merged.forms == {"job_details": "1"}

    def test_a_state_recognises_the_key_and_does_not_reveal_it(self) -> None:
        assert hash_key("secret") == hash_key("secret") != hash_key("other")
        assert "secret" not in json.dumps(written(FULL))

    @pytest.mark.parametrize(
        "change",
        [
            {"format": FORMAT - 1},
            {"jobs": {"x": ["p", 1, None, "h", 1]}},
            {"jobs": [["x", "p", 1, None, "h"]]},
            {"jobs": [["x", None, 1, None, "h", 1]]},
            {"missing": [["x", "now"]]},
            {"failed": 7},
            {"shortfall": "3"},
            {"closed": [["x", "p", None, 1, 2, "now"]]},
            {"listedAt": "now"},
            {"fields": {"jobs": 7}},
            {"versions": {"jobs": None}},
            {"unfinished": ["now", "all"]},
            {"log": ["a-log"]},
        ],
        ids=lambda change: json.dumps(change)[:60],
    )
    def test_a_damaged_state_is_refused(self, change: dict[str, Any]) -> None:
        state = written(FULL)
        value_of(state).update(change)

        with pytest.raises(DamagedStateError):
            SyncState.read(state)

    @pytest.mark.parametrize("name", list(value_of(written(SyncState()))))
    def test_a_state_with_a_part_missing_is_refused(self, name: str) -> None:
        state = written(SyncState())
        del value_of(state)[name]

        with pytest.raises(DamagedStateError):
            SyncState.read(state)


def merge(source: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """Merge as Meltano's `merge` does."""
    for key, value in source.items():
        if isinstance(value, dict):
            merge(value, into.setdefault(key, {}))
        else:
            into[key] = value
    return into
