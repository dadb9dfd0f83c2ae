"""Second runs: what they fetch, what they remember, and when they take effect."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import Output, captured, paths, sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs

from tap_public_jobs import snapshot, streams
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from public_jobs_sandbox.state import Sandbox

Config = dict[str, Any]
DAY = 86_400


class Clock:
    """The wall clock that the streams ask, moved by the test."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    for module in (snapshot, streams):
        monkeypatch.setattr(module, "time", clock)
    return clock  # type: ignore[return-value]


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
    for public_id in names(sandbox)[:3]:
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
    assert len(sandbox.requests) == 3 + 6
    assert fetched(sandbox) == expected
    assert sorted(r["publicId"] for r in second.records("job_details")) == expected
    assert "Fetched 6 of 249 details (2 new, 4 changed); 243 unchanged." in caplog.text
    assert [r["publicId"] for r in second.records("jobs")] == names(sandbox)


def test_a_partial_refresh_is_not_activated(sandbox: Sandbox, changed: Config) -> None:
    """The table keeps the last known detail of every job; `jobs` says which are published."""
    first = sync(changed)
    sandbox.edit(names(sandbox)[0], jobTitle="Chief of Everything")

    second = sync(changed, state=first.state)
    third = sync(changed, state=second.state)

    assert activated(first) == ["jobs", "job_details"]
    assert activated(second) == ["jobs"]
    assert third.records("job_details") == []
    assert activated(third) == ["jobs"]


def test_nothing_changed_costs_the_listing_alone(sandbox: Sandbox, changed: Config) -> None:
    state = sync(changed).state
    fetched(sandbox)

    sync(changed, state=state)

    assert paths(sandbox.requests) == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


def test_details_expire_and_are_then_a_full_snapshot(
    sandbox: Sandbox, changed: Config, clock: Clock
) -> None:
    state = sync(changed).state
    fetched(sandbox)
    clock.now += 7 * DAY

    second = sync(changed, state=state)

    assert fetched(sandbox) == sorted(names(sandbox))
    assert activated(second) == ["jobs", "job_details"]


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
    assert state["bookmarks"]["job_details"]["ledger"]["ids"] == left


@pytest.mark.parametrize("refresh", ["all", "changed"])
@pytest.mark.usefixtures("no_waiting")
def test_a_run_that_was_interrupted_goes_on_where_it_stopped(
    sandbox: Sandbox, config: Config, refresh: str
) -> None:
    """Under the same version, with the details that are missing, and then activates."""
    settings = config | {"detail_refresh": refresh, "max_concurrent_requests": 1}
    sandbox.at_request(154, lambda: sandbox.fail_next("http_500", times=None))
    first = stopped_by(settings, "5 details in a row failed")
    sandbox.recover()
    done = fetched(sandbox)

    second = sync(settings, state=first.state)

    assert [r["publicId"] for r in first.records("job_details")] == names(sandbox)[:150]
    assert set(done) > set(names(sandbox)[:150])
    # A set: a last try of the first run may still be on its way.
    assert set(fetched(sandbox)) == set(names(sandbox)[150:])
    (version,) = {message["version"] for message in first.of("RECORD", "job_details")}
    assert second.of("ACTIVATE_VERSION", "job_details")[0]["version"] == version
    rows = {r["id"] for run in (first, second) for r in run.records("job_details")}
    assert len(rows) == 250
    assert second.state["bookmarks"]["job_details"]["ledger"]["run"] is None


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
    remembered = json.dumps(state["bookmarks"]["job_details"]["ledger"])
    requests = len(sandbox.requests)
    sandbox.at_request(
        requests + (1 if "first" in which else 3), lambda: sandbox.revoke(sandbox.key)
    )

    failed = stopped_by(changed, "refused the key", state)

    assert json.dumps(failed.state["bookmarks"]["job_details"]["ledger"]) == remembered


@pytest.mark.usefixtures("no_waiting")
def test_a_run_interrupted_a_day_ago_is_begun_afresh(
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


@pytest.mark.usefixtures("no_waiting")
def test_an_interrupted_run_of_batches_claims_only_what_it_announced(
    sandbox: Sandbox, config: Config, tmp_path: Path
) -> None:
    """A record is in a file, and the file announced, well after it was taken."""
    batch = {
        "encoding": {"format": "jsonl", "compression": "gzip"},
        "storage": {"root": f"file://{tmp_path}"},
        "batch_size": 100,
    }
    settings = config | {"batch_config": batch, "detail_refresh": "changed"}
    sandbox.at_request(154, lambda: sandbox.fail_next("http_500", times=None))
    first = stopped_by(settings, "5 details in a row failed")
    sandbox.recover()

    second = sync(settings, state=first.state)

    rows = [
        json.loads(line)["id"]
        for output in (first, second)
        for message in output.of("BATCH", "job_details")
        for url in message["manifest"]
        for line in gzip.decompress(Path(url.removeprefix("file://")).read_bytes()).splitlines()
    ]
    assert set(rows) == {posting.job["id"] for posting in sandbox.organisation.published()}


def test_a_run_left_by_a_merge_of_states_is_not_gone_on_with(
    sandbox: Sandbox, config: Config
) -> None:
    state = sync(config).state
    fetched(sandbox)
    bookmark = state["bookmarks"]["job_details"]
    old = bookmark["version"] - 50
    bookmark["ledger"]["run"] = [old, old, "all", True]

    second = sync(config, state=state)

    assert fetched(sandbox) == sorted(names(sandbox))
    assert second.of("ACTIVATE_VERSION", "job_details")[0]["version"] > bookmark["version"] - 1


def test_state_is_written_in_proportion_to_the_jobs(config: Config, sandbox: Sandbox) -> None:
    """Every max(100, N/20) details, so some 20 times a run, and ever less often in a list."""
    for job in make_jobs(2750, seed=5):
        sandbox.publish(job)

    output = sync(config)

    kinds = [m["type"] for m in output.messages if m.get("stream") != "jobs"]
    runs = "".join("S" if kind == "STATE" else "r" for kind in kinds).split("S")
    assert max(len(run) for run in runs) <= 150 + 1
    assert len(output.of("STATE")) <= 40
    size = len(json.dumps(output.state, separators=(",", ":")))
    assert size / 3000 < 110


def test_listed_jobs_that_stay_404_do_not_end_a_run_of_changed(
    sandbox: Sandbox, changed: Config
) -> None:
    """All it plans to fetch is gone, but that is not all there is."""
    hidden = names(sandbox)[:5]
    for public_id in hidden:
        sandbox.fail_next("http_404", times=None, path=public_id)
    state = sync(changed).state
    fetched(sandbox)

    again = sync(changed, state=state)

    assert fetched(sandbox) == sorted(hidden)
    assert activated(again) == ["jobs"]


def test_a_state_that_cannot_be_read_is_set_aside(
    sandbox: Sandbox, changed: Config, caplog: pytest.LogCaptureFixture
) -> None:
    state = {"bookmarks": {"job_details": {"version": 5, "ledger": {"format": 99}}}}

    output = sync(changed, state=state)

    assert "cannot be read" in caplog.text
    assert fetched(sandbox) == sorted(names(sandbox))
    assert activated(output) == ["jobs", "job_details"]


def test_the_connection_test_leaves_the_state_alone(sandbox: Sandbox, config: Config) -> None:
    state = sync(config).state
    before = json.dumps(state["bookmarks"]["job_details"]["ledger"])
    fetched(sandbox)

    with captured() as output:
        TapPublicJobs(config=config, state=state).run_connection_test()

    assert json.dumps(output.state["bookmarks"]["job_details"]["ledger"]) == before
    assert len(sandbox.requests) == 2


@pytest.mark.parametrize("order", ["shuffled", "newest_first"])
def test_a_list_in_any_order_loses_no_job(sandbox: Sandbox, config: Config, order: Any) -> None:
    """In one page a shuffled list is whole; in a stable order the pages fit together."""
    sandbox.options = Options(limited=False, order=order)
    for public_id in names(sandbox)[90:] if order == "shuffled" else []:
        sandbox.unpublish(public_id)

    output = sync(config)

    assert sorted(r["publicId"] for r in output.records("jobs")) == sorted(names(sandbox))
    assert activated(output) == ["jobs", "job_details"]


def test_a_list_shuffled_between_its_pages_is_never_activated_by_mistake(
    sandbox: Sandbox, config: Config
) -> None:
    """Three sweeps of three pages each; activated only if two of them agree."""
    sandbox.options = Options(limited=False, order="shuffled")

    output = sync(config)

    seen = {record["publicId"] for record in output.records("jobs")}
    assert activated(output) == (["jobs", "job_details"] if len(seen) == 250 else [])
    assert len([path for path in paths(sandbox.requests) if "?" in path]) <= 12
