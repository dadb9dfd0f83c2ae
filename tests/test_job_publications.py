"""`job_publications`: since when and until when jobs are published, on any target."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from harness import Output, captured, paths, select_only, sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

Config = dict[str, Any]
HOUR = 3600
START = 1_800_000_000
REFRESHES = pytest.mark.parametrize("refresh", ["all", "changed"])


class Clock:
    """An hour per run."""

    def __init__(self) -> None:
        self.now = float(START)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(clock))
    return clock


def at(hour: float) -> str:
    moment = datetime.fromtimestamp(START + hour * HOUR, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def periods(output: Output) -> dict[str, tuple[str | None, ...]]:
    """The four times of each job."""
    names = ("openedAfter", "firstSeenAt", "lastSeenAt", "unpublishedAt")
    rows = output.rows("job_publications")
    return {key: tuple(row[name] for name in names) for key, row in rows.items()}


def stopped(config: Config, reason: str, state: dict[str, Any] | None = None) -> Output:
    with captured() as output, pytest.raises(PublicJobsError, match=reason):
        TapPublicJobs(config=config, state=state).sync_all()
    return output


def ids(sandbox: Sandbox) -> list[str]:
    return [posting.job["id"] for posting in sandbox.organisation.published()]


@REFRESHES
def test_times_over_four_runs(sandbox: Sandbox, config: Config, clock: Clock, refresh: str) -> None:
    """A job opened in (openedAfter, firstSeenAt], and closed in (lastSeenAt, unpublishedAt]."""
    config |= {"detail_refresh": refresh}
    gone = sandbox.organisation.published()[0].job
    new = make_jobs(1, seed=99)[0]
    stays = ids(sandbox)[1]

    first = sync(config)
    clock.now += HOUR
    sandbox.publish(new)
    second = sync(config, state=first.state)
    clock.now += HOUR
    sandbox.unpublish(gone["publicId"])
    third = sync(config, state=second.state)
    clock.now += HOUR
    sandbox.publish(gone)
    fourth = sync(config, state=third.state)

    assert periods(first) == dict.fromkeys(periods(first), (None, at(0), at(0), None))
    assert periods(second)[new["id"]] == (at(0), at(1), at(1), None)
    assert periods(second)[stays] == (None, at(0), at(1), None)
    assert periods(third)[gone["id"]] == (None, at(0), at(1), at(2))
    assert periods(third)[new["id"]] == (at(0), at(1), at(2), None)
    assert periods(fourth)[gone["id"]] == (at(2), at(3), at(3), None)
    assert periods(fourth).keys() == {*ids(sandbox)}
    assert [len(periods(run)) for run in (first, second, third, fourth)] == [25, 26, 26, 26]


def test_it_is_never_activated(sandbox: Sandbox, config: Config) -> None:
    first = sync(config)
    sandbox.unpublish(sandbox.organisation.published()[0].job["publicId"])

    second = sync(config, state=first.state)

    for output in (first, second):
        assert {m["stream"] for m in output.of("ACTIVATE_VERSION")} == {"jobs", "job_details"}
        assert not any("version" in it for it in output.of("RECORD", "job_publications"))


def test_a_closed_job_is_written_once(sandbox: Sandbox, config: Config) -> None:
    first = sync(config)
    gone = sandbox.organisation.published()[0].job
    sandbox.unpublish(gone["publicId"])

    second = sync(config, state=first.state)
    third = sync(config, state=second.state)

    assert gone["id"] in periods(second)
    assert gone["id"] not in periods(third)


class TwoRuns(NamedTuple):
    """Between them one job was unpublished and one published; each took place in its own hour."""

    sandbox: Sandbox
    config: Config
    first: Output
    second: Output
    gone: str
    new: str


@pytest.fixture(scope="module")
def two_runs() -> Iterator[TwoRuns]:
    sandbox, new = Sandbox.demo(jobs=25, options=Options(limited=False)), make_jobs(1, seed=99)[0]
    gone = sandbox.organisation.published()[0].job
    clock = Clock()
    with serving(sandbox) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TapPublicJobs, "clock", staticmethod(clock))
        config = {"api_key": sandbox.key, "base_url": url, "page_size": 10}
        config["rate_limit_requests"] = 100_000
        first = sync(config)
        clock.now += HOUR
        sandbox.unpublish(gone["publicId"])
        sandbox.publish(new)
        second = sync(config, state=copy.deepcopy(first.state))
        yield TwoRuns(sandbox, config, first, second, gone["id"], new["id"])


@pytest.mark.parametrize("number", range(0, 110, 5))
def test_a_crash_at_any_message_loses_and_duplicates_no_period(
    two_runs: TwoRuns, clock: Clock, number: int
) -> None:
    """The target has read this many messages of the second run, and kept the last state."""
    sandbox, config, first, second, gone, new = two_runs
    crashed = Output(second.messages[:number])
    states = [m["value"] for m in [*first.messages, *crashed.messages] if m["type"] == "STATE"]
    clock.now += 2 * HOUR

    third = sync(config, state=copy.deepcopy(states[-1]))

    table = periods(first) | periods(crashed) | periods(third)
    opened_after, first_seen, last_seen, unpublished = table[new]
    assert (opened_after, last_seen, unpublished) == (at(0), at(2), None)
    assert first_seen in {at(1), at(2)}
    assert table[gone][:3] == (None, at(0), at(0))
    assert table[gone][3] in {at(1), at(2)}
    assert table.keys() == {*ids(sandbox), gone}


def test_after_a_lost_state_the_rule_still_finds_what_is_published(
    sandbox: Sandbox, config: Config, clock: Clock
) -> None:
    """Published: unpublishedAt is null, and lastSeenAt is the latest of all."""
    first = sync(config)
    gone = sandbox.organisation.published()[0].job
    sandbox.unpublish(gone["publicId"])
    clock.now += HOUR

    second = sync(config)

    table = periods(first) | periods(second)
    latest = max(str(last_seen) for _, _, last_seen, _ in table.values())
    published = {key for key, it in table.items() if it[2] == latest and it[3] is None}
    assert published == {*ids(sandbox)}
    assert table[gone["id"]] == (None, at(0), at(0), None)


def test_an_incomplete_list_closes_nothing_and_writes_no_period(
    sandbox: Sandbox, config: Config, clock: Clock
) -> None:
    """Until the next complete one, which knows when a job was first seen."""
    first = sync(config)
    new = make_jobs(1, seed=99)[0]
    sandbox.publish(new)
    bad = sandbox.organisation.published()[3].job
    sandbox.edit(bad["publicId"], id="")
    clock.now += HOUR
    second = stopped(config, "without a usable id", first.state)
    sandbox.edit(bad["publicId"], id=bad["id"])
    clock.now += HOUR

    third = sync(config, state=second.state)

    assert second.records("job_publications") == []
    assert second.of("ACTIVATE_VERSION") == []
    assert len(second.records("jobs")) == 25
    assert periods(third)[new["id"]] == (at(0), at(1), at(2), None)
    assert periods(third)[bad["id"]] == (None, at(0), at(2), None)


def test_a_job_seen_in_an_incomplete_list_alone_has_a_period(
    sandbox: Sandbox, config: Config, clock: Clock
) -> None:
    first = sync(config)
    new = make_jobs(1, seed=99)[0]
    sandbox.publish(new)
    bad = sandbox.organisation.published()[3].job
    sandbox.edit(bad["publicId"], id="")
    clock.now += HOUR
    second = stopped(config, "without a usable id", first.state)
    sandbox.edit(bad["publicId"], id=bad["id"])
    sandbox.unpublish(new["publicId"])
    clock.now += HOUR

    third = sync(config, state=second.state)

    assert periods(third)[new["id"]] == (at(0), at(1), at(1), at(2))


def test_a_swap_between_two_pages_closes_no_published_job(sandbox: Sandbox, config: Config) -> None:
    """One job is unpublished, one published at the end: the total stays, and no id repeats."""
    first = sync(config)
    sandbox.requests.clear()
    missed = ids(sandbox)[10]  # moves from the second page to the first
    gone, new = sandbox.organisation.published()[0].job, make_jobs(1, seed=99)[0]

    def swap() -> None:
        sandbox.unpublish(gone["publicId"])
        sandbox.publish(new)

    sandbox.at_request(2, swap)
    second = sync(config | {"max_concurrent_requests": 1}, state=first.state)

    assert missed in second.rows("jobs")
    assert periods(second)[missed][3] is None
    assert {key for key, it in periods(second).items() if it[3]} <= {gone["id"]}
    third = sync(config, state=second.state)
    assert {*third.rows("jobs")} == {*ids(sandbox)}


def test_the_key_of_another_organisation_changes_nothing(config: Config) -> None:
    first = sync(config)
    other = Sandbox.demo(jobs=5, options=Options(limited=False), seed=8)
    jobs = make_jobs(5, seed=77)
    with serving(other) as url:
        for posting in other.organisation.published():
            other.unpublish(posting.job["publicId"])
        for job in jobs:
            other.publish(job)
        with captured() as output, pytest.raises(PublicJobsError, match="another organis"):
            TapPublicJobs(
                config=config | {"api_key": other.key, "base_url": url}, state=first.state
            ).sync_all()

    assert output.of("RECORD") == []
    assert output.of("ACTIVATE_VERSION") == []
    assert output.state["bookmarks"]["jobs"] == first.state["bookmarks"]["jobs"]
    again = sync(config, state=output.state)
    assert len(again.records("jobs")) == 25


def test_a_rotated_key_goes_on(sandbox: Sandbox, config: Config) -> None:
    first = sync(config | {"detail_refresh": "changed"})
    sandbox.requests.clear()

    sync(config | {"detail_refresh": "changed", "api_key": sandbox.add_key()}, state=first.state)

    assert paths(sandbox.requests) == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


def test_columns_in_snake_case(config: Config) -> None:
    output = sync(config | {"column_naming": "snake_case"})

    names = {"id", "public_id", "opened_after", "first_seen_at", "last_seen_at", "unpublished_at"}
    assert {frozenset(row) for row in output.records("job_publications")} == {frozenset(names)}


def test_a_job_closed_while_it_is_deselected_is_written_once_it_is_selected_again(
    sandbox: Sandbox, config: Config, clock: Clock
) -> None:
    catalog = select_only(config, "jobs", "job_details")
    first = sync(config)
    gone = sandbox.organisation.published()[0].job
    sandbox.unpublish(gone["publicId"])
    clock.now += HOUR

    second = sync(config, catalog=catalog, state=first.state)
    clock.now += HOUR
    third = sync(config, state=second.state)

    assert second.of("RECORD", "job_publications") == []
    assert periods(third)[gone["id"]] == (None, at(0), at(0), at(1))
    assert third.state["bookmarks"]["jobs"]["sync"]["closed"] == []


def test_the_clock_may_be_put_back(sandbox: Sandbox, config: Config, clock: Clock) -> None:
    first = sync(config)
    clock.now -= 10 * HOUR
    gone = sandbox.organisation.published()[0].job
    sandbox.unpublish(gone["publicId"])

    second = sync(config, state=first.state)

    table = periods(first) | periods(second)
    latest = max(str(it[2]) for it in table.values())
    assert {key for key, it in table.items() if it[2] == latest and not it[3]} == {*ids(sandbox)}
    assert str(table[gone["id"]][3]) > str(table[gone["id"]][2])
