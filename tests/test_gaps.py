"""What is missing: nothing unconfirmed is deleted, and no single job or number stops the pipeline.

A gap fails the run that meets it first; later runs try again, warn, and end well.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal

import pytest
from fake_api import FakeApi
from fake_tap import Pipeline

from tap_public_jobs.errors import AccessError, PageError, RequestError

if TYPE_CHECKING:
    from tap_public_jobs.changelog import ChangeLog

FORBIDDEN = RequestError("the response is 403, although the key reads the list", 403)
BROKEN = RequestError("the response is 500, after 8 tries", 500)


@pytest.mark.parametrize("seed", range(2))
def test_of_a_hundred_gone_jobs_those_that_are_published_stay(seed: int) -> None:
    """The list and its total both lack five that are published. They are found again later."""
    api = FakeApi(page_size=100)
    for number in range(130):
        api.publish(str(number))
    pipeline = Pipeline(api)
    pipeline.run()
    gone = random.Random(seed).sample([*api.published], 100)  # noqa: S311  # draws, no secrets
    hidden, closed = {*gone[:5]}, {*gone[5:]}
    api.hidden = hidden
    for key in closed:
        api.unpublish(key)

    pipeline.run()

    assert all(f"'pub-{key}'" in pipeline.error for key in hidden)
    assert pipeline.activated == []
    assert {key for key, it in pipeline.periods().items() if it[3]} == closed
    assert pipeline.targets["upsert"].published() == {*api.published} - hidden
    assert pipeline.hard.rows["jobs"].keys() >= hidden

    pipeline.run()

    assert (pipeline.error, pipeline.activated) == ("", [])

    api.hidden = set()
    pipeline.run()

    assert (pipeline.error, pipeline.activated) == ("", ["jobs", "job_details"])
    for target in pipeline.targets.values():
        assert target.published() == {*api.published}
    assert {it[1] for it in pipeline.periods().values()} == {pipeline.periods()["0"][1]}
    assert pipeline.hard.rows["jobs"].keys() == api.published.keys()


@pytest.mark.parametrize("counted", [True, False], ids=["in the total", "not in the total"])
@pytest.mark.parametrize("answer", [FORBIDDEN, BROKEN, {"id": "3", "publicId": "pub-3"}])
def test_one_unlisted_job_whose_detail_is_not_404_freezes_nothing(
    api: FakeApi, pipeline: Pipeline, answer: object, *, counted: bool
) -> None:
    """All other jobs are written, opened, closed and dated as usual."""
    if counted:
        api.hidden.add("3")
        api.total = lambda: len(api.published)
    else:
        api.unpublish("3")
    api.answers["pub-3"] = answer
    last_seen = pipeline.periods()["3"][2]

    for day in range(3):
        api.publish(f"new-{day}")
        api.unpublish(str(day))
        api.edit("9", jobTitle=f"Edit {day}")

        pipeline.run()

        assert bool(pipeline.error) is (day == 0)
        assert "'pub-3'" in pipeline.error or day > 0
        assert pipeline.targets["upsert"].published() == {*api.published} - {"3"}
        assert pipeline.targets["upsert"].rows["jobs"]["9"]["jobTitle"] == f"Edit {day}"
        assert pipeline.periods()["3"][2:] == (last_seen, None)
        assert pipeline.periods()[str(day)][3] is not None
        assert pipeline.activated == []
        assert {"3"} <= pipeline.hard.rows["jobs"].keys()


@pytest.mark.parametrize("total", [30, None], ids=["counts more", "is not there"])
def test_a_total_that_counts_something_else_is_believed_once_it_repeats(
    api: FakeApi, pipeline: Pipeline, total: int | None
) -> None:
    api.total = total
    api.unpublish("3")

    pipeline.run()

    assert "the list" in pipeline.error
    assert pipeline.activated == []
    assert pipeline.output.records("job_publications") == []
    assert len(pipeline.output.records("jobs")) == 9

    requests = pipeline.run()

    assert pipeline.error == ""
    assert pipeline.activated[:1] == ["jobs"]
    assert requests.count("page 1") == 1
    assert pipeline.targets["upsert"].published() == {*api.published}
    assert pipeline.hard.rows["jobs"].keys() == api.published.keys()


@pytest.mark.parametrize("kind", ["closed jobs too", "always the same"])
def test_a_total_that_never_fits_stops_no_churning_list(api: FakeApi, kind: str) -> None:
    """The shortfall differs from run to run by the jobs that were closed and opened."""
    ever = {*api.published}
    api.total = lambda: 5 + len(ever) if kind == "closed jobs too" else 50
    pipeline = Pipeline(api)
    pipeline.run()
    assert pipeline.error

    for day in range(4):
        api.unpublish(str(day))
        api.publish(f"new-{day}")
        ever |= {*api.published}
        api.unpublish(str(9 - day))
        requests = pipeline.run()

        assert (pipeline.error, requests.count("page 1")) == ("", 1)
        assert pipeline.targets["upsert"].published() == {*api.published}
        assert pipeline.hard.rows["jobs"].keys() == api.published.keys()


def test_a_shortfall_that_grows_is_a_new_gap(api: FakeApi, pipeline: Pipeline) -> None:
    api.total = 30
    pipeline.run()
    api.total = 31

    pipeline.run()

    assert "the list shows 10 of 31 jobs" in pipeline.error
    assert pipeline.activated == []


@pytest.mark.parametrize("refresh", ["all", "changed"])
def test_a_listed_job_whose_detail_always_fails_stops_nothing(api: FakeApi, refresh: str) -> None:
    """It is tried in each run, after the others, and its last known detail stays."""
    pipeline = Pipeline(api, detail_refresh=refresh)
    pipeline.run()
    api.answers["pub-3"] = BROKEN

    for day in range(4):
        api.edit("3", jobTitle=f"Edit {day}")
        api.edit("4", jobTitle=f"Edit {day}", roleOverview=f"Day {day}")
        requests = pipeline.run()

        assert bool(pipeline.error) is (day == 0)
        assert "the detail of 'pub-3' is missing" in pipeline.error or day > 0
        assert requests.count("detail pub-3") == 1
        assert requests[-1] == "detail pub-3" or day == 0 or refresh == "changed"
        assert pipeline.hard.rows["job_details"]["4"]["roleOverview"] == f"Day {day}"
        assert pipeline.hard.rows["job_details"]["3"]["roleOverview"] == "About 3."
        assert pipeline.hard.rows["jobs"]["3"]["jobTitle"] == f"Edit {day}"
        assert pipeline.activated == ["jobs"]

    del api.answers["pub-3"]
    pipeline.run()

    assert pipeline.error == ""
    assert pipeline.hard.rows["job_details"]["3"]["jobTitle"] == "Edit 3"
    assert pipeline.activated == ["jobs", "job_details"] if refresh == "all" else ["jobs"]


def test_a_second_gap_fails_the_run_again_and_the_first_is_a_warning(
    api: FakeApi, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    api.answers["pub-3"] = BROKEN
    pipeline.run()
    api.answers["pub-4"] = BROKEN
    api.edit("4", jobTitle="Edited")
    caplog.clear()

    pipeline.run()

    assert "'pub-4'" in pipeline.error
    assert "'pub-3'" not in pipeline.error
    (warning,) = [it for it in caplog.records if "Still missing" in it.message]
    assert warning.levelname == "WARNING"
    assert "'pub-3'" in warning.message


@pytest.mark.parametrize(
    "error", [AccessError("the API refused the key (401)", 401), PageError("page 1: 503")]
)
def test_nothing_is_written_before_the_list_was_read(
    api: FakeApi, pipeline: Pipeline, error: Exception
) -> None:
    """A target with `load_method: overwrite` empties a table at its SCHEMA."""
    api.answers[1] = error

    pipeline.run()

    assert str(error) in pipeline.error
    assert {message["type"] for message in pipeline.output.messages} == {"STATE"}
    assert pipeline.targets["overwrite"].rows["jobs"].keys() == api.published.keys()


def test_a_failing_list_is_never_a_known_gap(api: FakeApi, pipeline: Pipeline) -> None:
    api.answers[2] = PageError("page 2: 503")

    for _ in range(3):
        pipeline.run()
        assert "page 2: 503" in pipeline.error


def test_an_empty_list_after_a_lost_state_deletes_nothing(api: FakeApi, pipeline: Pipeline) -> None:
    """However often it is read: no known job confirms it."""
    pipeline.state = {}
    everything = pipeline.hard.rows["jobs"]
    api.hidden = {*api.published}

    for _ in range(3):
        pipeline.run()

        assert (pipeline.error, pipeline.activated) == ("", [])
        assert pipeline.hard.rows["jobs"] == everything
    api.hidden = set()
    pipeline.run()
    assert pipeline.activated == ["jobs", "job_details"]
    assert pipeline.targets["upsert"].published() == {*api.published}


@pytest.mark.parametrize("refresh", ["changed", "notified"])
@pytest.mark.parametrize("cause", ["other columns", "an age of 0"])
def test_only_all_activates_details(
    api: FakeApi, notified: Pipeline, log: ChangeLog, refresh: str, cause: str
) -> None:
    """The detail of a closed job cannot be fetched again; its last one stays."""
    api.unpublish("3")
    log.append(["pub-3"])
    config: dict[str, Any] = {"detail_max_age_days": 0}
    if cause == "other columns":
        config = {"stream_maps": {"job_details": {"twice": "jobTitle + jobTitle"}}}

    notified.run(detail_refresh=refresh, **config)

    assert len(api.details) in {1, 10}
    assert notified.activated == ["jobs"]
    assert notified.hard.rows["job_details"].keys() == {*map(str, range(10))}


def test_news_is_not_forgotten_while_the_list_is_incomplete(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    """Two short lists lack the new job; when the list is whole again, it comes."""
    api.publish("new")
    api.hidden.add("new")
    log.append(["pub-new"])
    for total in (20, 25):
        api.total = total
        notified.run()
        assert notified.error

    api.total, api.hidden = "exact", set()
    notified.run()

    assert notified.error == ""
    assert notified.hard.rows["job_details"].keys() == api.published.keys()
    assert notified.run() == []


def test_a_known_gap_is_no_work_for_notified(
    api: FakeApi, log: ChangeLog, changes_url: str
) -> None:
    """Otherwise a gate that asks every two minutes would start a run each time."""
    assert log
    pipeline = Pipeline(api, detail_refresh="notified", changes_url=changes_url)
    api.answers["pub-3"] = BROKEN

    requests = [pipeline.run(), pipeline.run(), pipeline.run()]

    assert requests[0].count("detail pub-3") == 1
    # It is tried once more, and no other.
    assert sorted(requests[1]) == ["detail pub-3", "page 1", "page 2", "page 3", "page 4"]
    assert requests[2] == []
    assert pipeline.output.of("SCHEMA") == []  # an overwriting target keeps its tables
    assert pipeline.targets["overwrite"].rows["jobs"].keys() == api.published.keys()


@pytest.mark.parametrize("total", [20, "exact"], ids=["incomplete", "complete"])
def test_times_rise_wherever_the_clock_goes(
    api: FakeApi, pipeline: Pipeline, total: int | Literal["exact"]
) -> None:
    """It is an hour ahead during one listing, and then corrected."""
    pipeline.now += 3600
    if total != "exact":
        api.publish("new")
    api.total = total
    pipeline.run()
    pipeline.now -= 3600
    api.total = "exact"
    api.published.pop("new", None)
    api.unpublish("3")

    pipeline.run()

    assert pipeline.targets["upsert"].published() == {*api.published}
    assert pipeline.hard.rows["jobs"].keys() == api.published.keys()
    for opened_after, first_seen, last_seen, unpublished in pipeline.periods().values():
        assert (opened_after or "") < first_seen <= last_seen < (unpublished or "9")
