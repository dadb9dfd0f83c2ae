"""Second runs: what they fetch, what they remember, and when they take effect."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, Pipeline, first_run
from harness import catalog_of, select_only

from tap_public_jobs import changes


def test_the_state_that_follows_the_last_detail_covers_all(api: FakeApi) -> None:
    """The target dies before it reads the very last message, which is another state."""
    pipeline = Pipeline(api, detail_refresh="changed")
    pipeline.run(upto=-1)

    assert sorted(pipeline.run()) == LIST


def test_state_is_written_in_proportion_to_the_jobs() -> None:
    """Every N/20 details, so some 20 times a run, and ever less often in a list."""
    api = FakeApi()
    for number in range(1_200):
        api.publish(f"{number:08}-a-uuid-has-36-characters-1234567")
    pipeline = first_run(api, page_size=100)

    others = ("jobs", "job_publications")
    kinds = [it["type"] for it in pipeline.output.messages if it.get("stream") not in others]
    assert kinds[3:] == [
        "SCHEMA",
        *(["RECORD"] * 60 + ["STATE"]) * 19,
        *["RECORD"] * 60,
        *["ACTIVATE_VERSION", "STATE", "STATE"],
    ]
    assert len(json.dumps(pipeline.state, separators=(",", ":"))) / 1_200 < 150


@pytest.mark.parametrize(
    ("saved", "faults"),
    [
        ({"jobs": {"sync": {"format": 99}}}, ["ValueError: format 99 is not known"]),
        (5, ["AttributeError: 'int' object has no attribute 'get'"]),
        ({"jobs": {}}, []),
    ],
)
def test_a_state_that_says_nothing_is_set_aside_and_a_damaged_one_with_a_warning(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture, saved: Any, faults: list[str]
) -> None:
    api, pipeline.state = pipeline.api, {"bookmarks": saved}

    pipeline.run(detail_refresh="changed")

    assert {*api.details} == {f"pub-{key}" for key in api.published}
    assert pipeline.activated == ["jobs"]
    pipeline.run()
    assert pipeline.output.order[0] == "STATE"  # so that what the SDK writes loses nothing
    warning = (
        "The saved state is damaged, or of another version of the tap ({}). All details are "
        "fetched again, and job_publications begins a new history. To keep the old one, stop this "
        "run and restore the state."
    )
    warnings = [it.message for it in caplog.records if it.levelname == "WARNING"]
    assert warnings == [warning.format(it) for it in faults]


def without(column: str) -> dict[str, Any]:
    """A catalog in which this column of the details is not selected."""
    catalog = catalog_of(CONFIG)
    for entry in catalog["streams"][2]["metadata"]:
        entry["metadata"]["selected"] = entry["breadcrumb"] != ["properties", column]
    return catalog


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"catalog": without("jobTitle")}, {}),
        ({}, {"column_naming": "snake_case"}),
        ({}, {"stream_maps": {"job_details": {"x": "1"}}}),
        (
            {"stream_maps": {"job_details": {"x": "jobTitle"}}},
            {"stream_maps": {"job_details": {"x": "config['a']"}}, "stream_map_config": {"a": "b"}},
        ),
        (
            {"flattening_enabled": True, "flattening_max_depth": 1},
            {"flattening_enabled": True, "flattening_max_depth": 1, "flattening_separator": "-"},
        ),
    ],
    ids=["selection", "column_naming", "stream_maps", "stream_map_config", "flattening_separator"],
)
@pytest.mark.parametrize("refresh", ["changed", "notified"])
def test_other_columns_are_in_every_row_after_one_run(
    notified: Pipeline,
    caplog: pytest.LogCaptureFixture,
    before: dict[str, Any],
    after: dict[str, Any],
    refresh: str,
) -> None:
    """Also if no run in between writes details; a column that is selected later is one of them."""
    notified.run(detail_refresh=refresh, **before)
    if refresh == "changed":
        notified.run(detail_refresh=refresh, catalog=select_only(CONFIG, "jobs"))

    for records in (10, 0):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            notified.run(detail_refresh=refresh, **after)
        assert len(notified.output.records("job_details")) == records
        assert ("Fetching 10 of 10 details (10 changed)" in caplog.text) is (records > 0)
        is_noticed = records > 0 and refresh == "notified"
        assert ("The selected columns changed" in caplog.text) is is_noticed


def test_a_run_without_state_says_how_it_is_passed(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """Meltano passes none if the plugin does not declare the capability."""
    pipeline.state = {}

    said = "First run (no state). If there was an earlier one, pass its state, or"

    with caplog.at_level(logging.INFO):
        for _ in range(2):
            pipeline.run()

    assert caplog.text.count(said) == 1


# Under `notified`, and with a notification log.


def test_a_lagging_detail_is_asked_twice(api: FakeApi, notified: Pipeline) -> None:
    """It lacks a change that the list shows. One that is new or refreshed is asked for once."""
    api.answers = {f"pub-{key}": {**api.published[key]} for key in "34"}
    api.answers |= {"pub-5": {"id": "5"}, "pub-new": {"id": "new", "jobTitle": "Another"}}
    api.publish("new")
    for key in "345":
        api.edit(key, jobTitle="Edited")
    notified.notify("pub-3")

    every = sorted(api.published)
    for keys, age in ((["3", "4", "5", "new"], 7), (["3", "4"], 7), (every, 0), ([], 7)):
        notified.run(detail_refresh="changed", detail_max_age_days=age)
        assert sorted(api.details) == [f"pub-{key}" for key in keys]
        api.answers.pop("pub-3", None)
    assert notified.hard.rows["job_details"]["3"]["jobTitle"] == "Edited"


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("is_covered", [True, False], ids=["covered", "before the log began"])
def test_a_detail_expires_if_it_was_fetched_before_the_log_began(
    api: FakeApi, changes_url: str, *, is_covered: bool
) -> None:
    """Nobody will ever name its change. While every change is named, nothing expires."""
    pipeline = Pipeline(api, changes_url=changes_url) if is_covered else Pipeline(api)
    pipeline.run(detail_refresh="changed")
    api.edit("3", roleOverview="Everything.")
    pipeline.config |= {"changes_url": changes_url, "detail_refresh": "notified"}

    for _ in range(3):
        pipeline.notify("pub-5")
        pipeline.run(later=8 * 86_400)

    found = pipeline.hard.rows["job_details"]["3"]["roleOverview"]
    assert found == ("About 3." if is_covered else "Everything.")
    assert sorted(pipeline.run()) == []


@pytest.mark.parametrize("reason", ["another log", "rows removed", "an older copy"])
def test_a_log_that_does_not_cover_everything_is_no_reason_to_believe_that_nothing_changed(
    api: FakeApi,
    notified: Pipeline,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change of the detail alone is found if a notification that is left names it."""
    api.edit("3", jobTitle="Chief of Everything")
    api.edit("4", roleOverview="Everything.")
    notified.notify("pub-4")
    if reason == "rows removed":
        monkeypatch.setattr(changes, "KEPT", 1)
        notified.notify("pub-5")
    else:
        last_read = notified.sync_state["log"]
        last_read[:2] = ["another", 2] if reason == "another log" else [last_read[0], 100]

    with caplog.at_level("INFO"):
        assert {*notified.run()} >= {*LIST}

    left = {"3", "5"} if reason == "rows removed" else {"1", "3", "4"}  # 1: the first notification
    assert notified.output.rows("job_details").keys() == left
    assert notified.run() == []
    said = "The notification log does not cover everything since the last run"
    assert caplog.text.count(said) == 1
    warnings = [it.getMessage() for it in caplog.records if it.levelname == "WARNING"]
    lost = "The notification log was full and dropped 1 notifications"
    assert [it[: len(lost)] for it in warnings] == [lost] * (reason == "rows removed")


@pytest.mark.parametrize("refresh", ["notified", "changed", "all"])
def test_an_unreadable_log_stops_notified_and_costs_other_modes_a_warning_and_no_news(
    notified: Pipeline, tmp_path: Path, refresh: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The position stays, so that the next run that can read the log misses nothing."""
    notified.notify("pub-3")
    typo = tmp_path / "typo.db"

    requests = notified.run(changes_url=f"sqlite:///{typo}", detail_refresh=refresh)

    is_fatal = refresh == "notified"
    assert ("There is no notification log in" in notified.error) is is_fatal
    assert ("There is no notification log in" in caplog.text) is not is_fatal
    assert (not requests, not notified.output.of("RECORD")) == (is_fatal, is_fatal)
    assert notified.sync_state["log"][1] == 1
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
