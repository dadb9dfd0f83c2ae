"""What one run remembers for the next: periods of publication, details, gaps, forms, versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from sync.samples import DAY, NOW, fetched, job, listed, listing, state_with

from tap_public_jobs.api.models import hash_key, hash_of
from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.sync.state import (
    FORMAT,
    Entry,
    LastRead,
    Period,
    SyncState,
    Unfinished,
)

if TYPE_CHECKING:
    from tap_public_jobs.sync.listing import Listing

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
            {"listedAt": 10**15},
            {"unfinished": [-1, "all"]},
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


class TestListings:
    def test_the_record_of_a_closed_job_is_kept_until_it_is_written(self) -> None:
        state = state_of(listing(job("a")), listing(gone=["a"]), listing(job("b")))

        again = SyncState.read(written(state))

        assert again.periods()["a"] == Period("public-a", None, 1000, 1000, 2000)
        again.closed.clear()
        assert list(again.periods()) == ["b"]

    @pytest.mark.parametrize("is_written", [False, True])
    def test_a_job_that_is_published_again_begins_a_new_period(self, *, is_written: bool) -> None:
        state = state_of(listing(job("a")), listing(gone=["a"]))
        if is_written:
            state.closed.clear()

        state.note_listing(listing(job("a")), 3000)

        assert state.periods() == {"a": Period("public-a", 2000, 3000, 3000, None)}

    def test_an_incomplete_listing_shows_that_a_job_is_published_again(self) -> None:
        state = state_of(listing(job("a")), listing(gone=["a"]), listing(job("a"), complete=False))

        assert state.closed == {}
        assert state.jobs["a"] == Entry("public-a", 3000, 2000)

    def test_a_job_keeps_its_period_and_its_detail_under_another_public_id(self) -> None:
        state = state_with(a=fetched("a"))

        state.note_listing(listing(job("a")._replace(public_id="renamed")), 3000)

        assert state.jobs["a"] == fetched("a")._replace(public_id="renamed")
        assert [it.public_id for it in state.jobs.values()] == ["renamed"]

    def test_a_missing_job_keeps_its_time_until_it_is_listed_or_gone(self) -> None:
        state = state_of(
            listing(job("a"), job("b")),
            listing(job("b"), missing=["a"]),
            listing(job("b"), missing=["a"]),
        )

        assert state.missing == {"a": 1000}
        assert state.periods()["a"] == Period("public-a", None, 1000, 1000, None)
        assert state.periods()["b"] == Period("public-b", None, 1000, 3000, None)

        back, gone = (SyncState.read(written(state)) for _ in range(2))
        back.note_listing(listing(job("a"), job("b")), 4000)
        gone.note_listing(listing(job("b"), gone=["a"]), 4000)

        assert back.periods()["a"] == Period("public-a", None, 1000, 4000, None)
        assert gone.periods()["a"] == Period("public-a", None, 1000, 1000, 4000)
        assert (back.missing, gone.missing) == ({}, {})


class TestDetails:
    def test_a_written_detail_is_noted_with_the_summary_it_was_fetched_for(self) -> None:
        state = state_with(a=listed("a"))
        state.unfinished = Unfinished(NOW - 10, "all")

        state.note_detail(job("a", "b"), NOW + 0.9)

        assert state.jobs["a"] == listed("a")._replace(detail_hash=hash_of("b"), fetched_at=NOW)

    def test_a_detail_is_never_noted_before_its_run(self) -> None:
        """Else a clock that was put back would make the run fetch it again."""
        state = state_with(a=listed("a"))
        state.unfinished = Unfinished(NOW, "all")

        state.note_detail(job("a"), NOW - 500)

        assert state.jobs["a"].fetched_at == NOW

    def test_a_detail_that_failed_is_remembered_until_it_is_written(self) -> None:
        state = state_with(a=listed("a"), b=listed("b"))

        state.note_failed([job("a"), job("b"), job("a")])
        state.note_detail(job("b"), NOW)

        assert state.failed == ["a"]
        state.note_listing(listing(job("b"), gone=["a"]), 3000)
        assert state.failed == []

    def test_a_run_has_all_details_once_each_was_written_in_it(self) -> None:
        state = state_with(a=fetched("a"), b=fetched("b", age=0), c=listed("c"))
        state.unfinished = Unfinished(NOW - 10, "all")

        answers = [state.has_all_details({"c"}), state.has_all_details({"a"})]
        state.note_detail(job("a"), NOW)
        answers += [state.has_all_details(set()), state.has_all_details({"c"})]
        state.mark_pending(["b"])
        answers.append(state.has_all_details({"c"}))

        assert answers == [False, False, False, True, False]

    def test_no_details_are_complete_without_a_run(self) -> None:
        assert not SyncState().has_all_details(set())


class TestForms:
    def test_other_columns_of_details_make_all_details_pending(self) -> None:
        """Also if no run wrote details in between."""
        state = SyncState(jobs={"a": fetched("a")}, unfinished=Unfinished(NOW, "all"))
        state.note_forms({"jobs": "1", "job_details": "1"})
        state.note_forms({"jobs": "1"})

        assert state.note_forms({"jobs": "1", "job_details": "2"})

        assert state.jobs == {"a": listed("a")}
        assert state.unfinished is None
        assert state.forms == {"jobs": "1", "job_details": "2"}

    @pytest.mark.parametrize(
        "forms",
        [
            pytest.param({"jobs": "1", "job_details": "1"}, id="the same"),
            pytest.param({"jobs": "1"}, id="details deselected"),
            pytest.param({"jobs": "2", "job_details": "1"}, id="other columns of jobs"),
            pytest.param({}, id="nothing selected"),
        ],
    )
    def test_any_other_change_makes_no_detail_pending(self, forms: dict[str, str]) -> None:
        state = SyncState(jobs={"a": fetched("a")})
        state.note_forms({"jobs": "1", "job_details": "1"})

        assert not state.note_forms(forms)

        assert state.jobs == {"a": fetched("a")}
        assert (state.forms, state.details_form) == (forms, "1")


class TestVersions:
    def test_versions_are_whole_seconds_and_increase(self) -> None:
        """Also within a second, and when the clock is put back; details of one run share one."""
        state = SyncState()
        versions = []
        for now, is_resumed in ((NOW + 0.9, False), (NOW, True), (NOW - DAY, False)):
            state.begin_versions(now, is_resumed=is_resumed)
            versions.append((state.versions["jobs"], state.versions["job_details"]))

        assert versions == [(NOW, NOW), (NOW + 1, NOW), (NOW + 2, NOW + 1)]


def state_of(*listings: Listing) -> SyncState:
    """What is known after these listings, one at each second."""
    state = SyncState()
    for number, it in enumerate(listings, start=1):
        state.note_listing(it, number * 1000)
    return state


def merge(source: dict[str, Any], into: dict[str, Any]) -> dict[str, Any]:
    """Merge as Meltano's `merge` does."""
    for key, value in source.items():
        if isinstance(value, dict):
            merge(value, into.setdefault(key, {}))
        else:
            into[key] = value
    return into
