"""What is true in the warehouse: nothing unconfirmed is deleted, and no single job stops a run.

What is missing is a gap. It is new for an hour, and each run that sees it fails. After that it is
known, and runs warn.
"""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from fake_api import FakeApi
from fake_tap import LIST, Pipeline, first_run

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import AccessError, NotFoundError, PageError, RequestError
from tap_public_jobs.sync.state import HOUR

DAY = 24 * HOUR
FORBIDDEN = RequestError("the response is 403, although the key reads the list", 403)
BROKEN = RequestError("the response is 500, after 8 tries", 500)
GONE = NotFoundError("the response is 404", 404)


def organisation(jobs: int) -> tuple[FakeApi, Pipeline]:
    """An API with this many jobs, and a pipeline that has loaded them."""
    api = FakeApi(jobs=jobs)
    pipeline = first_run(api, page_size=100)
    assert pipeline.error == ""
    return api, pipeline


def state_of(pipeline: Pipeline) -> dict[str, Any]:
    """What the tap keeps in Singer state."""
    state: dict[str, Any] = pipeline.state["bookmarks"]["jobs"]["sync"]
    return state


# How each kind of gap begins, and what is said of it.
GAPS: dict[str, tuple[Callable[[FakeApi], object], str]] = {
    "detail": (
        lambda api: api.answers.update({"pub-3": BROKEN}),
        "the detail of 'pub-3' is missing: the response is 500",
    ),
    "404 although listed": (
        lambda api: api.answers.update({"pub-3": GONE}),
        "the detail of 'pub-3' is missing: the response is 404, although the job is listed",
    ),
    "missing": (
        lambda api: api.hidden.add("3"),
        "'pub-3' is not in the list, but its detail still loads",
    ),
    # The first page says 30, and the others less: the largest number counts.
    "total": (
        lambda api: setattr(api, "total", lambda: 30 if api.requests[-1] == "page 1" else 5),
        "the list shows 10 of 30 jobs",
    ),
    "no total": (
        lambda api: setattr(api, "total", None),
        "the list does not say how many jobs there are",
    ),
}


# One clock: times rise, and evidence is the clock's own.


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


@pytest.mark.parametrize("jump", [-30 * DAY, 30 * DAY])
def test_a_gap_is_known_in_the_end_wherever_the_clock_goes(
    api: FakeApi, pipeline: Pipeline, jump: float
) -> None:
    api.answers["pub-3"] = BROKEN
    pipeline.run()
    pipeline.run(later=jump)
    assert bool(pipeline.error) is (jump < 0)

    pipeline.run(later=HOUR)
    assert pipeline.error == ""


# New for an hour, then known.


@pytest.mark.parametrize("kind", GAPS)
def test_a_gap_fails_each_run_for_an_hour_and_is_a_warning_after_that(
    api: FakeApi, pipeline: Pipeline, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """However often a scheduler retries; a retry requests only what is missing."""
    begin, why = GAPS[kind]
    begin(api)
    everything = {**pipeline.hard.rows["jobs"]}

    for number, later in enumerate((60, 1, HOUR / 2, HOUR / 2 - 5)):
        pipeline.run(later=later)
        assert why in pipeline.error
        assert "Still missing" not in caplog.text
        assert number == 0 or api.details == ["pub-3"] * ("total" not in kind)
        assert "job_details" not in pipeline.activated
        assert pipeline.hard.rows["jobs"] == everything

    for later, age in ((5, "1 hour"), (22 * HOUR, "23 hours"), (5 * DAY, "5 days 23 hours")):
        caplog.clear()
        pipeline.run(later=later)
        assert pipeline.error == ""
        assert f"Still missing: {why}" in caplog.text
        assert f"(for {age}). Everything else was synced." in caplog.text
        # A run with an incomplete list has not ended: the next one resumes it.
        assert bool(api.details) is (later > 5 or "total" not in kind)
    assert {*api.details} == {f"pub-{key}" for key in api.published}


@pytest.mark.parametrize("kind", GAPS)
def test_a_gap_that_heals_is_forgotten(api: FakeApi, pipeline: Pipeline, kind: str) -> None:
    """When it returns, it is new. In between, the clock is ahead for one run."""
    begin, why = GAPS[kind]
    for ahead in (0, 5 * DAY):
        begin(api)
        pipeline.run()
        assert why in pipeline.error
        pipeline.run(later=2 * HOUR + ahead)
        assert pipeline.error == ""
        api.answers, api.total, api.hidden = {}, "exact", set()
        pipeline.run(later=DAY - ahead)
        assert (pipeline.error, pipeline.activated) == ("", ["jobs", "job_details"])
        assert not state_of(pipeline)["shortSince"]
        assert not any(missing or failing for *_, missing, failing in state_of(pipeline)["jobs"])


def test_each_new_gap_fails_the_run_beside_known_ones(
    api: FakeApi, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """Each job carries its own evidence. The error names up to 50, the warning ten."""
    api.answers["pub-3"] = BROKEN
    api.hidden = {"4"}
    pipeline.run()
    api.hidden |= {"5"}
    for number in range(60):
        api.publish(f"new-{number}")
        api.answers[f"pub-new-{number}"] = BROKEN

    pipeline.run(later=2 * HOUR)

    assert pipeline.error.count("the detail of 'pub-new-") == 49
    assert "'pub-5' is not in the list" in pipeline.error
    assert "; and 11 more." in pipeline.error
    (warning,) = [it for it in caplog.records if "Still missing" in it.message]
    assert warning.levelname == "WARNING"
    for known in ("'pub-3'", "'pub-4'"):
        assert known in warning.message
        assert known not in pipeline.error


def test_many_failing_details_are_one_cause(
    api: FakeApi, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """A further one is as old as the oldest of five. What is known to fail is tried once."""
    keys = [str(number) for number in range(5)]
    for fails, later, is_new in ((4, 60, True), (5, 2 * HOUR, True), (6, HOUR, False)):
        caplog.clear()
        api.answers = {f"pub-{number}": BROKEN for number in range(fails)}
        pipeline.run(later=later)
        assert bool(pipeline.error) is is_new
    assert "the detail of 'pub-5' is missing" in caplog.text
    assert caplog.text.count("(for 3 hours)") == 5  # with 'pub-5'; 'pub-4' is younger

    pipeline.run(detail_refresh="changed")

    assert {api.tries[f"pub-{key}"] for key in [*keys, "5"]} == {1}
    assert {*api.details} == {f"pub-{key}" for key in [*keys, "5"]}
    assert pipeline.error == ""

    # While no detail loads, whether a job is gone cannot be found out, for the same cause.
    api.answers = {f"pub-{key}": BROKEN for key in api.published}
    api.unpublish("9")
    pipeline.run(detail_refresh="changed")
    assert (pipeline.error, pipeline.closed) == ("", set())
    assert "'pub-9' is not in the list, but the response is 500" in caplog.text


def test_an_outage_is_new_beside_many_details_that_have_failed_for_long() -> None:
    """What has failed for a day is no part of it. Nor does it hide a few further ones."""
    api, pipeline = organisation(30)
    api.answers = {f"pub-{number}": BROKEN for number in range(5)}
    for later in (60, DAY):
        pipeline.run(later=later)
    assert pipeline.error == ""
    api.answers = {f"pub-{key}": BROKEN for key in api.published}

    pipeline.run(later=DAY)

    assert pipeline.error.count("the detail of 'pub-") == 25
    assert "'pub-0'" not in pipeline.error


@pytest.mark.parametrize("refresh", ["all", "changed"])
def test_a_listed_job_whose_detail_always_fails_stops_nothing(api: FakeApi, refresh: str) -> None:
    """It is tried in each run, after the others, and its last known detail stays."""
    pipeline = first_run(api, detail_refresh=refresh)
    api.answers["pub-3"] = BROKEN

    for day in range(4):
        api.edit("3", jobTitle=f"Edit {day}")
        api.edit("4", jobTitle=f"Edit {day}", roleOverview=f"Day {day}")
        requests = pipeline.run(later=DAY)

        assert bool(pipeline.error) is (day == 0)
        assert "the detail of 'pub-3' is missing" in pipeline.error or day > 0
        assert requests.count("detail pub-3") == 1
        assert requests[-1] == "detail pub-3" or day == 0
        assert pipeline.hard.rows["job_details"]["4"]["roleOverview"] == f"Day {day}"
        assert pipeline.hard.rows["job_details"]["3"]["roleOverview"] == "About 3."
        assert pipeline.hard.rows["jobs"]["3"]["jobTitle"] == f"Edit {day}"
        assert pipeline.activated == ["jobs"]

    del api.answers["pub-3"]
    pipeline.run()

    assert pipeline.error == ""
    assert pipeline.hard.rows["job_details"]["3"]["jobTitle"] == "Edit 3"
    assert pipeline.activated == ["jobs", "job_details"][: 2 if refresh == "all" else 1]


def test_a_run_that_is_stopped_remembers_what_fails(api: FakeApi) -> None:
    """The next one fetches the others first."""
    api.answers = {f"pub-{number}": BROKEN for number in range(3)}

    def stop(request: str) -> None:
        if request == "detail pub-5":
            raise SystemExit

    api.on_request = stop
    pipeline = Pipeline(api, max_concurrent_requests=1)
    with pytest.raises(SystemExit):
        pipeline.run()
    pipeline.state = pipeline.output.state
    api.on_request = lambda _: None

    assert pipeline.run()[-3:] == ["detail pub-0", "detail pub-1", "detail pub-2"]


def test_a_new_gap_is_work_for_notified_and_a_known_one_is_not(
    api: FakeApi, log: ChangeLog, changes_url: str
) -> None:
    """Otherwise a gate that asks every two minutes would start a run each time."""
    assert log
    pipeline = Pipeline(api, detail_refresh="notified", changes_url=changes_url)
    api.answers["pub-3"] = BROKEN
    pipeline.run()

    for later in (60, HOUR - 120):
        requests = pipeline.run(later=later)
        assert sorted(requests) == ["detail pub-3", *LIST]
        assert pipeline.error

    assert sorted(pipeline.run(later=120)) == ["detail pub-3", *LIST]  # once more, as a known one
    assert pipeline.error == ""
    assert pipeline.run(later=120) == []
    assert pipeline.output.of("SCHEMA") == []  # an overwriting target keeps its tables
    assert pipeline.targets["overwrite"].rows["jobs"].keys() == api.published.keys()
    del api.answers["pub-3"]
    log.append({log.name: ["pub-1"]})
    assert "detail pub-3" in pipeline.run()
    assert pipeline.hard.rows["job_details"].keys() == api.published.keys()


def test_a_run_has_work_as_long_as_the_last_of_its_gaps_is_new(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    for key in "34":
        api.answers[f"pub-{key}"] = BROKEN
        log.append({log.name: [f"pub-{key}"]})
        notified.run(later=HOUR / 2)

    notified.run(later=HOUR / 2 + 60)

    assert "'pub-4'" in notified.error
    assert "'pub-3'" not in notified.error
    assert "detail pub-4" in notified.run(later=HOUR / 2)
    assert (notified.error, notified.run(later=HOUR / 2)) == ("", [])


def test_what_failed_once_is_tried_again_however_late_the_next_run_is(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    """It is known by then, and no run has tried it as such."""
    api.edit("3", roleOverview="Everything.")
    api.answers["pub-3"] = BROKEN
    log.append({log.name: ["pub-3"]})
    notified.run()
    api.answers.clear()

    notified.run(later=DAY)

    assert notified.hard.rows["job_details"]["3"]["roleOverview"] == "Everything."
    assert notified.run(later=DAY) == []


# The list, and its total.


@pytest.mark.parametrize("page", [1, 3])
@pytest.mark.parametrize(
    "error", [AccessError("the API refused the key (401)"), PageError("page 1: 503")]
)
def test_nothing_is_written_before_the_list_was_read(
    api: FakeApi, notified: Pipeline, log: ChangeLog, error: Exception, page: int
) -> None:
    """A target with `load_method: overwrite` empties a table at its SCHEMA. It is never known.

    The news that the run had read stays unread.
    """
    before = notified.state["bookmarks"]["jobs"]
    log.append({log.name: ["pub-3"]})
    api.answers[page] = error

    for _ in range(3):
        assert notified.run(later=2 * HOUR) == LIST[:page]

        assert notified.error == str(error)
        assert {message["type"] for message in notified.output.messages} == {"STATE"}
        assert notified.state["bookmarks"]["jobs"] == before
    assert notified.targets["overwrite"].rows["jobs"].keys() == api.published.keys()
    api.answers.clear()
    assert "detail pub-3" in notified.run()


def test_a_cached_total_may_count_what_was_closed_within_the_hour() -> None:
    """It costs no second reading, and no alert until it has been wrong for an hour."""
    api, pipeline = organisation(150)
    api.total = 150
    api.unpublish("3")
    pages = ["page 1", "page 2", "page 3"]

    requests = pipeline.run(detail_refresh="changed")
    assert requests == [*pages, "detail pub-3", "detail pub-0"]
    assert (pipeline.error, pipeline.closed) == ("", {"3"})
    for later, is_short in ((60, False), (HOUR - 61, False), (1, True)):
        requests = pipeline.run(detail_refresh="changed", later=later)
        assert ("the list shows 149 of 150 jobs" in pipeline.error) is is_short
        assert requests == pages * (8 if is_short else 1)
        assert pipeline.output.rows("job_publications").keys() == api.published.keys() - (
            {*api.published} if is_short else set()
        )


@pytest.mark.parametrize("kind", ["closed jobs too", "always the same"])
def test_a_total_that_never_fits_stops_no_churning_list(api: FakeApi, kind: str) -> None:
    """The shortfall differs from run to run by the jobs that were closed and opened."""
    ever = {*api.published}
    api.total = lambda: 5 + len(ever) if kind == "closed jobs too" else 50
    pipeline = first_run(api)
    assert pipeline.error

    for day in range(4):
        api.unpublish(str(day))
        api.publish(f"new-{day}")
        ever |= {*api.published}
        requests = pipeline.run(later=DAY)

        assert (pipeline.error, requests.count("page 1")) == ("", 1)
        assert pipeline.targets["upsert"].published() == {*api.published}
        assert pipeline.hard.rows["jobs"].keys() == api.published.keys()


def test_after_a_lost_state_a_short_list_deletes_nothing_for_an_hour() -> None:
    api, pipeline = organisation(30)
    pipeline.state = {}
    api.total, api.hidden = 30, {str(number) for number in range(10, 30)}

    for later in (60, 1, HOUR / 2):
        pipeline.run(later=later)
        assert "the list shows 10 of 30 jobs" in pipeline.error
        assert pipeline.activated == []
    assert len(pipeline.hard.rows["jobs"]) == len(pipeline.hard.rows["job_details"]) == 30


# A loss: too many jobs are gone at once.


@pytest.mark.parametrize("published", [1, 5, 20, 21, 60])
def test_of_a_hundred_gone_jobs_those_that_are_published_stay(published: int) -> None:
    """The list and its total lack them all. For an hour, the run asks for none of them."""
    api, pipeline = organisation(130)
    hidden = {str(number) for number in range(published)}
    for number in range(published, 100):
        api.unpublish(str(number))
    api.hidden = hidden

    for later in (60, HOUR / 2):
        pipeline.run(later=later)
        assert "100 of 130 published jobs disappeared from the list at once" in pipeline.error
        assert api.pages.count(1) == 1
        assert not {f"pub-{number}" for number in range(100)}.intersection(api.details)
        assert pipeline.activated == []
        assert pipeline.closed == set()
    for day in range(30):  # each run asks for others of them
        pipeline.run(later=HOUR if day == 0 else DAY)
        assert (pipeline.error, pipeline.activated) == ("", [])
        assert pipeline.targets["upsert"].published() == {*api.published} - hidden
        assert len({*api.details} & {f"pub-{key}" for key in hidden}) <= 20
    assert pipeline.closed == {str(number) for number in range(published, 100)}
    assert pipeline.hard.rows["jobs"].keys() >= hidden

    api.hidden = set()
    pipeline.run(later=DAY)

    assert (pipeline.error, pipeline.activated) == ("", ["jobs", "job_details"])
    for target in pipeline.targets.values():
        assert target.published() == {*api.published}
    assert {it[1] for it in pipeline.periods().values()} == {pipeline.periods()["0"][1]}
    assert pipeline.hard.rows["jobs"].keys() == api.published.keys()


@pytest.mark.parametrize(
    ("answer", "is_believed"), [(GONE, True), (BROKEN, False), (FORBIDDEN, False)]
)
def test_an_empty_list_is_believed_after_an_hour_if_details_agree(
    caplog: pytest.LogCaptureFixture, answer: Exception, *, is_believed: bool
) -> None:
    """As from an empty database behind the API. A job keeps its period if it comes back before."""
    api, pipeline = organisation(150)
    first_seen = pipeline.periods()["0"][1]
    everything = {*api.published}
    api.hidden = {*everything}
    api.answers = {f"pub-{key}": answer for key in everything}

    for later in (60, HOUR / 2):
        pipeline.run(later=later)
        assert "150 of 150 published jobs disappeared from the list at once" in pipeline.error
        assert (pipeline.activated, api.details) == ([], [])
    pipeline.run(later=2 * HOUR)

    assert pipeline.error == ""
    assert len(api.details) == (150 if is_believed else 20)
    assert ("'pub-0' is not in the list" in caplog.text) is False
    assert ("Still missing" in caplog.text) is not is_believed
    assert pipeline.activated == (["jobs", "job_details"] if is_believed else [])
    assert pipeline.closed == (everything if is_believed else set())
    assert pipeline.hard.rows["jobs"].keys() == (set() if is_believed else everything)

    api.hidden, api.answers = set(), {}
    pipeline.run(later=DAY)
    assert pipeline.targets["upsert"].published() == everything
    assert (pipeline.periods()["0"][1] == first_seen) is not is_believed
    # Another empty list is another loss.
    api.hidden, api.answers = everything, {f"pub-{key}": answer for key in everything}
    pipeline.run(later=DAY)
    assert "150 of 150 published jobs disappeared" in pipeline.error


@pytest.mark.parametrize(("gone", "new"), [(5, 1), (10, 10), (21, 2), (60, 20), (150, 150)])
def test_jobs_that_replace_many_do_not_make_their_closing_credible(gone: int, new: int) -> None:
    """Each run of the hour knows more jobs, but those were listed while the list was in doubt."""
    known = gone if gone in {5, 10, 150} else 2 * gone - 2
    api, pipeline = organisation(known)
    for number in range(gone):
        api.unpublish(str(number))
    for number in range(new):
        api.publish(f"new-{number}")

    for later in (60, 60, HOUR / 2):
        pipeline.run(later=later)
        assert f"{gone} of {known} published jobs disappeared" in pipeline.error
        assert (pipeline.closed, pipeline.activated) == (set(), [])
        assert len(pipeline.hard.rows["jobs"]) == known + new
    pipeline.run(later=HOUR)
    assert (pipeline.error, pipeline.closed) == ("", {str(number) for number in range(gone)})


def test_a_loss_before_the_first_complete_list_is_one_too() -> None:
    api = FakeApi(jobs=30)
    api.total = 31
    pipeline = first_run(api)
    api.total, api.hidden = "exact", {*api.published}
    api.answers = {f"pub-{key}": GONE for key in api.published}

    pipeline.run(later=300)

    assert "30 of 30 published jobs disappeared from the list at once" in pipeline.error
    assert (pipeline.closed, pipeline.activated, api.details) == (set(), [], [])


@pytest.mark.parametrize("listed", [0, 4], ids=["empty", "of half the jobs"])
def test_a_list_that_breaks_during_the_details_deletes_none_of_them(
    api: FakeApi, pipeline: Pipeline, listed: int
) -> None:
    """All details answer 404, and the list that is read after them is short or empty."""

    def shorten(_: str) -> None:
        if api.details:
            api.hidden = {*list(api.published)[listed:]}
            api.total = None if listed else "exact"

    api.on_request = shorten
    api.answers = {f"pub-{key}": GONE for key in api.published}

    pipeline.run()

    assert "and the list is not complete" in pipeline.error
    assert pipeline.hard.rows["job_details"].keys() == api.published.keys()


# A published job is never closed by mistake.


def test_a_closing_costs_its_own_detail_and_one_that_shows_that_details_work(
    api: FakeApi, pipeline: Pipeline
) -> None:
    """It is the oldest, and written. None, if the detail of another unlisted job loads."""
    api.unpublish("3")
    assert pipeline.run(detail_refresh="changed") == [*LIST, "detail pub-3", "detail pub-0"]
    assert pipeline.output.rows("job_details").keys() == {"0"}
    api.unpublish("7")
    pipeline.run(detail_refresh="changed")
    assert api.details == ["pub-7", "pub-1"]
    api.unpublish("4")
    api.hidden = {"5"}
    pipeline.run(detail_refresh="changed")
    assert sorted(api.details) == ["pub-4", "pub-5"]
    assert pipeline.closed == {"3", "4", "7"}


@pytest.mark.parametrize("listed", [0, 100])
def test_a_job_is_closed_by_an_answer_of_the_run_that_closes_it(listed: int) -> None:
    """Once, everything was empty and answered 404. When details answer again, none is closed."""
    api, pipeline = organisation(150)
    api.hidden = {*api.published}
    api.answers = {f"pub-{key}": GONE for key in api.published}
    pipeline.run()
    api.answers = {}
    api.hidden = {str(number) for number in range(listed, 150)}

    for later in (600, 2 * HOUR):
        pipeline.run(later=later)
        assert (pipeline.closed, pipeline.activated) == (set(), [])
    assert pipeline.error == ""


def test_what_a_404_means_is_known_before_many_are_asked_for() -> None:
    """All details answer 404. Of 150 unlisted jobs, the run asks for twenty."""
    api, pipeline = organisation(400)
    for number in range(150):
        api.hidden.add(str(number))
    api.answers = {f"pub-{key}": GONE for key in api.published}

    pipeline.run(detail_refresh="changed")

    assert len(api.details) == 23
    assert "no detail of a listed job loads either" in pipeline.error
    assert pipeline.closed == set()


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
    api.answers |= {"pub-3": answer, "pub-4": BROKEN}
    last_seen = pipeline.periods()["3"][2]

    for day in range(3):
        api.publish(f"new-{day}")
        api.unpublish(str(day))
        api.edit("9", jobTitle=f"Edit {day}")

        pipeline.run(later=DAY)

        assert bool(pipeline.error) is (day == 0)
        assert "'pub-3'" in pipeline.error or day > 0
        assert pipeline.targets["upsert"].published() == {*api.published} - {"3"}
        assert pipeline.targets["upsert"].rows["jobs"]["9"]["jobTitle"] == f"Edit {day}"
        assert pipeline.periods()["3"][2:] == (last_seen, None)
        assert pipeline.periods()[str(day)][3] is not None
        assert pipeline.activated == []
        assert {"3"} <= pipeline.hard.rows["jobs"].keys()

    for gone in ("3", "4"):
        api.published.pop(gone, None)
        del api.answers[f"pub-{gone}"]
    pipeline.run()
    assert pipeline.error == ""
    assert not any(missing or failing for *_, missing, failing in state_of(pipeline)["jobs"])


def test_a_job_that_is_not_gone_is_asked_for_once(api: FakeApi, pipeline: Pipeline) -> None:
    """The list had drifted, and shows the job when it is read again."""
    api.hidden = {"3"}
    api.on_page = lambda _: api.hidden.difference_update(it[-1] for it in api.details)

    requests = pipeline.run(detail_refresh="changed")

    assert requests == [*LIST, "detail pub-3", *LIST]
    assert pipeline.output.rows("jobs").keys() == api.published.keys()
    assert pipeline.error == ""


def test_a_job_that_is_renamed_during_the_run_is_not_passed_by(
    api: FakeApi, pipeline: Pipeline
) -> None:
    """Its old detail is gone, and the list that is read again drifts past it.

    No row is removed before the next run has fetched it.
    """

    def rename(request: str) -> None:
        if request == "detail pub-3":
            api.edit("3", publicId="renamed")

    def drift(number: int) -> None:
        api.hidden = {"3"} if len(LIST) < len(api.pages) < 2 * len(LIST) else set()
        api.total = 10 if number == 1 else "exact"

    api.on_request, api.on_page = rename, drift

    assert pipeline.run()[-2 * len(LIST) :] == 2 * LIST
    assert (pipeline.error, pipeline.activated) == ("", ["jobs"])
    api.on_page = lambda _: None

    assert pipeline.run(detail_refresh="changed") == [*LIST, "detail renamed"]
    assert pipeline.hard.rows["job_details"]["3"]["publicId"] == "renamed"
    assert pipeline.hard.rows["job_details"].keys() == api.published.keys()


def test_a_job_that_closes_during_a_run_is_closed_by_the_next_although_its_detail_failed(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    """A 404 is no failure, so nothing says any more that the next run may leave it alone."""
    api.answers["pub-3"] = BROKEN
    log.append({log.name: ["pub-3"]})
    for later in (60, 2 * HOUR):
        notified.run(later=later)
    api.answers.clear()
    log.append({log.name: ["pub-3"]})
    api.on_request = lambda it: it == "detail pub-3" and api.published.pop("3", None)
    notified.run()
    api.on_request = lambda _: None

    notified.run()

    assert notified.closed == {"3"}
    assert notified.run() == []


def test_a_long_confirmation_says_how_long_it_takes_and_begins_again_if_it_is_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, pipeline = organisation(400)
    gone = {str(number) for number in range(100, 250)}
    for key in gone:
        api.unpublish(key)

    def stop(_: str) -> None:
        if len(api.details) > 50:
            raise SystemExit

    api.on_request = stop
    with caplog.at_level("INFO"), pytest.raises(SystemExit):
        pipeline.run(max_concurrent_requests=1, rate_limit_requests=120)
    assert "150 known jobs. Asking whether they are unpublished: about 2 minutes." in caplog.text
    assert {message["type"] for message in pipeline.output.messages} == {"STATE"}
    api.on_request = lambda _: None

    pipeline.run(detail_refresh="changed")

    assert sorted(api.details) == sorted([*(f"pub-{key}" for key in gone), "pub-0"])
    assert (pipeline.error, pipeline.closed) == ("", gone)


# ACTIVATE_VERSION.


def test_a_resumed_run_activates_no_details_if_one_that_it_had_has_changed_and_fails(
    api: FakeApi,
) -> None:
    api.answers["pub-3"] = BROKEN
    pipeline = Pipeline(api)
    pipeline.run()
    api.edit("4", jobTitle="Edited")
    api.answers = {"pub-4": BROKEN}

    assert pipeline.run()[len(LIST) :] == ["detail pub-4", "detail pub-3"]

    assert "the detail of 'pub-4' is missing" in pipeline.error
    assert pipeline.activated == ["jobs"]


@pytest.mark.parametrize("refresh", ["changed", "notified"])
@pytest.mark.parametrize("cause", ["other columns", "an age of 0"])
def test_only_all_activates_details(
    api: FakeApi, notified: Pipeline, log: ChangeLog, refresh: str, cause: str
) -> None:
    """The detail of a closed job cannot be fetched again; its last one stays."""
    api.unpublish("3")
    log.append({log.name: ["pub-3"]})
    config: dict[str, Any] = {"detail_max_age_days": 0}
    if cause == "other columns":
        config = {"stream_maps": {"job_details": {"twice": "jobTitle + jobTitle"}}}

    notified.run(detail_refresh=refresh, **config)

    assert len(api.details) in {2, 10}
    assert notified.activated == ["jobs"]
    assert notified.hard.rows["job_details"].keys() == {*map(str, range(10))}


def test_activation_that_is_switched_on_within_an_interrupted_pass_deletes_no_detail(
    api: FakeApi,
) -> None:
    """The rows of its first run have no version, and a target would take them for old."""
    pipeline = Pipeline(api, emit_activate_version_messages=False)
    api.answers["pub-3"] = BROKEN
    pipeline.run()
    api.answers.clear()

    pipeline.run(emit_activate_version_messages=True)

    assert pipeline.activated == ["jobs", "job_details"]
    assert pipeline.hard.rows["job_details"].keys() == api.published.keys()


# What the notification log named is owed until it is done.


def publish_unlisted(api: FakeApi, log: ChangeLog) -> None:
    """Publish a job that the log names, and that the list does not show yet."""
    api.publish("new")
    api.hidden.add("new")
    log.append({log.name: ["pub-new"]})


@pytest.mark.parametrize("total", ["exact", 11], ids=["total lags too", "total is right"])
def test_a_new_job_that_the_list_does_not_show_yet_is_awaited(
    api: FakeApi, notified: Pipeline, log: ChangeLog, total: Any
) -> None:
    """Its webhook comes before the list of two runs shows it. Nothing else repeats its news."""
    publish_unlisted(api, log)
    api.total = total
    for later, asked in ((60, []), (12 * 60, ["detail pub-new"])):
        requests = notified.run(later=later)
        assert [it for it in requests if it not in {*LIST, "page 5"}] == asked
        assert requests[len(asked) :][:4] == LIST  # the answer means that the list lags
        assert bool(notified.error) is (total == 11)

    api.total, api.hidden = "exact", set()
    notified.run()

    assert notified.error == ""
    assert notified.hard.rows["job_details"].keys() == api.published.keys()
    assert notified.run() == []


def test_a_job_that_no_list_ever_shows_is_awaited_for_a_day(
    api: FakeApi, notified: Pipeline, log: ChangeLog, caplog: pytest.LogCaptureFixture
) -> None:
    """However long the list lags, no other news is needed. Then a warning ends the wait."""
    publish_unlisted(api, log)
    notified.run()
    for later in (2 * HOUR, DAY - 2 * HOUR):
        assert notified.run(later=later) == ["detail pub-new", *LIST]
        assert "No longer waiting for" not in caplog.text

    assert notified.run() == ["detail pub-new"]
    assert "No longer waiting for" in caplog.text
    assert notified.run() == []


@pytest.mark.parametrize("is_first", [True, False], ids=["first run", "later run"])
def test_a_draft_costs_one_reading_of_the_list_and_one_request(
    api: FakeApi, changes_url: str, is_first: bool
) -> None:
    """Its webhook says that it was saved. A 404 is believed once no replica may lag."""
    log, pipeline = ChangeLog(changes_url), Pipeline(api, changes_url=changes_url)
    if not is_first:
        pipeline.run()
    log.append({"default": ["draft"]})
    assert "detail draft" not in pipeline.run()

    pipeline.config |= {"detail_refresh": "notified"}

    assert pipeline.run(later=11 * 60) == ["detail draft"]
    assert pipeline.run(later=11 * 60) == []


def test_a_run_that_is_stopped_while_it_awaits_a_job_forgets_no_closing(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    log.append({log.name: ["unknown"]})
    notified.run()
    api.unpublish("3")
    log.append({log.name: ["pub-3"]})
    api.answers["unknown"] = AccessError("the API refused the key (401)")
    assert notified.run(later=11 * 60) == ["detail unknown"]
    assert notified.output.of("RECORD") == []
    api.answers.clear()

    notified.run(later=2 * HOUR)

    assert notified.closed == {"3"}
    assert notified.hard.rows["jobs"].keys() == api.published.keys()


def test_another_organisations_key_ends_no_wait_for_an_awaited_job(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    publish_unlisted(api, log)
    notified.run()
    notified.api, own = FakeApi(page_size=3, jobs=0), notified.api
    notified.api.publish("other")

    assert notified.run(later=11 * 60, api_key="other") == ["page 1"]
    assert "api_key has changed" in notified.error
    notified.api = own

    assert "detail pub-new" in notified.run()


def test_a_publicid_that_changed_during_a_run_is_the_one_that_webhooks_name_next(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    log.append({log.name: ["pub-3"]})

    def rename(request: str) -> None:
        if request == "detail pub-3":
            api.edit("3", publicId="new-3")

    api.on_request = rename
    notified.run()
    api.on_request = lambda _: None
    api.edit("3", roleOverview="Everything.")
    log.append({log.name: ["new-3"]})

    notified.run()

    assert notified.hard.rows["job_details"]["3"]["roleOverview"] == "Everything."


def test_a_missing_job_that_a_webhook_names_is_no_reason_to_run_for_ever(
    api: FakeApi, notified: Pipeline, log: ChangeLog
) -> None:
    """Its detail is pending, and cannot be fetched before a list shows it."""
    api.hidden.add("3")
    api.edit("3", roleOverview="Everything.")
    log.append({log.name: ["pub-3"]})
    for later in (60, 2 * HOUR):
        assert "detail pub-3" in notified.run(later=later)
    assert notified.run() == []

    api.hidden.clear()
    log.append({log.name: ["pub-1"]})
    notified.run()

    assert notified.hard.rows["job_details"]["3"]["roleOverview"] == "Everything."
