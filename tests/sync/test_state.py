"""What is remembered between runs, and what a run has to fetch."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tap_public_jobs.ledger import DamagedLedgerError, Entry, Ledger, Run, fingerprint
from tap_public_jobs.api.listing import Job

if TYPE_CHECKING:
    from tap_public_jobs.ledger import Refresh

NOW = 1_800_000_000
DAY = 86_400
WEEK = 7 * DAY


def job(name: str, content: str = "a") -> Job:
    return Job(name, f"public-{name}", fingerprint(content))


def entry(content: str = "a", age: int = 3600) -> Entry:
    return Entry(fingerprint(content), NOW - age)


def planned(
    ledger: Ledger, jobs: list[Job], refresh: Refresh = "all", now: float = NOW, age: float = WEEK
) -> dict[Job, str]:
    """The plan of a run, whose version is that of its time if it is a new one."""
    return dict(ledger.plan(jobs, refresh, now, age, lambda: int(now)))


@pytest.mark.parametrize(
    ("refresh", "known", "reason"),
    [
        pytest.param("all", None, "new", id="all: new"),
        pytest.param("all", entry("b"), "changed", id="all: changed"),
        pytest.param("all", entry(age=0), "refreshed", id="all: just fetched by another run"),
        pytest.param("changed", None, "new", id="changed: new"),
        pytest.param("changed", entry("b"), "changed", id="changed: changed"),
        pytest.param("changed", entry(), None, id="changed: unchanged"),
        pytest.param("changed", entry(age=3 * DAY), None, id="changed: less than half its age"),
        pytest.param("changed", entry(age=WEEK), "refreshed", id="changed: too old"),
        pytest.param("changed", entry(age=-3600), None, id="changed: the clock was put back"),
        pytest.param("changed", entry(age=-2 * DAY), "refreshed", id="changed: from the future"),
    ],
)
def test_what_is_fetched_and_why(refresh: Refresh, known: Entry | None, reason: str | None) -> None:
    ledger = Ledger({"x": known} if known else {})

    assert planned(ledger, [job("x")], refresh) == ({job("x"): reason} if reason else {})


@pytest.mark.parametrize("age", [0, 3600, -3600])
def test_an_age_of_zero_fetches_everything(age: int) -> None:
    """Whatever the clock says."""
    ledger = Ledger({"x": entry(age=age)})

    assert planned(ledger, [job("x")], "changed", age=0) == {job("x"): "refreshed"}


def test_the_details_of_a_backfill_do_not_all_expire_in_one_run() -> None:
    """With a run a day and an age of a week, they are spread over the days from 3.5 to 7."""
    names = [f"job-{number}" for number in range(1000)]
    entries = {name: Entry(fingerprint("a"), NOW) for name in names}
    jobs = [job(name) for name in names]

    expired = [
        len(planned(Ledger(dict(entries)), jobs, "changed", NOW + day * DAY)) for day in range(8)
    ]

    assert expired[:4] == [0, 0, 0, 0]
    assert expired[7] == 1000
    assert all(later - earlier < 350 for earlier, later in pairwise(expired))


def test_an_interrupted_run_owes_what_it_did_not_come_to() -> None:
    run = Run(NOW - 100, NOW - 100, "all")
    ledger = Ledger({"old": entry(), "done": entry(age=50)}, run)

    plan = planned(ledger, [job("new"), job("old"), job("done")])

    assert ledger.run == run
    assert plan == {job("new"): "new", job("old"): "refreshed"}


def test_an_interrupted_run_of_all_is_owed_under_changed_too() -> None:
    run = Run(NOW - 100, NOW - 100, "all")
    ledger = Ledger({"old": entry(), "done": entry(age=50)}, run)

    assert planned(ledger, [job("old"), job("done")], "changed") == {job("old"): "refreshed"}


@pytest.mark.parametrize(
    ("refresh", "run"),
    [
        pytest.param("all", Run(5, NOW - DAY, "all"), id="a day old"),
        pytest.param("all", Run(5, NOW + DAY, "all"), id="from the future"),
        pytest.param("all", Run(5, NOW - 100, "changed"), id="was not to fetch all"),
    ],
)
def test_what_is_no_longer_owed_is_begun_afresh(refresh: Refresh, run: Run) -> None:
    ledger = Ledger({"done": entry(age=50)}, run)

    assert planned(ledger, [job("done")], refresh) == {job("done"): "refreshed"}
    assert ledger.run == Run(NOW, NOW, refresh)


def test_a_run_of_all_that_wrote_a_job_unpublished_since_is_begun_afresh() -> None:
    """Its version would keep that row; under `changed` such rows are kept anyway."""
    run = Run(NOW - 100, NOW - 100, "all")
    entries = {"old": entry(), "done": entry(age=50), "unpublished": entry(age=50)}
    jobs = [job("old"), job("done")]

    afresh, goes_on = Ledger(dict(entries), run), Ledger(dict(entries), run)
    assert planned(afresh, jobs, "all") == dict.fromkeys(jobs, "refreshed")
    assert planned(goes_on, jobs, "changed") == {job("old"): "refreshed"}
    assert (afresh.run, goes_on.run) == (Run(NOW, NOW, "all"), run._replace(exact=False))

    # Nor can a run of all go on with what a run of changed has gone on with.
    assert planned(goes_on, jobs, "all") == dict.fromkeys(jobs, "refreshed")


@pytest.mark.parametrize("gone", ["done", "pending"])
def test_any_job_gone_since_may_have_been_written(gone: str) -> None:
    """A target may have loaded what no state told of."""
    run = Run(NOW - 100, NOW - 100, "all")
    entries = {"done": entry(age=50), "pending": entry(), "other": entry()}
    ledger = Ledger(entries, run)

    planned(ledger, [job(name) for name in entries if name != gone])

    assert ledger.run == Run(NOW, NOW, "all")


def test_a_job_missing_from_an_unsettled_list_is_not_gone() -> None:
    run = Run(NOW - 100, NOW - 100, "all")
    ledger = Ledger({"done": entry(age=50), "missed": entry(age=50)}, run)

    plan = ledger.plan([job("done")], "all", NOW, WEEK, lambda: NOW, all_listed=False)

    assert plan == {}
    assert ledger.run == run
    assert list(ledger.entries) == ["done", "missed"]


def test_an_age_of_zero_does_not_fetch_again_what_an_interrupted_run_has() -> None:
    run = Run(NOW - 100, NOW - 100, "changed")
    ledger = Ledger({"done": entry(age=50), "old": entry()}, run)

    jobs = [job("done"), job("old")]
    assert planned(ledger, jobs, "changed", age=0) == {job("old"): "refreshed"}


def test_a_job_written_before_an_interruption_and_gone_after_it_is_not_whole() -> None:
    run = Run(NOW - 100, NOW - 100, "all")
    ledger = Ledger({"x": entry("b", age=50), "y": entry(age=50)}, run)
    planned(ledger, [job("x"), job("y")])

    ledger.gone(job("x"))

    assert not ledger.whole


def test_a_run_begins_after_whatever_was_fetched_before() -> None:
    """Two runs within a second, or a clock that was put back, fetch all all the same."""
    ledger = Ledger({"x": entry(age=-30)})

    assert planned(ledger, [job("x")]) == {job("x"): "refreshed"}
    assert ledger.run == Run(NOW, NOW + 31, "all")
    ledger.done(job("x"), NOW)
    assert ledger.whole


def test_a_run_is_whole_when_every_published_detail_was_written_in_it() -> None:
    ledger = Ledger({"x": entry(), "unpublished": entry()})
    planned(ledger, [job("x"), job("y"), job("z")], "changed")
    wholes = [ledger.whole]

    ledger.done(job("y"), NOW)
    ledger.gone(job("z"))
    wholes.append(ledger.whole)  # x is of an earlier run
    ledger.done(job("x"), NOW)
    wholes.append(ledger.whole)

    assert wholes == [False, False, True]
    assert list(ledger.entries) == ["x", "y"]


def test_state_is_read_as_it_was_written() -> None:
    ledger = Ledger({"x": entry(), "ä/\ud800": entry("b", 0)}, Run(NOW, NOW, "changed"))

    state = json.loads(json.dumps(ledger.write()))

    again = Ledger.read(state)
    assert again.entries == ledger.entries
    assert again.run == ledger.run
    ledger.finish()
    assert Ledger.read(ledger.write()).run is None
    assert Ledger.read(None).entries == {}


def test_state_is_compact() -> None:
    """Besides the id, 31 characters a job."""
    small = Ledger()
    large = Ledger({f"job-{number:06}": entry() for number in range(1000)})

    grown = len(json.dumps(large.write(), separators=(",", ":"))) - len(
        json.dumps(small.write(), separators=(",", ":"))
    )

    assert grown / 1000 - len("job-000000") < 31


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": None},
        {"format": True},
        {"fingerprints": [1] * 16},
        {"fetchedAt": [10**400, 1]},
        {"fetchedAt": ["1", "2"]},
        {"ids": "xy"},
        {"run": [10**400, 1, "all", True]},
        {"ids": ["x"]},
        {"ids": 7},
        {"run": [1, 2, "all"]},
        {"fetchedAt": ["soon", "later"]},
        {"fetchedAt": [float("inf"), 1]},
        {"fingerprints": None},
        {"fingerprints": "abc"},
        {"run": [1, 2]},
        {"run": "x"},
        {"run": 5},
    ],
)
def test_a_damaged_state_is_refused(change: dict[str, Any]) -> None:
    state = Ledger({"x": entry(), "y": entry()}).write() | change

    with pytest.raises(DamagedLedgerError):
        Ledger.read(state)


@pytest.mark.parametrize("state", [[], "x", 7, {}, {"format": 1}])
def test_what_was_never_a_state_is_refused(state: Any) -> None:
    with pytest.raises(DamagedLedgerError):
        Ledger.read(state)


def test_a_fingerprint_changes_with_any_value_and_not_with_their_order() -> None:
    summary = {"id": "x", "minSalary": Decimal("5.0"), "extra": {"a": [1, None]}}

    assert fingerprint(summary) == fingerprint(dict(reversed(summary.items())))
    assert len(fingerprint(summary)) == 8
    for name, value in (("id", "y"), ("minSalary", 5.1), ("extra", {"a": [1]})):
        assert fingerprint(summary | {name: value}) != fingerprint(summary)
