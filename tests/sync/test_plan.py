"""When details expire, and whether a run under `notified` has something to do."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tap_public_jobs.api.models import JobRef, hash_of
from tap_public_jobs.changes import KEPT, Changes
from tap_public_jobs.sync.plan import (
    has_work,
    is_covered,
    plan_details,
)
from tap_public_jobs.sync.state import HOUR, LAGGING, Cycle, Job, LastRead, Listing, SyncState

# Seconds since the epoch.
NOW = 1_800_000_000

DAY = 24 * HOUR
WEEK = 7 * DAY


# A job as a listing shows it, and what is known of it after its detail was fetched.
LISTED = JobRef("x", "public-x", hash_of("a"))
FETCHED = Job("public-x", None, 1000, 2000, SyncState().row_hash(LISTED), NOW - HOUR)


def test_the_details_of_a_backfill_do_not_all_expire_in_one_run() -> None:
    """With a run a day and an age of a week, they are spread over the days from 3.5 to 7."""
    names = [f"job-{number}" for number in range(1000)]
    refs = {name: JobRef(name, "public-x", LISTED.summary_hash) for name in names}
    listing = Listing(refs, {}, [], {}, 0, [], is_complete=True)
    expired = []
    for day in range(8):
        at = NOW - HOUR + day * DAY
        state = SyncState(run_time=at, jobs=dict.fromkeys(names, FETCHED))
        plan = plan_details(state, listing, Cycle(at, "changed"), 7 * DAY, math.inf)
        expired.append(len(plan))

    assert expired[:4] == [0, 0, 0, 0]
    assert expired[7] == 1000
    assert all(0 <= later - earlier < 350 for earlier, later in pairwise(expired))


# What the records of the last run were made of.
BEFORE = {"jobs": "1", "job_details": "1"}


def x_with(**fields: Any) -> dict[str, Any]:
    """The change of a state whose only job has these values."""
    return {"jobs": {"x": FETCHED._replace(**fields)}}


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
    state.jobs = {"x": FETCHED._replace(detail_hash="")}
    state.note_forms({"jobs": "1"})

    assert not has_work(state, end_at(), NOW)


def quiet() -> SyncState:
    """What is known after a complete run that has read the log."""
    state = SyncState(run_time=NOW - 60, listed_at=2000, jobs={"x": FETCHED})
    state.forms = BEFORE
    state.cycle = Cycle(NOW - 100, "changed", has_ended=True)
    state.last_read = LastRead("a-log", 7, 0)
    return state
