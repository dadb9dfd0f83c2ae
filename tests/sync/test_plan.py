"""Which details a run fetches, and why; when it resumes the run before."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from sync.samples import DAY, NOW, fetched, job, listed, state_with

from tap_public_jobs.changelog import KEPT, Changes
from tap_public_jobs.sync.plan import begin_run, has_work, is_covered, plan_details
from tap_public_jobs.sync.state import LastRead, Unfinished

if TYPE_CHECKING:
    from tap_public_jobs.sync.plan import Refresh
    from tap_public_jobs.sync.state import Entry, SyncState

WEEK = 7 * DAY


def planned(
    state: SyncState, refresh: Refresh = "all", now: float = NOW, age: float = WEEK
) -> dict[str, str]:
    """Why which details are fetched, by id, of a listing that shows all known jobs."""
    begin_run(state, refresh, now)
    plan = plan_details(state, [job(name) for name in state.jobs], now, age)
    return {it.id: reason for it, reason in plan.reasons.items()}


@pytest.mark.parametrize(
    ("refresh", "known", "reason"),
    [
        pytest.param("all", listed("x"), "new", id="all: new"),
        pytest.param("all", fetched("x", "b"), "changed", id="all: changed"),
        pytest.param("all", fetched("x")._replace(detail_hash=""), "pending", id="all: pending"),
        pytest.param("all", fetched("x"), "refreshed", id="all: unchanged"),
        pytest.param("all", fetched("x", age=0), "refreshed", id="all: fetched this second"),
        pytest.param("changed", listed("x"), "new", id="changed: new"),
        pytest.param("changed", fetched("x", "b"), "changed", id="changed: changed"),
        pytest.param(
            "changed", fetched("x")._replace(detail_hash=""), "pending", id="changed: pending"
        ),
        pytest.param("changed", fetched("x"), None, id="changed: unchanged"),
        pytest.param("changed", fetched("x", age=3 * DAY), None, id="changed: below half the age"),
        pytest.param("changed", fetched("x", age=WEEK), "refreshed", id="changed: too old"),
        pytest.param("changed", fetched("x", age=-3600), None, id="changed: clock put back"),
        pytest.param("changed", fetched("x", age=-2 * DAY), "refreshed", id="changed: future"),
    ],
)
def test_what_is_fetched_and_why(refresh: Refresh, known: Entry, reason: str | None) -> None:
    assert planned(state_with(x=known), refresh) == ({"x": reason} if reason else {})


def test_an_age_of_zero_does_not_repeat_what_an_interrupted_run_fetched() -> None:
    state = state_with(done=fetched("done", age=50), old=fetched("old"))
    state.unfinished = Unfinished(NOW - 100, "changed")

    assert planned(state, "changed", age=0) == {"old": "refreshed"}


def test_the_details_of_a_backfill_do_not_all_expire_in_one_run() -> None:
    """With a run a day and an age of a week, they are spread over the days from 3.5 to 7."""
    jobs = {f"job-{number}": fetched(f"job-{number}", age=0) for number in range(1000)}

    expired = [len(planned(state_with(**jobs), "changed", NOW + day * DAY)) for day in range(8)]

    assert expired[:4] == [0, 0, 0, 0]
    assert expired[7] == 1000
    assert all(0 <= later - earlier < 350 for earlier, later in pairwise(expired))


@pytest.mark.parametrize(
    "started_at",
    [NOW - 100, NOW - DAY + 1, NOW + 100],
    ids=["just now", "within a day", "the clock was put back"],
)
@pytest.mark.parametrize("refresh", ["all", "changed"])
def test_an_interrupted_run_is_resumed_within_a_day(refresh: Refresh, started_at: int) -> None:
    run = Unfinished(started_at, refresh)
    state = state_with(done=fetched("done", age=NOW - started_at), new=listed("new"))
    state.unfinished = run

    assert begin_run(state, refresh, NOW)

    assert state.unfinished == run
    assert planned(state, refresh) == {"new": "new"}


@pytest.mark.parametrize(
    ("refresh", "run"),
    [
        pytest.param("all", None, id="it finished"),
        pytest.param("all", Unfinished(NOW - DAY, "all"), id="a day ago"),
        pytest.param("all", Unfinished(NOW + DAY, "all"), id="in the future"),
        pytest.param("all", Unfinished(NOW - 100, "changed"), id="of another kind"),
        pytest.param("all", Unfinished(NOW - 100, "unheard-of"), id="of an unknown kind"),
    ],
)
def test_any_other_run_starts_over(refresh: Refresh, run: Unfinished | None) -> None:
    state = state_with(done=fetched("done", age=50))
    state.unfinished = run

    assert not begin_run(state, refresh, NOW)

    assert state.unfinished == Unfinished(NOW, refresh)
    assert planned(state, refresh) == {"done": "refreshed"}


# What the records of the last run were made of.
BEFORE = {"jobs": "1", "job_details": "1"}


def end_at(log: str = "a-log", position: int = 7) -> Changes:
    """How far a change log has got."""
    return Changes(log, position)


class TestWork:
    """Whether a run under `notified`, and the command `news`, have something to do."""

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
    def test_a_log_may_not_cover_what_happened(self, end: Changes | None, *, covered: bool) -> None:
        state = quiet()

        assert is_covered(state, end) is covered
        assert has_work(state, end) is (end != end_at())

    @pytest.mark.parametrize(
        ("change", "work"),
        [
            pytest.param({"listed_at": None}, True, id="no complete list yet"),
            pytest.param({"log": None}, True, id="no log read yet"),
            pytest.param({"unfinished": Unfinished(NOW, "changed")}, True, id="an unfinished run"),
            pytest.param({"jobs": {"x": listed("x")}}, True, id="a pending detail"),
            pytest.param({"jobs": {"x": listed("x")}, "failed": ["x"]}, False, id="a known gap"),
            pytest.param({"shortfall": 3}, False, id="a known shortfall"),
            pytest.param({"forms": {"jobs": "1"}}, True, id="a stream more is selected"),
            pytest.param({"forms": BEFORE | {"job_publications": "1"}}, False, id="a stream less"),
            pytest.param({"forms": BEFORE | {"jobs": "2"}}, True, id="other columns"),
        ],
    )
    def test_work_may_be_left_from_before(self, change: dict[str, Any], *, work: bool) -> None:
        assert has_work(replace(quiet(), **change), end_at(), BEFORE) is work


def quiet() -> SyncState:
    """What is known after a complete run that has read the log."""
    state = state_with(x=fetched("x"))
    state.forms = BEFORE
    state.log = LastRead("a-log", 7)
    return state
