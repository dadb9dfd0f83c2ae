"""Second runs: what they fetch, what they remember, and when they take effect."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from harness import Output, captured, catalog_of, paths, select_only, sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs

from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.sync import plan
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox

Config = dict[str, Any]
DAY = 86_400


class Clock:
    """The tap's clock, moved by the test."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(clock))
    return clock


@pytest.fixture
def changed(config: Config) -> Config:
    return config | {"detail_refresh": "changed"}


def names(sandbox: Sandbox) -> list[str]:
    return [posting.job["publicId"] for posting in sandbox.organisation.published()]


def fetched(sandbox: Sandbox) -> list[str]:
    """The publicIds whose details were asked for since the last look, and forget them."""
    asked = [path.removeprefix("/jobs/") for path in paths(sandbox.requests) if "?" not in path]
    sandbox.requests.clear()
    return sorted(asked)


def stopped_by(config: Config, reason: str, state: dict[str, Any] | None = None) -> Output:
    """Run until a problem ends it; the state that a target would have acknowledged is the last."""
    with captured() as output, pytest.raises(PublicJobsError, match=reason):
        TapPublicJobs(config=config, state=state).sync_all()
    return output


def activated(output: Output) -> list[str]:
    return [message["stream"] for message in output.of("ACTIVATE_VERSION")]


def test_all_fetches_all_again(sandbox: Sandbox, config: Config) -> None:
    """Also within the same second."""
    first = sync(config)
    fetched(sandbox)

    second = sync(config, state=first.state)

    assert fetched(sandbox) == sorted(names(sandbox))
    assert activated(second) == ["jobs", "job_details"]
    for stream in activated(second):
        versions = [run.of("ACTIVATE_VERSION", stream)[0]["version"] for run in (first, second)]
        assert versions[1] > versions[0]


def test_changed_fetches_new_and_changed_jobs_alone(
    sandbox: Sandbox, changed: Config, caplog: pytest.LogCaptureFixture
) -> None:
    first = sync(changed)
    fetched(sandbox)
    gone = names(sandbox)[:3]
    for public_id in gone:
        sandbox.unpublish(public_id)
    edited = names(sandbox)[10:14]
    for public_id in edited:
        sandbox.edit(public_id, maxSalary=1_000_000)
    new = make_jobs(2, seed=99)
    for job in new:
        sandbox.publish(job)

    with caplog.at_level(logging.INFO):
        second = sync(changed, state=first.state)

    expected = sorted([*edited, *(job["publicId"] for job in new)])
    assert paths(sandbox.requests)[:3] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]
    # The list, the details of the three jobs that are gone, and six more.
    assert len(sandbox.requests) == 3 + 3 + 6
    assert fetched(sandbox) == sorted([*expected, *gone])
    assert sorted(r["publicId"] for r in second.records("job_details")) == expected
    assert "Fetching 6 of 24 details (2 new, 4 changed)" in caplog.text
    assert "details: 6 fetched, 18 unchanged, 0 failed, 0 unpublished during" in caplog.text
    assert "2 jobs opened and 3 jobs closed since the last complete listing" in caplog.text
    assert [r["publicId"] for r in second.records("jobs")] == names(sandbox)


def test_a_partial_refresh_is_not_activated(sandbox: Sandbox, changed: Config) -> None:
    """The table keeps the last known detail of every job; `jobs` says which are published."""
    first = sync(changed)
    sandbox.edit(names(sandbox)[0], jobTitle="Chief of Everything")

    second = sync(changed, state=first.state)
    third = sync(changed, state=second.state)

    assert activated(first) == activated(second) == ["jobs"]
    assert third.records("job_details") == []
    assert activated(third) == ["jobs"]


def test_nothing_changed_costs_the_listing_alone(sandbox: Sandbox, changed: Config) -> None:
    state = sync(changed).state
    fetched(sandbox)

    sync(changed, state=state)

    assert paths(sandbox.requests) == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


def test_details_expire(sandbox: Sandbox, changed: Config, clock: Clock) -> None:
    state = sync(changed).state
    fetched(sandbox)
    clock.now += 7 * DAY

    second = sync(changed, state=state)

    assert fetched(sandbox) == sorted(names(sandbox))
    assert activated(second) == ["jobs"]


def test_an_organisation_that_unpublishes_all_keeps_its_details_under_changed(
    changed: Config, sandbox: Sandbox
) -> None:
    state = sync(changed).state
    for public_id in names(sandbox):
        sandbox.unpublish(public_id)

    assert set(activated(sync(changed, state=state))) == {"jobs"}
    assert set(activated(sync(changed | {"detail_refresh": "all"}, state=state))) == {
        "jobs",
        "job_details",
    }


def test_unpublished_jobs_leave_the_state(sandbox: Sandbox, changed: Config) -> None:
    state = sync(changed).state
    for public_id in names(sandbox)[5:]:
        sandbox.unpublish(public_id)

    state = sync(changed, state=state).state

    left = [posting.job["id"] for posting in sandbox.organisation.published()]
    assert [row[0] for row in state["bookmarks"]["jobs"]["sync"]["jobs"]] == left


@pytest.mark.parametrize("refresh", ["all", "changed"])
def test_an_interrupted_run_resumes_where_it_stopped(
    sandbox: Sandbox, config: Config, refresh: str
) -> None:
    """Under the same version, with the details that are missing; under `all`, it activates."""
    settings = config | {"detail_refresh": refresh, "max_concurrent_requests": 1}
    sandbox.at_request(3 + 15, lambda: sandbox.revoke(sandbox.key))
    first = stopped_by(settings, "refused the key")
    done = [r["publicId"] for r in first.records("job_details")]
    settings["api_key"] = sandbox.add_key()
    fetched(sandbox)

    second = sync(settings, state=first.state)

    assert len(done) == 14
    assert fetched(sandbox) == sorted(set(names(sandbox)) - set(done))
    (version,) = {message["version"] for message in first.of("RECORD", "job_details")}
    assert {message["version"] for message in second.of("RECORD", "job_details")} == {version}
    activations = second.of("ACTIVATE_VERSION", "job_details")
    assert [message["version"] for message in activations] == [version] * (refresh == "all")
    rows = {r["id"] for run in (first, second) for r in run.records("job_details")}
    assert len(rows) == 25
    assert second.state["bookmarks"]["jobs"]["sync"]["unfinished"] is None


def test_a_resumed_run_repeats_at_most_one_interval_also_after_churn(
    sandbox: Sandbox, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target dies with the last state that it was sent; one job written is gone since."""
    monkeypatch.setattr(plan, "FEWEST_BETWEEN_CHECKPOINTS", 5)
    first = sync(config)
    records = [n for n, m in enumerate(first.messages) if m.get("stream") == "job_details"]
    read = first.messages[: records[1 + 17]]  # the SCHEMA and 17 records
    written = [m["record"]["publicId"] for m in read if m["type"] == "RECORD"][-17:]
    state = [m["value"] for m in read if m["type"] == "STATE"][-1]
    sandbox.unpublish(written[0])
    fetched(sandbox)

    second = sync(config, state=state)

    asked = fetched(sandbox)
    assert len(set(asked) & set(written[1:])) <= 5
    assert set(asked) == {written[0]} | (set(names(sandbox)) - set(written[:15]))
    assert activated(second) == ["jobs", "job_details"]


@pytest.mark.usefixtures("no_waiting")
def test_a_detail_that_failed_is_all_that_the_next_run_fetches(
    sandbox: Sandbox, config: Config
) -> None:
    broken = names(sandbox)[7]
    sandbox.fail_next("http_500", times=None, path=broken)
    first = stopped_by(config, broken)
    sandbox.recover()
    fetched(sandbox)

    second = sync(config, state=first.state)

    assert fetched(sandbox) == [broken]
    assert activated(first) == ["jobs"]
    assert activated(second) == ["jobs", "job_details"]


@pytest.mark.parametrize("which", ["the first page", "the third page"])
def test_a_run_that_fails_before_the_details_forgets_nothing(
    sandbox: Sandbox, changed: Config, which: str
) -> None:
    state = sync(changed).state
    remembered = json.dumps(state["bookmarks"]["jobs"]["sync"])
    requests = len(sandbox.requests)
    sandbox.at_request(
        requests + (1 if "first" in which else 3), lambda: sandbox.revoke(sandbox.key)
    )

    failed = stopped_by(changed, "refused the key", state)

    assert json.dumps(failed.state["bookmarks"]["jobs"]["sync"]) == remembered


@pytest.mark.usefixtures("no_waiting")
def test_a_run_interrupted_a_day_ago_starts_over(
    sandbox: Sandbox, config: Config, clock: Clock
) -> None:
    sandbox.fail_next("http_500", times=None, path=names(sandbox)[7])
    first = stopped_by(config, "is missing")
    sandbox.recover()
    fetched(sandbox)
    clock.now += DAY

    second = sync(config, state=first.state)

    assert fetched(sandbox) == sorted(names(sandbox))
    assert activated(second) == ["jobs", "job_details"]


def test_state_is_written_in_proportion_to_the_jobs(
    config: Config, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every N/20 details of many, so some 20 times a run, and ever less often in a list."""
    monkeypatch.setattr(plan, "FEWEST_BETWEEN_CHECKPOINTS", 10)
    for job in make_jobs(275, seed=5):
        sandbox.publish(job)

    output = sync(config | {"page_size": 100})

    others = ("jobs", "job_publications")
    kinds = [m["type"] for m in output.messages if m.get("stream") not in others]
    runs = "".join("S" if kind == "STATE" else "r" for kind in kinds).split("S")
    assert max(len(run) for run in runs) <= 15 + 1
    assert len(output.of("STATE")) <= 25
    size = len(json.dumps(output.state, separators=(",", ":")))
    assert size / 300 < 150


def test_a_state_that_cannot_be_read_is_set_aside(
    sandbox: Sandbox, changed: Config, caplog: pytest.LogCaptureFixture
) -> None:
    state = {"bookmarks": {"jobs": {"sync": {"format": 99}}}}

    output = sync(changed, state=state)

    assert "cannot be read" in caplog.text
    assert fetched(sandbox) == sorted(names(sandbox))
    assert activated(output) == ["jobs"]


@pytest.mark.parametrize("order", ["shuffled", "newest_first"])
def test_a_list_in_any_order_loses_no_job(sandbox: Sandbox, config: Config, order: Any) -> None:
    """Shuffled between any two pages, it takes some sweeps to see all jobs."""
    sandbox.options = Options(limited=False, order=order)

    output = sync(config)

    assert sorted(r["publicId"] for r in output.records("jobs")) == sorted(names(sandbox))
    assert activated(output) == ["jobs", "job_details"]


def test_a_run_without_details_is_not_resumed_with_them(sandbox: Sandbox, config: Config) -> None:
    """It would write them under the version of an earlier run, whose rows would then stay."""
    first = sync(config)
    sandbox.unpublish(names(sandbox)[0])
    catalog = select_only(config, "jobs", "job_publications")
    read = sync(config, state=first.state, catalog=catalog).messages
    state = [m["value"] for m in read if m["type"] == "STATE"][1]

    third = sync(config, state=state)

    versions = [run.of("ACTIVATE_VERSION", "job_details")[0]["version"] for run in (first, third)]
    assert versions[0] < versions[1]


@pytest.mark.usefixtures("no_waiting")
def test_a_detail_that_fails_for_good_does_not_keep_the_others_from_being_refreshed(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """The run after a failure fetches what failed; those after that fetch everything."""
    broken = names(sandbox)[7]
    sandbox.fail_next("http_400", times=None, path=broken)
    state = stopped_by(config, broken).state
    asked = []
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            fetched(sandbox)
            state = sync(config, state=state).state
            asked.append(fetched(sandbox))

    assert asked == [[broken], sorted(names(sandbox)), sorted(names(sandbox))]
    assert "details: 0 fetched, 0 unchanged, 1 failed" in caplog.text


class TestWithoutState:
    """Meltano passes no state if the plugin does not declare the capability."""

    HINT = "No state came in. If this is not the first run, add `state` to the plugin's "

    def test_a_run_of_meltano_says_so(
        self, config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("MELTANO_EXTRACTOR_NAME", "tap-public-jobs")

        with caplog.at_level(logging.INFO):
            state = sync(config).state
        assert caplog.text.count(self.HINT) == 1

        caplog.clear()
        with caplog.at_level(logging.INFO):
            sync(config, state=state)
        assert self.HINT not in caplog.text

    def test_a_run_with_a_catalog_says_so(
        self, config: Config, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO):
            sync(config, catalog=catalog_of(config))

        assert caplog.text.count(self.HINT) == 1
