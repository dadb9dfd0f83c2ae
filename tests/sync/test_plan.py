"""Which details a run fetches, and why; when it resumes the run before."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tap_public_jobs.api.models import JobRef, hash_of
from tap_public_jobs.changes import KEPT, Changes
from tap_public_jobs.sync.plan import (
    RESUME_WITHIN,
    Refresh,
    begin_cycle,
    has_work,
    is_covered,
    plan_details,
)
from tap_public_jobs.sync.state import HOUR, LAGGING, Cycle, Job, LastRead, Listing, SyncState

# Seconds since the epoch.
NOW = 1_800_000_000

DAY = 24 * HOUR
WEEK = 7 * DAY


def job(name: str, content: str = "a") -> JobRef:
    """A job as a listing shows it; another content is another summary."""
    return JobRef(name, f"public-{name}", hash_of(content))


def fetched(name: str, content: str = "a", age: int = 3600) -> Job:
    """What is known of a job whose detail was fetched some seconds ago."""
    row_hash = SyncState().row_hash(job(name, content))
    return Job(f"public-{name}", None, 1000, 2000, row_hash, NOW - age)


def listed(name: str) -> Job:
    """What is known of a job whose detail was never fetched."""
    return Job(f"public-{name}", None, 1000, 2000)


def state_with(**jobs: Job) -> SyncState:
    """What is known after a complete listing of these jobs."""
    return SyncState(run_time=2000, listed_at=2000, jobs=dict(jobs))


def planned(
    state: SyncState, refresh: Refresh = "all", at: int = NOW, age: float = WEEK
) -> dict[str, str]:
    """Why which details are fetched, by id, of a listing that shows all known jobs."""
    cycle, state.run_time = begin_cycle(state.cycle, refresh, at), at
    jobs = {name: job(name) for name in state.jobs}
    listing = Listing(jobs, {}, [], {}, 0, [], is_complete=True)
    plan = plan_details(state, listing, cycle, age, math.inf)
    return {it.id: reason for it, reason in plan.reasons.items()}


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


# What the records of the last run were made of.
BEFORE = {"jobs": "1", "job_details": "1"}


def x_with(**fields: Any) -> dict[str, Any]:
    """The change of a state whose only job has these values."""
    return {"jobs": {"x": fetched("x")._replace(**fields)}}


KNOWN_TO_FAIL = x_with(detail_hash="", failing_since=NOW - 2 * HOUR)


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
        pytest.param({}, False, id="nothing is"),
        pytest.param({"cycle": Cycle(NOW - 100, "changed")}, True, id="an interrupted run"),
        pytest.param({"short_since": NOW - 1}, True, id="the list fell short"),
        pytest.param(x_with(failing_since=NOW - HOUR + 1), True, id="a detail fails"),
        pytest.param(x_with(missing_since=NOW - HOUR + 1), True, id="a job is missing"),
        pytest.param(x_with(missing_since=NOW - 2 * HOUR), False, id="one that is known to be"),
        pytest.param({"listed_at": None}, True, id="no complete list yet"),
        pytest.param({"last_read": None}, True, id="no log read yet"),
        pytest.param({"cycle": None, "jobs": {}}, False, id="no job was ever listed"),
        pytest.param(x_with(detail_hash=""), True, id="a pending detail"),
        pytest.param(KNOWN_TO_FAIL, False, id="one that is known to fail"),
        pytest.param(x_with(detail_hash=LAGGING), True, id="one that lags"),
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
