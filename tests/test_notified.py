"""Runs under `notified`: none at all without news, and as `changed` with news."""

import json
from pathlib import Path

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, Pipeline
from harness import select_only

from tap_public_jobs import changes
from tap_public_jobs.changelog import ChangeLog


def position(pipeline: Pipeline) -> int:
    """How far the notification log has been read."""
    _, read, _ = pipeline.state["bookmarks"]["jobs"]["sync"]["log"]
    return int(read)


def test_a_lagging_detail_is_asked_twice(api: FakeApi, notified: Pipeline, log: ChangeLog) -> None:
    """It lacks a change that the list shows. One that is new or refreshed is asked for once."""
    api.answers = {f"pub-{key}": {**api.published[key]} for key in "34"}
    api.answers |= {"pub-5": {"id": "5"}, "pub-new": {"id": "new", "jobTitle": "Another"}}
    api.publish("new")
    for key in "345":
        api.edit(key, jobTitle="Edited")
    log.append({log.name: ["pub-3"]})

    every = sorted(api.published)
    for keys, age in ((["3", "4", "5", "new"], 7), (["3", "4"], 7), (every, 0), ([], 7)):
        notified.run(detail_refresh="changed", detail_max_age_days=age)
        assert sorted(api.details) == [f"pub-{key}" for key in keys]
        api.answers.pop("pub-3", None)
    assert notified.hard.rows["job_details"]["3"]["jobTitle"] == "Edited"


def test_a_flood_of_unknown_public_ids_costs_the_list_and_twenty_requests(
    notified: Pipeline, log: ChangeLog
) -> None:
    """Those that were named last are asked for, once no replica can lag. None is remembered."""
    size = len(json.dumps(notified.state))
    log.append({log.name: ["unknown-7"]})
    notified.run()
    log.append({log.name: [f"unknown-{number}" for number in range(5_000)]})
    log.append({log.name: ["unknown-7"]})

    asked = [f"detail unknown-{number}" for number in (7, *range(4_981, 5_000))]
    for later, requests in ((60, LIST), (600, LIST), (1, asked), (1, [])):
        assert sorted(notified.run(later=later)) == sorted(requests)
        assert notified.output.records("job_details") == []
    assert position(notified) == 5_003
    assert len(json.dumps(notified.state)) < size + 100


@pytest.mark.parametrize("is_covered", [True, False], ids=["covered", "before the log began"])
def test_a_detail_expires_if_it_was_fetched_before_the_log_began(
    api: FakeApi, changes_url: str, log: ChangeLog, *, is_covered: bool
) -> None:
    """Nobody will ever name its change. While every change is named, nothing expires."""
    pipeline = Pipeline(api, changes_url=changes_url) if is_covered else Pipeline(api)
    pipeline.run(detail_refresh="changed")
    api.edit("3", roleOverview="Everything.")
    pipeline.config |= {"changes_url": changes_url, "detail_refresh": "notified"}

    for _ in range(3):
        log.append({log.name: ["pub-5"]})
        pipeline.run(later=8 * 86_400)

    found = pipeline.hard.rows["job_details"]["3"]["roleOverview"]
    assert found == ("About 3." if is_covered else "Everything.")
    assert sorted(pipeline.run()) == []


@pytest.mark.parametrize("reason", ["another log", "rows removed", "an older copy"])
def test_a_log_that_does_not_cover_everything_is_no_reason_to_believe_that_nothing_changed(
    api: FakeApi,
    notified: Pipeline,
    log: ChangeLog,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change of the detail alone is found if a notification that is left names it."""
    api.edit("3", jobTitle="Chief of Everything")
    api.edit("4", roleOverview="Everything.")
    log.append({log.name: ["pub-4"]})
    if reason == "rows removed":
        monkeypatch.setattr(changes, "KEPT", 1)
        log.append({log.name: ["pub-5"]})
    else:
        last_read = notified.state["bookmarks"]["jobs"]["sync"]["log"]
        last_read[:2] = ["another", 2] if reason == "another log" else [last_read[0], 100]

    with caplog.at_level("INFO"):
        assert {*notified.run()} >= {*LIST}

    left = {"3", "5"} if reason == "rows removed" else {"1", "3", "4"}  # 1: the first notification
    assert notified.output.rows("job_details").keys() == left
    assert notified.run() == []
    assert (
        caplog.text.count("The notification log does not cover everything since the last run") == 1
    )
    warnings = [it.getMessage() for it in caplog.records if it.levelname == "WARNING"]
    lost = "The notification log was full and dropped 1 notifications"
    assert [it[: len(lost)] for it in warnings] == [lost] * (reason == "rows removed")


@pytest.mark.parametrize("refresh", ["notified", "changed", "all"])
def test_an_unreadable_log_stops_notified_and_costs_other_modes_a_warning_and_no_news(
    notified: Pipeline,
    log: ChangeLog,
    tmp_path: Path,
    refresh: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The position stays, so that the next run that can read the log misses nothing."""
    log.append({log.name: ["pub-3"]})
    typo = tmp_path / "typo.db"

    requests = notified.run(changes_url=f"sqlite:///{typo}", detail_refresh=refresh)

    is_fatal = refresh == "notified"
    assert ("There is no notification log in" in notified.error) is is_fatal
    assert ("There is no notification log in" in caplog.text) is not is_fatal
    assert (not requests, not notified.output.of("RECORD")) == (is_fatal, is_fatal)
    assert position(notified) == 1
    assert not typo.exists()
    assert sorted(notified.run()) == ["detail pub-3", *LIST]


def test_a_run_that_is_killed_after_its_first_record_leaves_work(
    api: FakeApi, notified: Pipeline
) -> None:
    """Without news, too: the row that it wrote is newer than all others."""
    catalog = select_only(CONFIG, "job_publications", "job_details")
    notified.run(catalog=catalog)
    notified.run(catalog=catalog, detail_refresh="changed", upto=3)
    kinds = [message["type"] for message in notified.output.messages[:3]]
    assert kinds == ["STATE", "SCHEMA", "RECORD"]

    notified.run(catalog=catalog)

    assert notified.targets["upsert"].published() == {*api.published}
