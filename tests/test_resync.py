"""What runs keep for the next ones, and when the next ones do not rely on it."""

import json

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, Pipeline, first_run
from harness import select_only

from tap_public_jobs import changes
from tap_public_jobs.sync import state


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


@pytest.mark.parametrize("number", range(40))
def test_a_crash_at_any_message_loses_and_duplicates_no_period(
    api: FakeApi, pipeline: Pipeline, number: int
) -> None:
    """The target has read this many messages of the second run, and kept the last state."""
    api.unpublish("0")
    api.publish("new")
    pipeline.run(upto=number)

    pipeline.run()

    periods = pipeline.runs_of_periods()
    assert periods["new"] in [(1, 2, 3, None), (1, 3, 3, None)]
    assert periods["0"] in [(None, 1, 1, 2), (None, 1, 1, 3)]
    assert periods.keys() == {*api.published, "0"}


@pytest.mark.parametrize("stream", ["job_publications", "jobs"])
def test_all_closings_are_written_and_the_last_ones_kept_while_they_cannot_be(
    api: FakeApi, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(state, "MOST_CLOSED", 2)
    for key in "012":
        api.unpublish(key)

    pipeline.run(catalog=select_only(CONFIG, stream))
    pipeline.run()

    assert pipeline.closed == ({*"012"} if stream == "job_publications" else {*"12"})
