"""Which details a run fetches, and why; when it resumes the run before."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from sync.samples import DAY, NOW, fetched, job, listed, state_with

from tap_public_jobs.changes import KEPT, Changes
from tap_public_jobs.sync.plan import (
    RESUME_WITHIN,
    Refresh,
    begin_cycle,
    has_work,
    is_covered,
    is_open,
    plan_details,
)
from tap_public_jobs.sync.state import HOUR, LAGGING, Cycle, Job, LastRead, Listing, SyncState

WEEK = 7 * DAY


def planned(
    state: SyncState,
    refresh: Refresh = "all",
    at: int = NOW,
    age: float = WEEK,
    covered_since: float = math.inf,
) -> dict[str, str]:
    """Why which details are fetched, by id, of a listing that shows all known jobs."""
    cycle, state.run_time = begin_cycle(state.cycle, refresh, at), at
    jobs = {name: job(name) for name in state.jobs}
    listing = Listing(jobs, {}, [], {}, 0, [], is_complete=True)
    plan = plan_details(state, listing, cycle, age, covered_since)
    return {it.id: reason for it, reason in plan.items()}


@pytest.mark.parametrize(
    ("refresh", "known", "reason"),
    [
        pytest.param("all", listed("x"), "new", id="all: new"),
        pytest.param("all", fetched("x"), "refreshed", id="all: unchanged"),
        pytest.param("changed", listed("x"), "new", id="changed: new"),
        pytest.param("changed", fetched("x", "b"), "changed", id="changed: changed"),
        pytest.param(
            "changed", fetched("x")._replace(detail_hash=""), "pending", id="changed: pending"
        ),
        pytest.param("changed", fetched("x"), None, id="changed: unchanged"),
        pytest.param("changed", fetched("x", age=3 * DAY), None, id="changed: below half the age"),
        pytest.param("changed", fetched("x", age=WEEK), "refreshed", id="changed: too old"),
        pytest.param(
            "changed", fetched("x")._replace(detail_hash=LAGGING), "changed", id="changed: lagging"
        ),
    ],
)
def test_what_is_fetched_and_why(refresh: Refresh, known: Job, reason: str | None) -> None:
    assert planned(state_with(x=known), refresh) == ({"x": reason} if reason else {})


def test_an_age_of_zero_does_not_repeat_what_an_interrupted_run_fetched() -> None:
    state = state_with(done=fetched("done", age=50), old=fetched("old"))
    state.cycle = Cycle(NOW - 100, "changed")

    assert planned(state, "changed", age=0) == {"old": "refreshed"}


def test_the_details_of_a_backfill_do_not_all_expire_in_one_run() -> None:
    """With a run a day and an age of a week, they are spread over the days from 3.5 to 7."""
    jobs = {f"job-{number}": fetched(f"job-{number}", age=0) for number in range(1000)}

    expired = [len(planned(state_with(**jobs), "changed", NOW + day * DAY)) for day in range(8)]

    assert expired[:4] == [0, 0, 0, 0]
    assert expired[7] == 1000
    assert all(0 <= later - earlier < 350 for earlier, later in pairwise(expired))


def test_what_was_fetched_before_the_notification_log_began_still_expires() -> None:
    """Webhooks named each change from the run of two weeks ago on."""
    state = state_with(old=fetched("old", age=4 * WEEK), covered=fetched("covered", age=2 * WEEK))

    assert planned(state, "changed", covered_since=NOW - 2 * WEEK) == {"old": "refreshed"}


@pytest.mark.parametrize(
    ("cycle", "is_resumed"),
    [
        pytest.param(Cycle(NOW - 100, "all"), True, id="interrupted just now"),
        pytest.param(Cycle(NOW - RESUME_WITHIN + 1, "all"), True, id="within 20 hours"),
        pytest.param(Cycle(NOW - DAY + 1, "all"), False, id="a night ago, and a second early"),
        pytest.param(Cycle(NOW - 100, "changed"), False, id="of another kind"),
        pytest.param(None, False, id="none"),
    ],
)
def test_a_run_resumes_an_open_cycle_of_its_kind(cycle: Cycle | None, *, is_resumed: bool) -> None:
    started_at = cycle.started_at if cycle and is_resumed else NOW
    state = state_with(done=fetched("done", age=NOW - started_at or 50), new=listed("new"))
    state.cycle = cycle

    assert begin_cycle(cycle, "all", NOW) == Cycle(started_at, "all")
    assert planned(state) == {"new": "new"} | ({} if is_resumed else {"done": "refreshed"})


@pytest.mark.parametrize(
    ("has_ended", "evidence", "has_left"),
    [
        pytest.param(False, {}, True, id="interrupted"),
        pytest.param(True, {}, False, id="at its end"),
        pytest.param(True, {"failing_since": NOW - HOUR + 1}, True, id="a detail fails"),
        pytest.param(True, {"missing_since": NOW - HOUR + 1}, True, id="a job is missing"),
        pytest.param(True, {"missing_since": NOW - 2 * HOUR}, False, id="it is known by now"),
        pytest.param(True, {"short_since": NOW - 1}, True, id="the list fell short"),
    ],
)
def test_a_cycle_is_open_until_its_end_and_while_something_is_newly_wrong(
    evidence: dict[str, Any], *, has_ended: bool, has_left: bool
) -> None:
    state = quiet()
    state.cycle = Cycle(NOW - 100, "changed", has_ended)
    state.short_since = evidence.pop("short_since", 0)
    state.jobs["x"] = state.jobs["x"]._replace(**evidence)

    assert is_open(state, NOW) is has_left
    assert has_work(state, end_at(), NOW, BEFORE) is has_left


# What the records of the last run were made of.
BEFORE = {"jobs": "1", "job_details": "1"}
FAILING = {"x": listed("x")._replace(failing_since=NOW - 2 * HOUR)}


def end_at(log: str = "a-log", position: int = 7) -> Changes:
    """How far a notification log has got."""
    return Changes(log, position)


# Whether a run under `notified`, and the command `news`, have something to do.


@pytest.mark.parametrize(
    ("end", "covered"),
    [
        pytest.param(end_at(), True, id="no notification since"),
        pytest.param(end_at(position=8), True, id="one since"),
        pytest.param(end_at(position=KEPT + 7), True, id="all since are there"),
        pytest.param(end_at(position=KEPT + 8), False, id="one was forgotten"),
        pytest.param(end_at(position=6), False, id="an earlier copy was restored"),
        pytest.param(end_at(log="another"), False, id="another log"),
        pytest.param(None, False, id="no log"),
    ],
)
def test_a_log_may_not_cover_what_happened(end: Changes | None, *, covered: bool) -> None:
    state = quiet()

    assert is_covered(state, end) is covered
    assert has_work(state, end, NOW) is (end != end_at())


@pytest.mark.parametrize(
    ("change", "work"),
    [
        pytest.param({"listed_at": None}, True, id="no complete list yet"),
        pytest.param({"last_read": None}, True, id="no log read yet"),
        pytest.param({"cycle": None, "jobs": {}}, False, id="no job was ever listed"),
        pytest.param({"jobs": {"x": listed("x")}}, True, id="a pending detail"),
        pytest.param({"jobs": FAILING}, False, id="one that is known to fail"),
        pytest.param(
            {"jobs": {"x": fetched("x")._replace(detail_hash=LAGGING)}}, True, id="it lags"
        ),
        pytest.param({"awaited": {"y": NOW - 60}}, True, id="a job that is awaited"),
        pytest.param({"forms": {"job_details": "1"}}, True, id="a stream more is selected"),
        pytest.param({"forms": BEFORE | {"other": "1"}}, False, id="a stream less"),
        pytest.param({"forms": BEFORE | {"jobs": "2"}}, True, id="other columns"),
    ],
)
def test_work_may_be_left_from_before(change: dict[str, Any], *, work: bool) -> None:
    assert has_work(replace(quiet(), **change), end_at(), NOW, BEFORE) is work


def test_details_that_are_not_selected_any_more_are_no_work() -> None:
    state = quiet()
    state.jobs = {"x": listed("x")}
    state.note_forms({"jobs": "1"})

    assert not has_work(state, end_at(), NOW)


def quiet() -> SyncState:
    """What is known after a complete run that has read the log."""
    state = state_with(x=fetched("x"))
    state.run_time = NOW - 60
    state.forms = BEFORE
    state.cycle = Cycle(NOW - 100, "changed", has_ended=True)
    state.last_read = LastRead("a-log", 7, 0)
    return state
