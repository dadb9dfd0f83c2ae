"""The state in Singer's bookmarks: written in this format, read in this one and the one before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sync.samples import NOW, fetched, job, listing, state_with

from tap_public_jobs.api.models import hash_of
from tap_public_jobs.sync.bookmarks import NO_HASH, read_bookmarks, write_bookmarks
from tap_public_jobs.sync.plan import begin_run, plan_details
from tap_public_jobs.sync.state import DamagedStateError, Entry, LogPosition, SyncState

IDS = ["unchanged", "changed", "pending", "never"]
"""The second has another summary now, a webhook has named the third, and the fourth was never
fetched."""


def format_1() -> dict[str, dict[str, Any]]:
    """The bookmarks of two streams in format 1, after a run that was interrupted."""
    names = [hash_of(f"public-{name}") for name in IDS]
    ledger = {
        "format": 1,
        "ids": list(IDS),
        "fingerprints": hash_of("a") + hash_of("before") + hash_of("a") + NO_HASH,
        "fetchedAt": [NOW - 10, NOW - 20, NOW - 30, 0],
        "publicIds": "".join(names),
        "run": [NOW - 60, NOW - 50, "all", True],
        "unpublished": ["long-gone"],
        "columns": hash_of(["id"]),
    }
    return {
        "jobs": {"version": NOW - 61, "published": list(IDS)},
        "job_details": {
            "version": NOW - 60,
            "ledger": ledger,
            "changes": {"log": "a-log", "position": 7, "pending": ["public-pending"]},
        },
    }


def planned(state: SyncState) -> dict[str, str]:
    """What a run of `changed` fetches that lists the four jobs of format 1."""
    jobs = [job(name) for name in IDS]
    state.note_listing(listing(*jobs), state.next_listing_time(NOW))
    begin_run(state, "changed", NOW)
    reasons = plan_details(state, jobs, NOW, 86_400).reasons
    return {it.id: reason for it, reason in reasons.items()}


class TestThisFormat:
    def test_the_state_is_read_as_it_was_written(self) -> None:
        state = state_with(x=fetched("x"))
        bookmarks: dict[str, dict[str, Any]] = {}

        write_bookmarks(bookmarks, state)

        assert list(bookmarks) == ["jobs"]
        assert read_bookmarks(json.loads(json.dumps(bookmarks))) == state

    def test_no_bookmarks_are_an_empty_state(self) -> None:
        assert read_bookmarks({}) == SyncState()
        assert read_bookmarks({"jobs": {}, "job_details": {}}) == SyncState()

    def test_what_other_streams_have_is_left_alone(self) -> None:
        bookmarks = {"other": {"a": 1}, "jobs": {"version": 1}, "job_details": {"version": 1}}

        write_bookmarks(bookmarks, SyncState())

        assert bookmarks == {"other": {"a": 1}, "jobs": {"sync": SyncState().write()}}

    @pytest.mark.parametrize("state", [None, [], {"format": 3}, SyncState().write() | {"run": 5}])
    def test_damage_and_a_newer_format_are_refused(self, state: object) -> None:
        with pytest.raises(DamagedStateError):
            read_bookmarks({"jobs": {"sync": state}})


class TestFormat1:
    def test_details_keep_their_hash_and_time(self) -> None:
        state = read_bookmarks(format_1())

        assert state == SyncState(
            jobs={
                "unchanged": Entry("", 0, None, hash_of("a"), NOW - 10),
                "changed": Entry("", 0, None, hash_of("before"), NOW - 20),
                "pending": Entry("", 0, None, "", NOW - 30),
                "never": Entry("", 0, None, "", 0),
            },
            versions={"jobs": NOW - 61, "job_details": NOW - 60},
            log=LogPosition("a-log", 7),
        )

    def test_no_detail_is_fetched_again_without_a_reason(self) -> None:
        state = read_bookmarks(format_1())

        assert planned(state) == {"changed": "changed", "pending": "pending", "never": "new"}

    def test_the_next_listing_fills_in_public_ids_and_times(self) -> None:
        state = read_bookmarks(format_1())
        planned(state)

        assert state.jobs["unchanged"] == Entry(
            "public-unchanged", NOW * 1000, None, hash_of("a"), NOW - 10
        )

    def test_versions_go_on_from_the_last(self) -> None:
        state = read_bookmarks(format_1())

        assert state.next_version("job_details", NOW - 1000) == NOW - 59

    def test_a_ledger_without_public_ids_is_read(self) -> None:
        """They came before the change log."""
        bookmarks = format_1()
        del bookmarks["job_details"]["ledger"]["publicIds"]
        del bookmarks["job_details"]["changes"]

        assert planned(read_bookmarks(bookmarks)) == {"changed": "changed", "never": "new"}

    def test_a_state_without_details_has_its_versions(self) -> None:
        state = read_bookmarks({"jobs": {"version": NOW, "published": ["x"]}})

        assert state == SyncState(versions={"jobs": NOW})

    def test_a_change_log_that_was_never_read_has_no_position(self) -> None:
        bookmarks = format_1()
        bookmarks["job_details"]["changes"] = {"log": "", "position": 0, "pending": []}

        assert read_bookmarks(bookmarks).log is None

    def test_it_is_replaced_when_the_state_is_written(self) -> None:
        bookmarks = format_1()
        state = read_bookmarks(bookmarks)

        write_bookmarks(bookmarks, state)

        assert bookmarks == {"jobs": {"sync": state.write()}}

    @pytest.mark.parametrize(
        "changes",
        [
            {"format": None},
            {"format": 2},
            {"ids": ["x"]},
            {"ids": 7},
            {"ids": [1, 2, 3, 4]},
            {"fingerprints": None},
            {"fingerprints": "abc"},
            {"fingerprints": [1] * 32},
            {"fetchedAt": [1, 2]},
            {"fetchedAt": ["soon"] * 4},
            {"fetchedAt": [10**400] * 4},
            {"fetchedAt": [float("inf")] * 4},
            {"publicIds": "abc"},
            {"publicIds": 7},
        ],
        ids=str,
    )
    def test_damage_is_refused(self, changes: dict[str, Any]) -> None:
        bookmarks = format_1()
        bookmarks["job_details"]["ledger"] |= changes

        with pytest.raises(DamagedStateError):
            read_bookmarks(bookmarks)

    @pytest.mark.parametrize(
        "bookmark",
        [
            {"ledger": 7},
            {"ledger": {"format": 1}},
            {"changes": 7},
            {"changes": {"log": "a-log"}},
            {"changes": {"log": 7, "position": 7}},
            {"changes": {"log": "a-log", "position": "7"}},
            {"changes": {"log": "a-log", "position": 7, "pending": 7}},
            {"version": "1"},
            {"version": -1},
        ],
        ids=str,
    )
    def test_damage_of_the_bookmark_is_refused(self, bookmark: dict[str, Any]) -> None:
        bookmarks = format_1()
        bookmarks["job_details"] |= bookmark

        with pytest.raises(DamagedStateError):
            read_bookmarks(bookmarks)
