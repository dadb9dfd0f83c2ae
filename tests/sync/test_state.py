"""What one run remembers for the next: periods of publication, details, forms, versions, fields."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from sync.samples import DAY, NOW, fetched, job, listed, listing, state_with

from tap_public_jobs.api.models import hash_of
from tap_public_jobs.sync.checks import LATEST
from tap_public_jobs.sync.state import (
    MOST_FIELDS,
    DamagedStateError,
    Entry,
    LogPosition,
    Period,
    Run,
    SyncState,
    hash_key,
)

if TYPE_CHECKING:
    from tap_public_jobs.api.listing import Listing

FULL = SyncState(
    jobs={"x": fetched("x"), "ä/\0 \u2028😀": listed("odd"), "": Entry("", 0, None, "", 7)},
    closed={"y": Period("public-y", None, 1, 2, 3), "z": Period("public-z", 0, 1, 2, None)},
    listed_at=2000,
    key_hash=hash_key("secret"),
    forms={"jobs": "form"},
    fields={"job_details": ["salaryPeriod", "ä\0"]},
    versions={"jobs": NOW},
    run=Run(NOW, "changed"),
    log=LogPosition("a-log", (1 << 63) - 1),
)


class TestReadAndWrite:
    @pytest.mark.parametrize("state", [FULL, SyncState()], ids=["full", "empty"])
    def test_a_state_is_read_as_it_was_written(self, state: SyncState) -> None:
        assert SyncState.read(json.loads(json.dumps(state.write()))) == state

    def test_a_state_takes_150_bytes_per_job_at_most(self) -> None:
        jobs = {
            str(uuid.UUID(int=number)): Entry(
                "x" * 40, NOW * 1000, NOW * 1000, hash_of(number), NOW
            )
            for number in range(1000)
        }

        small, large = (json.dumps(it.write()) for it in (SyncState(), SyncState(jobs=jobs)))

        assert (len(large) - len(small)) / 1000 <= 150

    def test_a_merge_with_an_earlier_state_brings_no_job_back(self) -> None:
        """Meltano merges the objects of states, and replaces all other values."""
        earlier = json.loads(json.dumps(FULL.write()))
        later = SyncState(jobs={"x": listed("x")}).write()

        merged = SyncState.read(merge(later, earlier))

        assert merged.jobs == {"x": listed("x")}
        assert (merged.closed, merged.run, merged.log) == ({}, None, None)

    def test_a_merge_does_not_select_a_stream_again(self) -> None:
        """Else no detail would be pending for the table that missed a run."""
        earlier = SyncState(forms={"jobs": "1", "job_details": "1"}).write()
        later = SyncState(forms={"job_details": "1"}).write()

        assert SyncState.read(merge(later, earlier)).forms == {"job_details": "1"}

    def test_a_state_recognises_the_key_and_does_not_reveal_it(self) -> None:
        assert hash_key("secret") == hash_key("secret") != hash_key("other")
        assert "secret" not in json.dumps(FULL.write())

    @pytest.mark.parametrize(
        "change",
        [
            {"format": 1},
            {"format": 3},
            {"format": True},
            {"format": 2.0},
            {"format": "2"},
            {"jobs": None},
            {"jobs": {"x": ["p", 1, None, "h", 1]}},
            {"jobs": [["x", "p", 1, None, "h"]]},
            {"jobs": [["x", "p", 1, None, "h", 1, 1]]},
            {"jobs": [[7, "p", 1, None, "h", 1]]},
            {"jobs": [["x", None, 1, None, "h", 1]]},
            {"jobs": [["x", "p", None, None, "h", 1]]},
            {"jobs": [["x", "p", -1, None, "h", 1]]},
            {"jobs": [["x", "p", True, None, "h", 1]]},
            {"jobs": [["x", "p", 1.5, None, "h", 1]]},
            {"jobs": [["x", "p", LATEST * 1000 + 1, None, "h", 1]]},
            {"jobs": [["x", "p", 1, "soon", "h", 1]]},
            {"jobs": [["x", "p", 1, None, 7, 1]]},
            {"jobs": [["x", "p", 1, None, "h", LATEST + 1]]},
            {"jobs": [["x", "p", 1, None, "h", 10**400]]},
            {"jobs": [["x", "p", 1, None, "h", float("inf")]]},
            {"jobs": [[]]},
            {"jobs": [7]},
            {"closed": {}, "jobs": 7},
            {"closed": [["x", "p", None, 1, 2]]},
            {"closed": [["x", "p", None, None, 2, 3]]},
            {"closed": [["x", "p", None, 1, 2, "now"]]},
            {"listedAt": "now"},
            {"listedAt": -1},
            {"key": None},
            {"forms": []},
            {"forms": {"jobs": 7}},
            {"fields": {"jobs": 7}},
            {"fields": {"jobs": [7]}},
            {"versions": {"jobs": "1"}},
            {"versions": {"jobs": None}},
            {"run": "x"},
            {"run": 5},
            {"run": [NOW]},
            {"run": [NOW, 7]},
            {"run": ["now", "all"]},
            {"log": "x"},
            {"log": ["a-log"]},
            {"log": [7, 1]},
            {"log": ["a-log", 1 << 63]},
        ],
        ids=lambda change: json.dumps(change)[:60],
    )
    def test_a_damaged_state_is_refused(self, change: dict[str, Any]) -> None:
        with pytest.raises(DamagedStateError):
            SyncState.read(FULL.write() | change)

    @pytest.mark.parametrize("name", list(SyncState().write()))
    def test_a_state_with_a_part_missing_is_refused(self, name: str) -> None:
        state = SyncState().write()
        del state[name]

        with pytest.raises(DamagedStateError):
            SyncState.read(state)

    @pytest.mark.parametrize("value", [None, [], "x", 7, {}, {"format": 2}])
    def test_what_was_never_a_state_is_refused(self, value: object) -> None:
        with pytest.raises(DamagedStateError):
            SyncState.read(value)


class TestListings:
    def test_a_job_that_is_listed_first_was_opened_after_the_listing_before(self) -> None:
        state = SyncState()

        state.note_listing(listing(job("a")), 1000)
        state.note_listing(listing(job("a"), job("b")), 2000)

        assert state.periods() == {
            "a": Period("public-a", None, 1000, 2000, None),
            "b": Period("public-b", 1000, 2000, 2000, None),
        }

    def test_a_job_that_is_gone_was_closed_after_the_listing_before(self) -> None:
        state = state_of(listing(job("a"), job("b")), listing(job("b"), gone=["a"]))

        assert state.periods() == {
            "a": Period("public-a", None, 1000, 1000, 2000),
            "b": Period("public-b", None, 1000, 2000, None),
        }
        assert list(state.jobs) == ["b"]

    def test_the_record_of_a_closed_job_is_kept_until_it_is_written(self) -> None:
        state = state_of(listing(job("a")), listing(gone=["a"]), listing(job("b")))

        again = SyncState.read(json.loads(json.dumps(state.write())))

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

    def test_an_incomplete_listing_begins_periods_and_ends_none(self) -> None:
        state = state_of(listing(job("a")), listing(job("b"), complete=False))

        assert state.listed_at == 1000
        assert list(state.jobs) == ["a", "b"]

        state.note_listing(listing(job("b"), gone=["a"]), 3000)

        assert state.periods() == {
            "a": Period("public-a", None, 1000, 1000, 3000),
            "b": Period("public-b", 1000, 2000, 3000, None),
        }

    def test_a_job_that_only_an_incomplete_listing_showed_was_last_seen_then(self) -> None:
        state = state_of(listing(), listing(job("a"), complete=False), listing(gone=["a"]))

        assert state.periods() == {"a": Period("public-a", 1000, 2000, 2000, 3000)}

    def test_an_incomplete_listing_shows_that_a_job_is_published_again(self) -> None:
        state = state_of(listing(job("a")), listing(gone=["a"]), listing(job("a"), complete=False))

        assert state.closed == {}
        assert state.jobs["a"] == Entry("public-a", 3000, 2000)

    def test_a_lost_state_starts_the_times_of_published_jobs_anew(self) -> None:
        state = SyncState()

        state.note_listing(listing(job("a")), 5000)

        assert state.periods() == {"a": Period("public-a", None, 5000, 5000, None)}

    def test_a_job_keeps_its_period_and_its_detail_under_another_public_id(self) -> None:
        state = state_with(a=fetched("a"))

        state.note_listing(listing(job("a")._replace(public_id="renamed")), 3000)

        assert state.jobs["a"] == fetched("a")._replace(public_id="renamed")
        assert state.known == {"a": "renamed"}

    def test_what_only_a_state_of_format_1_knows_gets_its_times_from_the_listing(self) -> None:
        state = SyncState(jobs={"a": Entry("", 0, None, "hash", NOW), "b": Entry("", 0, None)})
        assert state.known == {}

        state.note_listing(listing(job("a")), 3000)

        assert state.jobs == {"a": Entry("public-a", 3000, None, "hash", NOW)}
        assert state.closed == {}

    @pytest.mark.parametrize(
        ("listed_at", "now", "time"),
        [
            pytest.param(None, 1.5, 1500, id="first"),
            pytest.param(1000, 1.5, 1500, id="later"),
            pytest.param(1500, 1.5, 1501, id="within a millisecond"),
            pytest.param(9000, 1.5, 9001, id="the clock was put back"),
        ],
    )
    def test_the_times_of_listings_increase(
        self, listed_at: int | None, now: float, time: int
    ) -> None:
        assert SyncState(listed_at=listed_at).next_listing_time(now) == time


class TestDetails:
    def test_a_written_detail_is_noted_with_the_summary_it_was_fetched_for(self) -> None:
        state = state_with(a=listed("a"))
        state.run = Run(NOW - 10, "all")

        state.note_detail(job("a", "b"), NOW + 0.9)

        assert state.jobs["a"] == listed("a")._replace(detail_hash=hash_of("b"), fetched_at=NOW)

    def test_a_detail_is_never_noted_before_its_run(self) -> None:
        """Else a clock that was put back would make the run fetch it again."""
        state = state_with(a=listed("a"))
        state.run = Run(NOW, "all")

        state.note_detail(job("a"), NOW - 500)

        assert state.jobs["a"].fetched_at == NOW

    def test_details_are_owed_by_the_public_ids_that_webhooks_name(self) -> None:
        state = state_with(a=fetched("a"), b=fetched("b"))

        state.mark_pending_by_public_id({"public-a", "public-unknown", "b"})

        assert state.jobs == {"a": fetched("a")._replace(detail_hash=""), "b": fetched("b")}

    def test_a_run_has_all_details_once_each_was_written_in_it(self) -> None:
        state = state_with(a=fetched("a"), b=fetched("b", age=0), c=listed("c"))
        state.run = Run(NOW - 10, "all")

        answers = [state.has_all_details({"c"}), state.has_all_details({"a"})]
        state.note_detail(job("a"), NOW)
        answers += [state.has_all_details(set()), state.has_all_details({"c"})]
        state.mark_pending("b")
        answers.append(state.has_all_details({"c"}))

        assert answers == [False, False, False, True, False]

    def test_no_details_are_complete_without_a_run(self) -> None:
        assert not SyncState().has_all_details(set())


class TestForms:
    def test_other_columns_of_details_make_all_details_pending(self) -> None:
        state = SyncState(jobs={"a": fetched("a")}, run=Run(NOW, "all"))
        state.note_forms({"jobs": "1", "job_details": "1"})

        assert state.note_forms({"jobs": "1", "job_details": "2"})

        assert state.jobs == {"a": listed("a")}
        assert state.run is None
        assert state.forms == {"jobs": "1", "job_details": "2"}

    @pytest.mark.parametrize(
        ("before", "forms", "after"),
        [
            pytest.param({}, {"job_details": "1"}, {"job_details": "1"}, id="of format 1"),
            pytest.param(
                {"job_details": "1"}, {"job_details": "1"}, {"job_details": "1"}, id="the same"
            ),
            pytest.param(
                {"job_details": "1"},
                {"jobs": "1"},
                {"jobs": "1", "job_details": "1"},
                id="details deselected",
            ),
            pytest.param(
                {"jobs": "1", "job_details": "1"},
                {"jobs": "2", "job_details": "1"},
                {"jobs": "2", "job_details": "1"},
                id="other columns of jobs",
            ),
            pytest.param({"jobs": "1"}, {}, {}, id="jobs deselected"),
        ],
    )
    def test_any_other_change_makes_no_detail_pending(
        self, before: dict[str, str], forms: dict[str, str], after: dict[str, str]
    ) -> None:
        state = state_with(a=fetched("a"))
        state.forms, state.run = before, Run(NOW, "all")

        assert not state.note_forms(forms)

        assert state.jobs == {"a": fetched("a")}
        assert state.run == Run(NOW, "all")
        assert state.forms == after


class TestVersions:
    def test_versions_are_whole_seconds_and_increase(self) -> None:
        """Also within a second, and when the clock is put back."""
        state = SyncState()

        versions = [state.next_version("jobs", now) for now in (NOW + 0.9, NOW, NOW - DAY)]
        versions.append(state.next_version("job_details", NOW - DAY))

        assert versions == [NOW, NOW + 1, NOW + 2, NOW - DAY]
        assert state.versions == {"jobs": NOW + 2, "job_details": NOW - DAY}


class TestFields:
    def test_a_field_is_new_once(self) -> None:
        state = SyncState()

        seen = [
            state.note_fields("job_details", names)
            for names in ({"b", "a"}, {"a"}, set[str](), {"c", "a"})
        ]

        assert seen == [["a", "b"], [], [], ["c"]]
        assert state.fields == {"job_details": ["a", "b", "c"]}
        assert state.note_fields("jobs", {"a"}) == ["a"]

    def test_a_server_that_invents_fields_does_not_fill_the_state(self) -> None:
        state = SyncState()

        state.note_fields("jobs", {f"field-{number}" for number in range(MOST_FIELDS - 1)})

        assert len(state.note_fields("jobs", {"one", "two"})) == 1
        assert state.note_fields("jobs", {"three"}) == []
        assert len(state.fields["jobs"]) == MOST_FIELDS


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
