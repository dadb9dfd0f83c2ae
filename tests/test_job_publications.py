"""`job_publications`: since when and until when jobs are published, on any target."""

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, Pipeline, first_run
from harness import select_only

from tap_public_jobs.sync import state


@pytest.mark.parametrize("refresh", ["all", "changed"])
def test_times_over_four_runs(api: FakeApi, refresh: str) -> None:
    """A job opened in (openedAfter, firstSeenAt], and closed in (lastSeenAt, unpublishedAt]."""
    pipeline = first_run(api, detail_refresh=refresh)
    assert pipeline.runs_of_periods() == dict.fromkeys(api.published, (None, 1, 1, None))

    api.publish("new")
    pipeline.run()
    periods = pipeline.runs_of_periods()
    assert (periods["new"], periods["1"]) == ((1, 2, 2, None), (None, 1, 2, None))

    api.unpublish("0", "2")
    pipeline.run()
    periods = pipeline.runs_of_periods()
    assert periods["0"] == periods["2"] == (None, 1, 2, 3)
    assert periods["new"] == (1, 2, 3, None)

    api.publish("0")
    pipeline.run()
    periods = pipeline.runs_of_periods()
    assert (periods["0"], periods["2"]) == ((3, 4, 4, None), (None, 1, 2, 3))
    # One record for each published job; that of a closed one is not repeated.
    rows = pipeline.output.rows("job_publications")
    assert {key: row["publicId"] for key, row in rows.items()} == {
        key: job["publicId"] for key, job in api.published.items()
    }


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


def test_an_incomplete_list_closes_nothing_and_writes_no_period(
    api: FakeApi, pipeline: Pipeline
) -> None:
    """Until the next complete one, which knows when a job was first seen."""
    api.publish("new")
    api.publish("passing")
    api.edit("3", id="")
    pipeline.run()
    assert "without a usable id or publicId was left out: page 2, item 1" in pipeline.error
    assert (pipeline.output.records("job_publications"), pipeline.activated) == ([], [])
    others = api.published.keys() - {"3"}
    assert pipeline.output.rows("jobs").keys() == pipeline.output.rows("job_details").keys()
    assert pipeline.output.rows("jobs").keys() == others
    api.edit("3", id="3")
    api.unpublish("passing")

    pipeline.run()

    periods = pipeline.runs_of_periods()
    assert (periods["new"], periods["passing"]) == ((1, 2, 3, None), (1, 2, 2, 3))
    assert periods["3"] == (None, 1, 3, None)


@pytest.mark.parametrize("again", [False, True], ids=["for good", "and published again"])
def test_a_job_closed_while_it_is_deselected_is_written_once_it_is_selected_again(
    api: FakeApi, pipeline: Pipeline, *, again: bool
) -> None:
    api.unpublish("0")

    pipeline.run(catalog=select_only(CONFIG, "jobs", "job_details"))
    assert pipeline.output.of("RECORD", "job_publications") == []
    if again:
        api.publish("0")
    pipeline.run()

    assert pipeline.runs_of_periods()["0"] == ((2, 3, 3, None) if again else (None, 1, 1, 2))
    pipeline.run(later=3_600)
    assert pipeline.output.rows("job_publications").keys() == api.published.keys()
    assert pipeline.sync_state["closed"] == []


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
