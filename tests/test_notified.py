"""Runs under `notified`: none at all without news, and as `changed` with news."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness import captured, paths, select_only, sync
from public_jobs_sandbox.postings import make_jobs

from tap_public_jobs import changelog
from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Output
    from public_jobs_sandbox.state import Sandbox

Config = dict[str, Any]
LIST = ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]
STREAMS = ("jobs", "job_publications", "job_details")


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append([])
    return log


@pytest.fixture
def notified(config: Config, tmp_path: Path, log: ChangeLog) -> Config:
    """Settings under which a run needs news."""
    assert log
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    return config | {"detail_refresh": "notified", "changes_url": url}


def asked(sandbox: Sandbox) -> list[str]:
    """The paths requested since the last look."""
    found = paths(sandbox.requests)
    sandbox.requests.clear()
    return found


def job(sandbox: Sandbox, number: int) -> dict[str, Any]:
    return sandbox.organisation.published()[number].job


def titles(output: Output) -> dict[str, str]:
    return {row["publicId"]: row["jobTitle"] for row in output.records("job_details")}


def position(state: dict[str, Any]) -> int:
    _, read = state["bookmarks"]["jobs"]["sync"]["log"]
    return int(read)


def test_the_first_run_is_a_backfill(sandbox: Sandbox, notified: Config) -> None:
    output = sync(notified)

    names = [posting.job["publicId"] for posting in sandbox.organisation.published()]
    assert sorted(titles(output)) == sorted(names)
    assert len(asked(sandbox)) == 3 + 25


def test_no_news_costs_no_request_and_writes_no_record(
    sandbox: Sandbox, notified: Config, caplog: pytest.LogCaptureFixture
) -> None:
    first = sync(notified)
    asked(sandbox)

    with caplog.at_level("INFO"):
        second = sync(notified, state=first.state)
        third = sync(notified, state=second.state)

    assert asked(sandbox) == []
    for output in (second, third):
        assert output.state["bookmarks"]["jobs"] == first.state["bookmarks"]["jobs"]
        assert {m["type"] for m in output.messages} == {"STATE"}
    assert "no news since the last run: nothing to fetch" in caplog.text


def test_news_that_names_no_job_costs_the_list_and_what_changed(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    edited = job(sandbox, 4)["publicId"]
    sandbox.edit(edited, jobTitle="Chief of Everything")
    log.append([None])
    asked(sandbox)

    second = sync(notified, state=first.state)
    sync(notified, state=second.state)

    assert asked(sandbox) == [*LIST, f"/jobs/{edited}"]
    assert titles(second) == {edited: "Chief of Everything"}


def test_news_costs_the_list_and_what_was_named_or_changed(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    """A change of the detail alone is found only because a webhook named it."""
    first = sync(notified)
    named, edited, gone = (job(sandbox, number) for number in (3, 4, 5))
    new = make_jobs(1, seed=99)[0]
    sandbox.edit(named["publicId"], roleOverview="Everything.")
    sandbox.edit(edited["publicId"], jobTitle="Chief of Everything")
    sandbox.unpublish(gone["publicId"])
    sandbox.publish(new)
    log.append([named["publicId"], gone["publicId"]])
    asked(sandbox)

    second = sync(notified, state=first.state)
    third = sync(notified, state=second.state)

    details = {named["publicId"], edited["publicId"], new["publicId"]}
    assert asked(sandbox)[:3] == LIST
    assert set(titles(second)) == details
    assert titles(second)[edited["publicId"]] == "Chief of Everything"
    (row,) = [it for it in second.records("job_details") if it["publicId"] == named["publicId"]]
    assert row["roleOverview"] == "Everything."
    closed = [it for it in second.records("job_publications") if it["unpublishedAt"]]
    assert [it["id"] for it in closed] == [gone["id"]]
    assert third.of("RECORD") == []


def test_details_do_not_expire(
    sandbox: Sandbox, notified: Config, log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sync(notified)
    named = job(sandbox, 3)["publicId"]
    log.append([named])
    asked(sandbox)
    monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(lambda: 4_000_000_000.0))

    second = sync(notified, state=first.state)

    assert asked(sandbox) == [*LIST, f"/jobs/{named}"]
    assert list(titles(second)) == [named]


def test_a_flood_of_unknown_public_ids_costs_the_list_once(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    """Each of them could be anything; not one is requested, remembered, or named again."""
    first = sync(notified)
    log.append([f"unknown-{number}" for number in range(5_000)])
    asked(sandbox)

    second = sync(notified, state=first.state)
    third = sync(notified, state=second.state)

    assert asked(sandbox) == LIST
    assert second.records("job_details") == third.of("RECORD") == []
    assert position(second.state) == 5_000
    size = [len(json.dumps(output.state)) for output in (first, second)]
    assert size[1] < size[0] + 100


def test_a_notification_that_arrives_while_its_job_is_fetched_is_not_lost(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    """The answer may be from before the change."""
    first = sync(notified)
    public_id = job(sandbox, 3)["publicId"]
    log.append([public_id])
    sandbox.at_request(len(sandbox.requests) + 4, lambda: log.append([public_id]))

    second = sync(notified, state=first.state)
    asked(sandbox)
    third = sync(notified, state=second.state)
    fourth = sync(notified, state=third.state)

    assert list(titles(second)) == list(titles(third)) == [public_id]
    assert asked(sandbox) == [*LIST, f"/jobs/{public_id}"]
    assert fourth.of("RECORD") == []


def test_a_detail_that_fails_is_owed_until_it_arrives(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    good, bad = job(sandbox, 3)["publicId"], job(sandbox, 4)["publicId"]
    sandbox.fail_next("redirect", None, bad)
    log.append([bad, good])

    with captured() as failed, pytest.raises(PublicJobsError, match=bad):
        TapPublicJobs(config=notified, state=first.state).sync_all()
    sandbox.recover()
    asked(sandbox)
    third = sync(notified, state=failed.state)
    fourth = sync(notified, state=third.state)

    assert list(titles(failed)) == [good]
    assert asked(sandbox) == [*LIST, f"/jobs/{bad}"]
    assert list(titles(third)) == [bad]
    assert fourth.of("RECORD") == []


def test_a_state_that_no_target_acknowledged_is_news_again(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    log.append([job(sandbox, 3)["publicId"]])

    lost = sync(notified, state=first.state)
    again = sync(notified, state=first.state)

    assert titles(lost) == titles(again) != {}


def test_a_run_that_stops_before_the_list_has_read_no_news(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    log.append([job(sandbox, 3)["publicId"]])
    key = notified["api_key"]
    sandbox.revoke(key)

    with captured() as stopped, pytest.raises(PublicJobsError, match="refused the key"):
        TapPublicJobs(config=notified, state=first.state).sync_all()
    third = sync(notified | {"api_key": sandbox.add_key()}, state=stopped.state)

    assert list(titles(third)) == [job(sandbox, 3)["publicId"]]


@pytest.mark.parametrize("reason", ["another log", "rows removed", "an older copy"])
def test_a_log_that_does_not_cover_everything_is_no_reason_to_believe_that_nothing_changed(
    sandbox: Sandbox,
    notified: Config,
    log: ChangeLog,
    tmp_path: Path,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log.append(["a", "b", "c"])
    first = sync(notified)
    edited = job(sandbox, 3)["publicId"]
    sandbox.edit(edited, jobTitle="Chief of Everything")
    if reason == "another log":
        notified["changes_url"] = f"sqlite:///{tmp_path / 'new.db'}"
        ChangeLog(notified["changes_url"]).append([])
    elif reason == "rows removed":
        monkeypatch.setattr(changelog, "KEPT", 1)
        log.append(["anything", "else"])
    else:
        first.state["bookmarks"]["jobs"]["sync"]["log"][1] = 100
    asked(sandbox)

    with caplog.at_level("INFO"):
        second = sync(notified, state=first.state)
        third = sync(notified, state=second.state)

    assert asked(sandbox) == [*LIST, f"/jobs/{edited}"]
    assert titles(second) == {edited: "Chief of Everything"}
    assert third.of("RECORD") == []
    assert caplog.text.count("The change log does not cover everything since the last run") == 1


@pytest.mark.parametrize("refresh", ["changed", "all"])
def test_other_modes_take_in_what_was_notified(
    sandbox: Sandbox, notified: Config, log: ChangeLog, refresh: str
) -> None:
    """They find a change that shows in the detail alone, and a run of `notified` has no news."""
    config = notified | {"detail_refresh": refresh}
    first = sync(config)
    public_id = job(sandbox, 3)["publicId"]
    sandbox.edit(public_id, roleOverview="Everything.")
    log.append([public_id, "unknown"])
    asked(sandbox)

    second = sync(config, state=first.state)
    third = sync(notified, state=second.state)

    rows = {row["publicId"]: row["roleOverview"] for row in second.records("job_details")}
    assert rows[public_id] == "Everything."
    assert len(rows) == (1 if refresh == "changed" else 25)
    assert third.of("RECORD") == []
    assert position(second.state) == 2


def test_an_unreadable_log_stops_notified_before_any_request(
    sandbox: Sandbox, notified: Config, tmp_path: Path
) -> None:
    config = notified | {"changes_url": f"sqlite:///{tmp_path / 'typo.db'}"}

    with captured() as output, pytest.raises(PublicJobsError, match="changes_url"):
        TapPublicJobs(config=config).sync_all()

    assert asked(sandbox) == []
    assert output.of("RECORD") == []
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("refresh", ["changed", "all"])
def test_an_unreadable_log_costs_other_modes_a_warning_and_no_news(
    sandbox: Sandbox,
    notified: Config,
    log: ChangeLog,
    tmp_path: Path,
    refresh: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The position stays, so that the next run that can read the log misses nothing."""
    first = sync(notified)
    public_id = job(sandbox, 3)["publicId"]
    sandbox.edit(public_id, roleOverview="Everything.")
    log.append([public_id])
    broken = notified | {"changes_url": f"sqlite:///{tmp_path / 'typo.db'}"}

    second = sync(broken | {"detail_refresh": refresh}, state=first.state)
    third = sync(notified, state=second.state)

    assert len(second.records("jobs")) == 25
    assert position(second.state) == 0
    assert "There is no change log in" in caplog.text
    assert list(titles(third)) == [public_id]


@pytest.mark.parametrize("damage", [[], {"log": 1}, ["x", "1"], "text"])
def test_a_damaged_state_is_no_state(sandbox: Sandbox, notified: Config, damage: Any) -> None:
    state = json.loads(json.dumps(sync(notified).state))
    state["bookmarks"]["jobs"]["sync"]["log"] = damage
    asked(sandbox)

    sync(notified, state=state)

    assert asked(sandbox)[:3] == LIST


def test_notified_needs_a_log(config: Config) -> None:
    with pytest.raises(Exception, match="changes_url is required under detail_refresh: notified"):
        TapPublicJobs(config=config | {"detail_refresh": "notified"})


def test_a_job_under_a_new_public_id_is_not_closed(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    old = job(sandbox, 3)
    sandbox.unpublish(old["publicId"])
    sandbox.publish(old | {"publicId": "renamed", "jobTitle": "Renamed"})
    log.append([old["publicId"]])

    second = sync(notified, state=first.state)

    assert titles(second) == {"renamed": "Renamed"}
    (period,) = [it for it in second.records("job_publications") if it["id"] == old["id"]]
    assert (period["publicId"], period["unpublishedAt"]) == ("renamed", None)


def test_another_job_under_a_public_id_closes_the_first(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    old = job(sandbox, 3)
    sandbox.organisation.postings.pop(old["publicId"])
    sandbox.publish(old | {"id": "another"})
    log.append([old["publicId"]])

    second = sync(notified, state=first.state)

    assert [row["id"] for row in second.records("job_details")] == ["another"]
    closed = [it["id"] for it in second.records("job_publications") if it["unpublishedAt"]]
    assert closed == [old["id"]]


def test_an_organisation_that_replaces_all_its_jobs_goes_on(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    before = [posting.job for posting in sandbox.organisation.published()]
    for it in before:
        sandbox.unpublish(it["publicId"])
    new = make_jobs(3, seed=77)
    for it in new:
        sandbox.publish(it)
    log.append([new[0]["publicId"]])

    second = sync(notified, state=first.state)

    assert titles(second) == {it["publicId"]: it["jobTitle"] for it in new}
    closed = {it["id"] for it in second.records("job_publications") if it["unpublishedAt"]}
    assert closed == {it["id"] for it in before}


def test_what_is_selected_anew_is_written_without_news(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    only_jobs = select_only(notified, "jobs")
    first = sync(notified, catalog=only_jobs)
    log.append([job(sandbox, 3)["publicId"]])
    second = sync(notified, catalog=only_jobs, state=first.state)
    asked(sandbox)

    third = sync(notified, state=second.state)

    assert [len(third.records(name)) for name in STREAMS] == [25, 25, 25]
    assert len(asked(sandbox)) == 3 + 25


@pytest.mark.parametrize(
    "change", [{"column_naming": "snake_case"}, {"stream_maps": {"job_details": {"x": "1"}}}]
)
@pytest.mark.parametrize("refresh", ["changed", "notified"])
def test_other_columns_are_in_every_row_after_one_run(
    notified: Config, change: Config, refresh: str
) -> None:
    config = notified | {"detail_refresh": refresh}
    first = sync(config)

    second = sync(config | change, state=first.state)
    third = sync(config | change, state=second.state)

    assert len(second.records("job_details")) == 25
    assert third.records("job_details") == []
