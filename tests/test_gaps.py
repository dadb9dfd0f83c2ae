"""What is true in the warehouse: nothing unconfirmed is deleted, and no single job stops a run.

What is missing is a gap. It is new for an hour, and each run that sees it fails. After that it is
known, and runs warn.

Each run keeps what the next one needs: dates, details, and how far it read the notification log.

A scenario is a list of runs, each with what happens before it and what is expected of it:

    run(unpublish("3"), webhook("4"), asks="list 3 4", closes="3")
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import COMPARED, CONFIG, LIST, Pipeline
from harness import catalog_of, select_only
from model_target import plain

from tap_public_jobs.errors import NotFoundError, PageError, RequestError, TapError
from tap_public_jobs.limit.verdict import FEW_TRIES, MAX_TRIES
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync import notifications
from tap_public_jobs.sync.source import Page
from tap_public_jobs.sync.state import HOUR

DAY = 24 * HOUR
FORBIDDEN = RequestError("the response is 403, although the key reads the list", 403)
BROKEN = RequestError("the response is 500, after 8 tries", 500)
GONE = NotFoundError("the response is 404", 404)
REFUSED = TapError("the API refused the key (401)")

NO_STATE = "First run (no state). If there was an earlier one, pass its state, or"

# Of the fixture `api`.
EVERY = "0 1 2 3 4 5 6 7 8 9"

# What happens before a run, or within one. Jobs are named by their ids.
Event = Callable[[Pipeline], object]
Step = Callable[[Pipeline, pytest.LogCaptureFixture], None]
Play = Callable[..., Pipeline]


def publish(*keys: object) -> Event:
    return lambda it: [it.api.publish(f"{key}") for key in keys]


def unpublish(*keys: object) -> Event:
    return lambda it: it.api.unpublish(*map(str, keys))


def edit(key: str, **fields: object) -> Event:
    return lambda it: it.api.edit(key, **fields)


def hide(*keys: object) -> Event:
    """The list lacks these published jobs."""
    return lambda it: it.api.hidden.update(map(str, keys))


def total(number: Any) -> Event:
    """The pages count this many jobs."""
    return lambda it: setattr(it.api, "total", number)


def answer(value: object, *keys: object) -> Event:
    """These details answer with a value, or an error."""
    return lambda it: it.api.answers.update(dict.fromkeys((f"pub-{key}" for key in keys), value))


def fail(*keys: object) -> Event:
    return answer(BROKEN, *keys)


def lag(*keys: object) -> Event:
    """These details answer from now on as they are now."""
    return lambda it: [answer(it.api.published[f"{key}"], key)(it) for key in keys]


def answer_as_usual(pipeline: Pipeline) -> None:
    pipeline.api.answers.clear()


def heal(pipeline: Pipeline) -> None:
    """The list shows every job, and every request is answered."""
    pipeline.api.answers, pipeline.api.hidden, pipeline.api.total = {}, set(), "exact"


def load_state(loaded: dict[str, Any]) -> Event:
    """The next run gets this state, and not that of the last run."""
    return lambda it: setattr(it, "state", loaded)


def misspell_log(pipeline: Pipeline) -> None:
    """The setting `changes_url` names no log."""
    pipeline.config["changes_url"] = f"{pipeline.config['changes_url']}x"


def read_log_to(position: int, log_id: str | None = None) -> Event:
    """The last run has read a log that differs from the one that is there."""

    def change(pipeline: Pipeline) -> None:
        last_read = pipeline.sync_state["log"]
        last_read[:] = [log_id or last_read[0], position]

    return change


def forget_key(pipeline: Pipeline) -> None:
    """The state does not say whose it is, as if somebody had emptied its text."""
    pipeline.sync_state["key"] = ""


def correct_log(pipeline: Pipeline) -> None:
    pipeline.config["changes_url"] = f"{pipeline.config['changes_url']}".removesuffix("x")


def webhook(*keys: object) -> Event:
    return lambda it: it.notify(*(f"pub-{key}" for key in keys))


def at(request: str, *events: Event) -> Event:
    """These events happen during the next run, at a request."""

    def on_request(pipeline: Pipeline, seen: str) -> None:
        for event in events if seen == request else ():
            event(pipeline)

    return lambda it: setattr(it.api, "on_request", lambda seen: on_request(it, seen))


def answer_pages(*values: object, start: int = 1) -> Event:
    """Pages of the list, the first ones by default, are other ones, or errors."""
    return lambda it: it.api.answers.update(enumerate(values, start))


def twice(jobs: list[Any]) -> list[Any]:
    """The list has the jobs of its first page on the second one, too, and not those of that."""
    return [*jobs[:3], *jobs[:3], *jobs[6:]]


def stop(_: Pipeline) -> None:
    raise SystemExit(143)


def run(
    *events: Event,
    refresh: str | None = None,
    later: float = 60,
    catalog: dict[str, Any] | None = None,
    upto: int | None = None,
    asks: str | None = None,
    writes: str | None = None,
    dates: Mapping[str, tuple[int | None, ...]] | None = None,
    closes: str = "",
    activates: str | None = None,
    fails: str = "",
    warns: str = "",
    says: str = "",
    **config: Any,
) -> Step:
    """A run that follows these events, and what is expected of it.

    Whatever happens, no published job is closed, none that was loaded leaves a table, and the times
    of all jobs are in order. A run without a request writes nothing. If nothing changes during a
    run with a complete list, the published jobs and the activated tables equal it; if the run
    succeeds, so do all rows, but those of details with answers of their own.

    Args:
        events: They happen before it.
        refresh: The `detail_refresh` from this run on.
        later: Seconds since the last run.
        catalog: What it selects, if not everything.
        upto: The target dies after it has read this many messages.
        asks: Its requests in order: `list` for one reading of it, or the id of a job.
        writes: The jobs whose details are written.
        dates: The rows of `job_publications` of some jobs: of each time, the number of its run.
        closes: The jobs that it closes.
        activates: The streams that it activates.
        fails: A part of its error; without one, it has to succeed.
        warns: A part of its warnings; without one, it may not warn.
        says: A part of its log or of its error.
        config: Settings from this run on.
    """

    def play(pipeline: Pipeline, log: pytest.LogCaptureFixture) -> None:
        for event in events:
            event(pipeline)
        pipeline.config |= config | ({"detail_refresh": refresh} if refresh else {})
        log.clear()
        api, tables = pipeline.api, pipeline.hard.rows
        last, before = pipeline.state, (api.listed(), {**api.published})

        requests = pipeline.run(later=later, catalog=catalog, upto=upto)

        api.on_request = lambda _: None
        warnings = [it.message for it in log.records if it.levelname == "WARNING"]
        assert (fails in pipeline.error, bool(pipeline.error)) == (True, bool(fails))
        assert (warns in f"{warnings}", bool(warnings)) == (True, bool(warns))
        assert says in log.text + pipeline.error
        assert (NO_STATE in log.text) is (last == {})
        assert asks in {None, " ".join(words(requests))}
        assert writes in {None, " ".join(pipeline.output.rows("job_details"))}
        assert activates in {None, " ".join(pipeline.activated)}
        rows = map(plain, pipeline.output.records("job_publications"))
        assert {row["id"] for row in rows if row["unpublishedat"]} == {*closes.split()}
        if dates:
            assert dates.items() <= pipeline.runs_of_periods().items()
        if pipeline.output.records("job_publications"):  # no other run opens or closes a job
            assert not pipeline.closed & api.published.keys()
        for opened_after, first_seen, last_seen, unpublished in pipeline.periods().values():
            assert (opened_after or "") < first_seen <= last_seen < (unpublished or "9")
        for stream in ("jobs", "job_details"):
            assert pipeline.hard.rows[stream].keys() >= tables[stream].keys() & api.published.keys()
        # Its own state comes first, so that what the SDK writes loses nothing.
        assert pipeline.output.order[:1] in ([], ["STATE"])
        if not requests:
            assert pipeline.output.of("SCHEMA") == []
            assert pipeline.state["bookmarks"]["jobs"] == last["bookmarks"]["jobs"]
        is_whole = upto is None and before == (api.listed(), api.published)
        if is_whole and api.listed() and pipeline.output.records("job_publications"):
            assert_equal_to_the_list(pipeline, log.text)

    return play


def assert_equal_to_the_list(pipeline: Pipeline, log: str) -> None:
    """Hold the tables against the jobs that the list shows after a run that wrote publications."""
    api = pipeline.api
    listed = {it["id"] for it in api.listed()}
    assert pipeline.targets["upsert"].published() == listed
    if "Resuming the last run" not in log:  # such a run may leave a row more
        for stream in pipeline.activated:
            assert pipeline.hard.rows[stream].keys() == listed
    usual = listed - {f"{it}".removeprefix("pub-") for it in api.answers}
    for stream in COMPARED if not pipeline.error else ():
        found, truth = pipeline.found("upsert", stream), pipeline.truth(stream)
        assert {it: found[it] for it in usual} == {it: truth[it] for it in usual}


def words(requests: list[str]) -> list[str]:
    """The requests as `run` names them."""
    pages = [int(it.removeprefix("page ")) for it in requests if it.startswith("page ")]
    assert all(page in {1, before + 1} for before, page in pairwise([0, *pages]))
    names = ("list" if it == "page 1" else it.removeprefix("detail pub-") for it in requests)
    return [it for it in names if not it.startswith("page ")]


@pytest.fixture
def play(api: FakeApi, changes_url: str, caplog: pytest.LogCaptureFixture) -> Play:
    """Plays runs, with one request at a time, so that their order is certain."""
    NotificationLog(changes_url).append({"default": []})  # makes it
    pipeline = Pipeline(api, changes_url=changes_url, max_concurrent_requests=1)
    caplog.set_level("INFO")

    def play(*steps: Step) -> Pipeline:
        for step in steps:
            step(pipeline, caplog)
        return pipeline

    return play


def without(column: str) -> dict[str, Any]:
    """A catalog in which this column of the details is not selected."""
    catalog = catalog_of(CONFIG)
    for entry in catalog["streams"][2]["metadata"]:
        entry["metadata"]["selected"] = entry["breadcrumb"] != ["properties", column]
    return catalog


def declared(**rules: object) -> dict[str, Any]:
    """A catalog that adds these rules to a column of the details."""
    catalog = catalog_of(CONFIG)
    catalog["streams"][2]["schema"]["properties"]["location"] |= rules
    return catalog


NO_LIST = answer_pages(PageError("page 1: 503"))
TWICE = "list list"
ALL_LOST = "10 of 10 published jobs disappeared from the list at once"
# Of a run at 10:02.
INCOMPLETE = (
    "The sync is incomplete. Everything else was loaded, and no row was removed from a table that "
    "may lack a job. Reason: 'pub-5' is not in the list, but its detail still loads. No action is "
    "needed: each run tries again, exits with 1 until 11:02 UTC, and then only warns."
)
NONE_LOADS = "no detail of a listed job loads either"
LOADED = run(asks=f"list {EVERY}", activates="jobs job_details", says="(10 new)")
NOTIFIED = run(refresh="notified", asks=f"list {EVERY}", activates="jobs")
OTHER_JOB = {"id": "x", "publicId": "x"}
OTHERS = answer_pages(Page([OTHER_JOB], 3, 1))
ONLY_JOBS = select_only(CONFIG, "jobs")
NO_PUBLICATIONS = select_only(CONFIG, "jobs", "job_details")
NO_JOBS = select_only(CONFIG, "job_publications", "job_details")
DAMAGED = "The saved state is damaged, or of another version of the tap"
NOT_COVERED = "The notification log does not cover everything since the last run"
NO_LOG = "There is no notification log in"
FLAT = {"flattening_enabled": True, "flattening_max_depth": 1}
# What the records of details are made of, before and after a change.
COLUMNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "selection": ({"catalog": without("location")}, {}),
    "schema": ({"catalog": declared(maxLength=99)}, {}),
    "column_naming": ({}, {"column_naming": "snake_case"}),
    "stream_maps": ({}, {"stream_maps": {"job_details": {"x": "1"}}}),
    "stream_map_config": (
        {"stream_maps": {"job_details": {"x": "jobTitle"}}},
        {"stream_maps": {"job_details": {"x": "config['a']"}}, "stream_map_config": {"a": "b"}},
    ),
    "flattening_separator": (FLAT, FLAT | {"flattening_separator": "-"}),
}
# A job that the list does not show yet; nothing but this webhook names it.
UNLISTED = (publish("new"), hide("new"), webhook("new"))
# One job goes, another one gets its publicId, and so on; the last one is not found.
MOVES = (
    *(unpublish("1"), edit("2", publicId="pub-1"), edit("3", publicId="pub-renamed")),
    *(edit("4", publicId="pub-lost"), answer(GONE, "lost")),
)

# How each kind of gap begins, what is said of it, and what a retry within the hour asks for.
GAPS: dict[str, tuple[Event, str, str]] = {
    "a failing detail": (fail("3"), f"the detail of 'pub-3' is missing: {BROKEN}", "list 3"),
    "a detail that is 404": (
        answer(GONE, "3"),
        "the detail of 'pub-3' is missing: the response is 404, although the job is listed",
        "list 3 list",
    ),
    "a missing job": (
        hide("3"),
        "'pub-3' is not in the list, but its detail still loads",
        "list 3",
    ),
    # The first page says 30, and the others less: the largest number counts.
    "a total that is too large": (
        lambda it: total(lambda: 30 if it.api.requests[-1] == "page 1" else 5)(it),
        "the list shows 10 of 30 jobs",
        TWICE,
    ),
    "no total": (total(None), "the list does not say how many jobs there are", "list"),
}

# Scenarios that begin without a state.
FIRST_RUNS: dict[str, list[Step]] = {
    # A job opened in (openedAfter, firstSeenAt], and closed in (lastSeenAt, unpublishedAt].
    **{
        f"the times of four runs under {refresh}": [
            run(refresh=refresh, dates=dict.fromkeys(EVERY.split(), (None, 1, 1, None))),
            run(publish("new"), dates={"new": (1, 2, 2, None), "1": (None, 1, 2, None)}),
            run(
                unpublish(0, 2),
                closes="0 2",
                dates={"new": (1, 2, 3, None), "0": (None, 1, 2, 3), "2": (None, 1, 2, 3)},
            ),
            run(publish("0"), dates={"0": (3, 4, 4, None), "2": (None, 1, 2, 3)}),
        ]
        for refresh in ("all", "changed")
    },
    "the last state but one covers all details, and so may be the last that a target reads": [
        run(refresh="changed", upto=-1),
        run(asks="list"),
    ],
    "a run that is stopped remembers what fails": [
        run(fail(0, 1, 2), at("detail pub-5", stop), asks="list 0 1 2 3 4 5", fails="143"),
        run(asks="list 0 1 2 5 6 7 8 9", fails="'pub-0'"),
    ],
    "bad neighbours do not block the others, if the list can be read": [
        run(
            fail(*range(5)),
            asks="list 0 1 2 3 4 list 5 6 7 8 9",  # once more after five failures in a row
            activates="jobs",
            fails="The sync is incomplete",
            says="the detail of 'pub-4' is missing",
        ),
    ],
    "details that fail in a row end the run if the list fails, too": [
        run(fail(*range(2, 10)), at("detail pub-2", NO_LIST), writes="0 1", fails="page 1: 503"),
        run(heal, asks="list 2 3 4 5 6 7 8 9"),
    ],
    "a loss before the first complete list is one too": [
        run(total(11), fails="the list shows 10 of 11 jobs"),
        run(heal, unpublish(*range(10)), asks="list", fails=ALL_LOST, activates=""),
    ],
    "a resumed run activates no details if one that it had has changed and fails": [
        run(fail("3"), fails="'pub-3'"),
        run(
            *(heal, edit("4", jobTitle="Edited"), fail("4")),
            asks="list 3 4",
            fails="'pub-4'",
            activates="jobs",
        ),
    ],
    # The rows of its first run have no version, and a target would take them for old.
    "activation that is switched on within an interrupted pass deletes no detail": [
        run(fail("3"), emit_activate_version_messages=False, fails="'pub-3'", activates=""),
        run(heal, emit_activate_version_messages=True, activates="jobs job_details"),
    ],
    # Once for the job that is gone, and once for the one that has its publicId now.
    "a publicId that another job takes over costs no job, and one that is not found is a gap": [
        run(at("detail pub-0", *MOVES), refresh="changed", asks=f"list {EVERY} list"),
        run(asks="list 1 1 renamed lost list", closes="1", fails="'pub-lost' is missing"),
        run(heal, asks="list lost"),
    ],
    # Its webhook says that it was saved.
    "a draft that a webhook named before the first run costs one reading of the list": [
        run(webhook("draft"), asks=f"list {EVERY}"),
        run(refresh="notified", later=11 * 60, asks="list"),
        run(later=11 * 60, asks=""),
    ],
    # The shortfall differs from run to run by the jobs that were closed and opened.
    **{
        f"a total that never fits, as it counts {kind}, stops no churning list": [
            run(total(15), refresh="changed", fails="the list shows 10 of 15 jobs"),
            *(
                run(
                    *(unpublish(day), publish(f"new-{day}"), total(16 + day * growth)),
                    later=DAY,
                    asks=f"list {day} new-{day}",
                    # No complete list has shown the first one.
                    closes=f"{day}" if day else "",
                    activates="jobs",
                    warns="the list shows 10 of",
                )
                for day in range(4)
            ),
        ]
        for kind, growth in {"always as many": 0, "closed jobs, too": 1}.items()
    },
    "a nightly run that begins early begins anew, and one within twenty hours resumes": [
        run(answer(REFUSED, "7"), asks="list 0 1 2 3 4 5 6 7", fails="(401)"),
        run(later=20 * HOUR - 1, asks="list 7", fails="(401)"),
        run(later=1, asks="list 0 1 2 3 4 5 6 7", fails="(401)"),
    ],
    "a run of another kind is not resumed": [
        run(answer(REFUSED, "7"), refresh="changed", fails="(401)"),
        run(answer_as_usual, refresh="all", asks=f"list {EVERY}"),
    ],
    "an age of 0 does not repeat what an interrupted run fetched": [
        run(refresh="changed", detail_max_age_days=0),
        run(answer(REFUSED, "7"), asks="list 0 1 2 3 4 5 6 7", fails="(401)"),
        run(answer_as_usual, asks="list 7 8 9"),
    ],
    # If it had another version, the target would remove the rows of the run before.
    **{
        f"a run under {refresh} that was interrupted is resumed {later} s later": [
            run(answer(REFUSED, "7"), refresh=refresh, writes="0 1 2 3 4 5 6", fails="(401)"),
            run(answer_as_usual, later=later, asks="list 7 8 9", activates=activates),
            run(asks=asks),
        ]
        for later in (60, -3_600)
        for refresh, asks, activates in (
            ("all", f"list {EVERY}", "jobs job_details"),
            ("changed", "list", "jobs"),
        )
    },
    # It is tried in each run, and its last known detail stays.
    **{
        f"a listed job whose detail always fails stops nothing under {refresh}": [
            run(refresh=refresh),
            run(edit("3", jobTitle="Edited"), fail("3"), later=DAY, fails="'pub-3'"),
            *(
                run(
                    edit("3", jobTitle=f"Edit {day}"),
                    edit("4", jobTitle=f"Edit {day}", roleOverview=f"Day {day}"),
                    later=DAY,
                    asks=asks,
                    activates="jobs",
                    warns="the detail of 'pub-3' is missing",
                )
                for day in range(3)
            ),
            run(heal, activates=activates),
        ]
        for refresh, asks, activates in (
            ("all", f"list {EVERY}", "jobs job_details"),
            ("changed", "list 3 4", "jobs"),
        )
    },
    # It is doubtful that all of five or more are gone, or of more than 20 more than half.
    **{
        f"{gone} of {known} jobs may close at once": [
            run(unpublish(*range(known, 10)), publish(*range(10, known)), refresh="changed"),
            run(unpublish(*range(gone)), closes=" ".join(map(str, range(gone))), activates="jobs"),
        ]
        for gone, known in ((4, 4), (5, 6), (20, 39), (21, 42))
    },
    # Each run of the hour knows more jobs, but those were listed while the list was in doubt.
    **{
        f"{new} jobs that replace {gone} of {known} do not make their closing credible": [
            run(unpublish(*range(known, 10)), publish(*range(10, known))),
            run(
                *(unpublish(*range(gone)), publish(*(f"new-{number}" for number in range(new)))),
                fails=f"{gone} of {known} published jobs disappeared from the list at once",
                activates="",
            ),
            run(fails=f"{gone} of {known}", activates=""),
            run(later=HOUR / 2, fails=f"{gone} of {known}", activates=""),
            run(later=HOUR, closes=" ".join(map(str, range(gone)))),
        ]
        for gone, known, new in ((5, 5, 1), (10, 10, 10), (21, 41, 2), (60, 118, 20), (150, 150, 9))
    },
    # Once, everything was empty and answered 404. When details answer again, none is closed.
    **{
        f"a job is closed by an answer of the run that closes it, with {listed} listed": [
            run(publish(*range(10, 30))),
            run(hide(*range(30)), answer(GONE, *range(30)), fails="30 of 30 published jobs"),
            run(heal, hide(*range(listed, 30)), later=600, fails="list", activates=""),
            run(later=2 * HOUR, warns="still loads", activates=""),
        ]
        for listed in (0, 20)
    },
}

# Scenarios that begin after ten jobs were loaded.
UNDER_ALL: dict[str, list[Step]] = {
    # However often a scheduler retries; a retry requests only what is missing.
    **{
        f"{kind} fails each run for an hour, and is a warning after that": [
            run(begin, fails=why),
            *(run(later=later, asks=asks, fails=why) for later in (1, HOUR / 2, HOUR / 2 - 2)),
            run(later=1, warns=why, says="(for 1 hour). Everything else was loaded."),
            run(later=22 * HOUR, warns=f"Still missing: {why}", says="(for 23 hours)"),
            run(later=5 * DAY, warns=why, says="(for 5 days 23 hours)"),
        ]
        for kind, (begin, why, asks) in GAPS.items()
    },
    **{
        f"{kind} that heals is forgotten, and new when it returns": [
            run(begin, fails=why),
            run(later=2 * HOUR, warns=why),
            run(heal, later=DAY, activates="jobs job_details"),
            run(begin, fails=why),
            run(later=2 * HOUR + 5 * DAY, warns=why),  # the clock is ahead
            run(heal, later=-4 * DAY, activates="jobs job_details"),
            run(begin, fails=why),
        ]
        for kind, (begin, why, _) in GAPS.items()
    },
    "a gap is known an hour after it was seen, although the clock was put back by a month": [
        run(fail("3"), fails="'pub-3'", says="exits with 1 until 09:02 UTC"),
        run(later=-30 * DAY, fails="'pub-3'"),
        run(later=HOUR, warns="'pub-3'"),
    ],
    "of two gaps, the later one says until when runs fail": [
        run(fail("3"), fails="'pub-3'", says="exits with 1 until 09:02 UTC"),
        run(hide("5"), later=30 * 60, fails="'pub-5'", says="exits with 1 until 09:32 UTC"),
    ],
    "an incomplete list closes and opens nothing, and writes no times": [
        run(
            *(publish("new", "passing"), edit("3", id="")),
            writes="0 1 2 4 5 6 7 8 9 new passing",
            dates={"1": (None, 1, 1, None)},
            activates="",
            fails="without a usable id or publicId was left out: page 2, item 1",
        ),
        run(
            *(edit("3", id="3"), unpublish("passing")),
            dates={"new": (1, 3, 3, None), "3": (None, 1, 3, None)},
        ),
        run(unpublish("new"), closes="new", dates={"new": (1, 3, 3, 4)}),
        # It returns in an incomplete list: its last period stays until a complete one shows it.
        run(publish("new"), total(99), fails="shows 11 of 99", dates={"new": (1, 3, 3, 4)}),
        run(heal, dates={"new": (4, 6, 6, None)}),
    ],
    # Each was replaced between the same two listings, so no day has both.
    "if all ids change at once, old jobs close and new ones open at the same time": [
        run(unpublish(*range(10)), publish(*range(10, 20)), later=DAY, fails=ALL_LOST),
        run(later=12 * 60, fails=ALL_LOST),
        run(
            later=DAY,
            closes=EVERY,
            dates=dict.fromkeys(EVERY.split(), (None, 1, 1, 4))
            | {f"{number}": (1, 4, 4, None) for number in range(10, 20)},
        ),
    ],
    # Its list counted it as one of those that wait for a complete one.
    "a job that an incomplete list shows, and a complete one lacks, opens after neither": [
        run(publish("new"), total(99), fails="shows 11 of 99"),
        run(heal, hide("new"), fails="'pub-new'"),
        run(heal, dates={"new": (1, 4, 4, None)}),
    ],
    "a closing that was never written outlives an incomplete list that shows the job": [
        run(unpublish("3"), catalog=NO_PUBLICATIONS),
        run(publish("3"), total(99), fails="shows 10 of 99"),
        run(heal, unpublish("3"), closes="3", dates={"3": (None, 1, 1, 2)}),
    ],
    "a job closed while job_publications is deselected is written once it is selected again": [
        run(unpublish("0"), catalog=NO_PUBLICATIONS),
        run(closes="0", dates={"0": (None, 1, 1, 2)}),
        run(later=HOUR),
    ],
    "a job closed while job_publications is deselected, and published again, begins anew": [
        run(unpublish("0"), catalog=NO_PUBLICATIONS),
        run(publish("0"), dates={"0": (2, 3, 3, None)}),
    ],
    **{
        f"a saved state with the bookmarks {bookmarks} is set aside": [
            run(
                load_state({"bookmarks": bookmarks}),
                refresh="changed",
                asks=f"list {EVERY}",
                activates="jobs",
                warns=warns,
            ),
        ]
        for bookmarks, warns in (
            ({"jobs": {"sync": {"format": 99}}}, f"{DAMAGED} (ValueError: format 99 is not known)"),
            (5, f"{DAMAGED} (AttributeError: 'int' object has no attribute 'get')"),
            ({"jobs": {}}, ""),
        )
    },
    "all fetches all again, also within the same second": [
        run(unpublish("3"), later=0, closes="3", activates="jobs job_details", says="9 refreshed"),
    ],
    "a run that is stopped while it resumes another is resumed, too": [
        run(fail("3"), fails="'pub-3'"),
        run(at("detail pub-3", stop), later=HOUR / 2, asks="list 3", fails="143"),
        run(heal, later=HOUR, asks="list 3"),
    ],
    # One clock: it is an hour ahead during one listing, and then corrected.
    "times rise wherever the clock goes": [
        run(later=HOUR),
        run(unpublish("3"), later=-HOUR, closes="3"),
    ],
    "times rise wherever the clock goes, although the list was incomplete": [
        run(publish("new"), total(20), later=HOUR, fails="the list shows 11 of 20 jobs"),
        run(heal, unpublish("new", "3"), later=-HOUR, closes="3"),
    ],
    "each new gap fails the run beside known ones; the error names fifty, and the warning ten": [
        run(fail("3"), hide("4"), fails="'pub-3'"),
        run(hide("5"), later=2 * HOUR, fails=INCOMPLETE, warns="'pub-4'"),
        run(publish(*range(10, 70)), fail(*range(10, 70)), fails="; and 11 more.", warns="'pub-3'"),
        run(later=2 * HOUR, warns="(for 2 hours); and 53 more. Everything else was loaded."),
    ],
    "while five details fail, a further one is as old as the oldest": [
        run(fail(*range(4)), fails="'pub-3'"),
        run(fail("4"), later=2 * HOUR, fails="'pub-4'", warns="'pub-3'"),
        run(fail("5"), later=HOUR, warns=f"'pub-5' is missing: {BROKEN} (for 3 hours)"),
    ],
    "while no detail loads, whether a job is gone cannot be found out, for the same cause": [
        run(fail(*range(10)), fails="'pub-3'"),
        run(later=2 * HOUR, warns="'pub-3'"),
        run(hide("9"), warns=f"'pub-9' is not in the list, but {BROKEN}"),
    ],
    "an outage is new beside details that have failed for a week, which are no part of it": [
        run(fail(*range(5)), fails="'pub-0'"),
        run(fail("5"), later=6 * DAY, warns=f"'pub-5' is missing: {BROKEN} (for 6 days)"),
        run(publish(*range(10, 30)), fail(*range(30)), later=DAY, fails="'pub-6'", warns="'pub-0'"),
    ],
    "after a lost state, a short list deletes nothing for an hour": [
        run(load_state({}), hide(7, 8, 9), total(10), fails="the list shows 7 of 10", activates=""),
        run(later=1, fails="the list shows 7 of 10", activates=""),
        run(later=HOUR / 2, fails="the list shows 7 of 10", activates=""),
    ],
    "after a lost state, an empty list costs one request, and removes nothing": [
        run(load_state({}), hide(*range(10)), asks="list", writes="", activates=""),
        run(later=2 * HOUR, asks="list", writes="", activates=""),
        run(heal, unpublish(*range(9)), asks="list 9", activates="jobs job_details"),
        run(unpublish("9"), asks="list 9", closes="9", activates="jobs job_details"),
    ],
    "an empty list is believed after an hour if all details are gone; the next one is a loss": [
        run(unpublish(*range(10)), asks="list", fails=ALL_LOST, activates=""),
        run(later=HOUR / 2, asks="list", fails=ALL_LOST, activates=""),
        run(later=HOUR / 2, closes=EVERY, activates="jobs job_details"),
        run(publish(*range(10))),
        run(unpublish(*range(10)), asks="list", fails=ALL_LOST),
    ],
    **{
        f"an empty list is not believed while details answer that {error}": [
            run(hide(*range(10)), answer(error, *range(10)), fails=ALL_LOST, activates=""),
            run(later=HOUR / 2, asks="list", fails=ALL_LOST, activates=""),
            run(later=2 * HOUR, warns="Still missing", activates=""),
            run(heal, later=DAY, activates="jobs job_details"),
            run(hide(*range(10)), asks="list", fails=ALL_LOST),
        ]
        for error in (BROKEN, FORBIDDEN)
    },
    **{
        f"a list that shows {listed} jobs after details that are all 404 deletes none of them": [
            run(
                *(answer(GONE, *range(10)), at("detail pub-0", hide(*range(listed, 10)), count)),
                fails="and the list is not complete",
            ),
        ]
        for listed, count in ((0, total("exact")), (4, total(None)))
    },
    # All other jobs are written, opened, closed and dated as usual.
    **{
        f"an unlisted job, counted as {number}, whose detail answers {value}, freezes nothing": [
            run(hide("3"), total(number), answer(value, "3"), fail("4"), fails="'pub-3'"),
            *(
                run(
                    *(publish(f"new-{day}"), unpublish(day), edit("9", jobTitle=f"Edit {day}")),
                    later=later,
                    closes=f"{day}",
                    activates="",
                    fails="'pub-3' is not in the list" if later < HOUR else "",
                    warns="'pub-3' is not in the list" if later > HOUR else "",
                )
                for day, later in enumerate((60, DAY, DAY))
            ),
            run(heal, unpublish("3"), closes="3", activates="jobs job_details"),
        ]
        for number in (10, "exact")
        for value in (FORBIDDEN, BROKEN, {"id": "3", "publicId": "pub-3"})
    },
    # The list is read once more, whatever its total: it is current, cached, or known to be lacking.
    **{
        f"a job that closes after the listing is skipped and counted, with the total {number}": [
            *(run(total(number), fails=why) for _ in range(bool(why))),
            run(
                *(total(number), at("detail pub-3", unpublish("3"))),
                later=DAY,
                asks=f"list {EVERY} list",
                activates="jobs job_details",
                warns=why,
                says="1 unpublished during the run",
            ),
        ]
        for number, why in {"exact": "", 10: "", None: "does not say how many jobs"}.items()
    },
    # The list that is read after the details passes it by, because another job closes meanwhile.
    "a job with a new publicId that the list lacks because it drifted is pending, and stays": [
        run(
            at("detail pub-3", edit("3", publicId="pub-new"), at("page 2", unpublish("1"))),
            asks=f"list {EVERY} list",
            activates="jobs",
            says="Not found: 1 details.",
        ),
        run(refresh="changed", asks="list 1 new", closes="1", writes="3"),
    ],
    "a job that is renamed during the run is fetched by the next one": [
        run(
            at("detail pub-3", edit("3", publicId="pub-renamed")),
            asks=f"list {EVERY} list",
            activates="jobs",
        ),
        run(refresh="changed", asks="list renamed", writes="3"),
    ],
}
UNDER_CHANGED: dict[str, list[Step]] = {
    "a cached total may count what was closed within the hour, and costs no second reading": [
        run(unpublish("3"), total(10), asks="list 3 0", closes="3"),
        run(asks="list"),
        run(later=HOUR - 61, asks="list"),
        run(later=1, asks=TWICE, fails="the list shows 9 of 10 jobs"),
        run(unpublish("4"), later=HOUR, asks="list 4 1", closes="4", warns="8 of 10 jobs"),
    ],
    "a page beyond the last one that counts no job is no reason to read the list again": [
        run(
            *(unpublish("9"), answer_pages(Page([], 3, 0), start=4)),
            asks="list 9 0",
            closes="9",
        ),
    ],
    "a detail that failed is asked for again, although its summary is as it was before": [
        run(edit("3", jobTitle="Edited"), fail("3"), asks="list 3", fails="'pub-3'"),
        run(publish("3"), answer_as_usual, asks="list 3"),
        run(asks="list"),
    ],
    # One that is refreshed is asked for once, and so is one that lacks a field.
    "a detail that lacks a change that the list shows is asked for twice": [
        run(
            *(lag(3, 4), answer({"id": "5"}, 5)),
            *(publish("new"), answer({"id": "new", "jobTitle": "Another"}, "new")),
            *(edit(key, jobTitle="Edited") for key in "345"),
            webhook("3"),
            asks="list 3 4 5 new",
        ),
        run(lambda it: it.api.answers.pop("pub-3"), asks="list 3 4 new"),
        run(detail_max_age_days=0, asks=f"list {EVERY} new"),
        run(detail_max_age_days=7, asks="list"),
    ],
    # Not only with the help of a known job, which the total may still count.
    "a list that was short is so until it shows its whole total by itself": [
        run(total(12), fails="shows 10 of 12 jobs, so job_publications was not updated. No"),
        run(later=HOUR, asks="list", warns="the list shows 10 of 12 jobs (for 1 hour)."),
        run(total(10), hide("9"), fails="'pub-9'"),
        run(total(12), fails="'pub-9'", warns="the list shows 9 of 12 jobs"),
        run(heal),
        run(total(12), fails="the list shows 10 of 12 jobs"),
    ],
    "a closing costs its own detail, and that of the oldest job, which shows that details work": [
        run(unpublish("3"), asks="list 3 0", writes="0", closes="3"),
        run(unpublish("7"), asks="list 7 1", writes="1", closes="7"),
    ],
    "a closing costs its own detail alone if that of another unlisted job loads": [
        run(unpublish("4"), hide("5"), asks="list 4 5 list", closes="4", fails="'pub-5'"),
    ],
    "a job whose publicId is listed for another one is gone": [
        run(unpublish("2"), edit("9", publicId="pub-2"), asks="list 2 0 2", closes="2"),
    ],
    "a job that was missing before is asked for once, and after others": [
        run(hide("3"), answer(FORBIDDEN, "3"), total(10), asks="list 3 list", fails="'pub-3'"),
        run(
            unpublish(4, 5, 9),
            asks="list 4 5 9 3 0",
            closes="4 5 9",
            fails=f"in the list, but {FORBIDDEN}",
        ),
    ],
    "that details work is asked of jobs whose own are not known to fail": [
        run(*(edit(key, jobTitle="Edited") for key in "012"), fail(0, 1, 2), fails="'pub-0'"),
        run(unpublish("9"), later=DAY, asks="list 9 3 0 1 2", closes="9", warns="'pub-0'"),
    ],
    "a list that shows jobs twice, and lacks others, may have no stable order": [
        run(
            lambda it: vars(it.api).update(listed=partial(twice, it.api.listed())),
            asks="list 3 4 5 list",
            fails="'pub-3' is not in the list, but its detail still loads; 'pub-4'",
            says="If runs still say so after two hours, the list has no stable order: ask the",
        ),
    ],
    "the list is read once more for an unlisted job, whatever its total is then": [
        run(hide("3"), at("detail pub-3", total(12)), asks="list 3 list", fails="shows 9 of 12"),
    ],
    "a 404 means nothing until the detail of a listed job loads; three are asked for at most": [
        run(unpublish("9"), fail(0, 1), asks="list 9 0 1 2", closes="9", writes="2"),
        run(unpublish("8"), fail(3), asks="list 8 0 1 3 list", fails="'pub-8'", says=NONE_LOADS),
    ],
    # Then the state is as it was: no detail is fetched again.
    **{
        f"the key of another organisation, with the jobs {jobs} and the total {number}, stops": [
            run(
                answer_pages(Page(jobs, 3, number), Page([], 3, number)),
                api_key="their-key",
                asks="list",
                activates="",
                fails="api_key has changed, and the API lists none of the 10 jobs",
                says='set "key" in the state to ""',
            ),
            run(answer_as_usual, api_key="a-key", asks="list"),
        ]
        for jobs in ([], [OTHER_JOB])
        for number in (len(jobs), 3, None)
    },
    # A restored backup, after a migration. Nobody but the user knows that it is the same one.
    "a state without its key goes on with a new key and new ids, and keeps the history": [
        run(unpublish(*range(10)), publish(*range(10, 20)), api_key="new", fails="api_key has ch"),
        run(forget_key, fails=ALL_LOST),
        run(later=HOUR, closes=EVERY, dates={"0": (None, 1, 1, 4), "10": (1, 4, 4, None)}),
    ],
    "a rotated key goes on, also while nothing is published": [
        run(api_key="a-new-key", asks="list"),
        run(unpublish(*range(10)), publish("new"), fails=ALL_LOST),
        run(later=HOUR, closes=EVERY, activates="jobs"),
        run(unpublish("new"), closes="new"),
        run(api_key="a-third-key"),
    ],
    # The detail of the new job shows that the 404 mean something: nobody asks for it twice.
    "new and changed jobs are fetched alone": [
        run(
            *(unpublish(0, 1, 2), publish("new")),
            *(edit("5", maxSalary=1_000_000), edit("6", maxSalary=1_000_000)),
            asks="list 0 1 2 new 5 6",
            closes="0 1 2",
            activates="jobs",
            says="Fetching 3 of 8 details (2 changed, 1 new)",
        ),
        run(asks="list", activates="jobs"),
    ],
    # Between half of a week, their greatest age, and all of it.
    "details do not all expire in one run": [
        *(run(later=DAY, asks="list") for _ in range(4)),
        run(later=DAY, asks="list 0 4 5 6 8 9"),
        run(later=DAY, asks="list 1 2 7"),
        run(later=DAY, asks="list 3"),
    ],
    **{
        f"all details have expired at the greatest age of {age} days": [
            run(
                unpublish("3"),
                later=age * DAY,
                detail_max_age_days=age,
                asks="list 3 0 1 2 4 5 6 7 8 9",
                closes="3",
                activates="jobs",
            ),
        ]
        for age in (0, 1)
    },
    "another description of a column, as a new version of the tap may have, costs nothing": [
        run(catalog=declared(description="Where to work."), asks="list"),
    ],
    "an unlisted job whose detail loads is asked for once, and found by another reading": [
        run(hide("3"), at("detail pub-3", heal), asks="list 3 list", writes=""),
    ],
}
UNDER_NOTIFIED: dict[str, list[Step]] = {
    "no news costs no request": [
        run(asks="", says="The notification log has no news since the last run: nothing to fetch"),
        run(asks=""),
    ],
    # The detail of the new job shows that the 404 of 5 means something: nobody asks for it twice.
    "news costs the list, what was named, and what changed": [
        run(
            *(edit("3", roleOverview="Everything."), edit("4", jobTitle="Chief of Everything")),
            *(unpublish("5"), publish("new"), webhook("3", "5")),
            asks="list 5 new 3 4",
            closes="5",
            activates="jobs",
        ),
        run(asks=""),
    ],
    # Nobody will ever name a change whose webhook was lost.
    "details expire under notified as under changed": [
        run(asks="", later=8 * DAY),
        run(edit("5", roleOverview="x"), webhook("5"), asks=f"list {EVERY}"),
        run(asks=""),
    ],
    # The answer may be that of a replica which has not heard of the change.
    "a detail that a webhook named is looked at once more if it is the one from before": [
        run(lag(3), edit("3", roleOverview="x"), webhook("3", "4"), asks="list 3 4"),
        run(answer_as_usual, asks="list 3 4", writes="3 4"),
        run(asks=""),
        run(webhook("4"), refresh="changed", asks="list 4"),
        run(fail("4"), asks="list 4", fails="'pub-4'"),
        run(heal, asks="list 4"),
        run(asks="list"),
    ],
    # One answer is cached for ten minutes. The second look is too early, and the third is not.
    "a detail that a webhook named and that stays as it was is looked at after ten minutes, too": [
        run(lag(3), edit("3", roleOverview="x"), webhook("3"), asks="list 3"),
        run(later=120, asks="list 3"),
        run(later=599, asks=""),
        run(edit("5", roleOverview="x"), webhook("5"), later=0, asks="list 5"),
        run(answer_as_usual, later=1, asks="list 3", says="(1 pending)"),
        run(later=DAY, asks=""),
    ],
    # The list shows another edit by then, for which the old answer comes once more.
    "a look that another change brings before that is too early, too": [
        run(lag(3), edit("3", roleOverview="x"), webhook("3"), asks="list 3"),
        run(later=120, asks="list 3"),
        run(
            *(edit("3", jobTitle="Edited"), edit("1", roleOverview="x"), webhook("1")),
            later=240,
            asks="list 1 3",
        ),
        run(later=599, asks=""),
        run(answer_as_usual, later=1, asks="list 3", says="(1 pending)"),
        run(later=DAY, asks=""),
    ],
    # The detail is new, and the cached list is not: `jobs` would stay as it was.
    "a second look that brings news, and contradicts the list, is followed by one more": [
        run(webhook("3"), asks="list 3"),
        run(answer({"id": "3", "jobTitle": "Edited"}, "3"), asks="list 3"),
        run(later=599, asks=""),
        run(answer_as_usual, edit("3", jobTitle="Edited"), later=1, asks="list 3", writes="3"),
        run(later=DAY, asks=""),
    ],
    "two looks are enough if ten minutes lie between them": [
        run(webhook("3"), asks="list 3"),
        run(later=600, asks="list 3"),
        run(later=600, asks=""),
    ],
    "a list that shows less than the detail that a webhook named is read once more": [
        run(webhook("0"), at("detail pub-0", edit("0", jobTitle="Edited")), asks="list 0"),
        run(asks="list 0"),
        run(asks=""),
    ],
    "the first detail of a new job that a webhook named is held against the list": [
        run(publish("new"), lag("new"), edit("new", jobTitle="Edited"), webhook("new")),
        run(answer_as_usual, asks="list new", writes="new"),
        run(asks=""),
    ],
    # Otherwise a gate that asks every two minutes would start a run each time.
    "a new gap is work, and a known one is not": [
        run(fail("3"), webhook("3"), asks="list 3", fails="'pub-3'"),
        run(asks="list 3", fails="'pub-3'"),
        run(later=HOUR - 120, asks="list 3", fails="'pub-3'"),
        run(asks="list 3", warns="'pub-3'"),  # once more, as a known one
        run(asks=""),
        run(heal, webhook("1"), asks="list 1 3"),
    ],
    "there is work as long as the last gap is new": [
        run(fail("3"), webhook("3"), later=HOUR / 2, asks="list 3", fails="'pub-3'"),
        run(fail("4"), webhook("4"), later=HOUR / 2, asks="list 3 4", fails="'pub-4'"),
        run(later=HOUR / 2 + 60, asks="list 3 4", fails="'pub-4'", warns="'pub-3'"),
        run(later=HOUR / 2, asks="list 3 4", warns="'pub-4'"),
        run(later=HOUR / 2, asks=""),
    ],
    "what failed once is known when the next run is late, and is tried again all the same": [
        run(edit("3", roleOverview="Everything."), fail("3"), webhook("3"), fails="'pub-3'"),
        run(heal, later=DAY, asks="list 3", writes="3"),
        run(later=DAY, asks=""),
    ],
    # A 404 is no failure, so nothing says any more that the next run may leave it alone.
    "a job that closes during a run is closed by the next, although its detail had failed": [
        run(fail("3"), webhook("3"), fails="'pub-3'"),
        run(later=2 * HOUR, warns="'pub-3'"),
        run(heal, webhook("3"), at("detail pub-3", unpublish("3")), asks="list 3 list"),
        run(asks="list 3 0", closes="3"),
        run(asks=""),
    ],
    # The detail of a closed job cannot be fetched again; its last one stays.
    **{
        f"{refresh} activates no details, although another {setting} has it fetch all again": [
            run(refresh=refresh, **before),
            # Also if no run in between writes details.
            *(run(catalog=ONLY_JOBS, stream_maps={}) for _ in range(refresh == "changed")),
            run(unpublish("3"), webhook("3"), closes="3", activates="jobs", says=says, **after),
            run(writes=""),
        ]
        for refresh, says in (
            ("changed", "Fetching 9 of 9 details (9 changed)"),
            ("notified", "The selected columns changed; fetching all details again."),
        )
        for setting, (before, after) in COLUMNS.items()
    },
    **{
        f"{refresh} takes in what was notified, and leaves no news": [
            run(edit("3", roleOverview="x"), webhook("3"), refresh=refresh, asks=asks),
            run(refresh="notified", asks=""),
        ]
        for refresh, asks in (("changed", "list 3"), ("all", f"list {EVERY}"))
    },
    # The position stays, so that the next run that can read the log misses nothing.
    **{
        f"a log that cannot be read costs an error under notified, but a warning under {refresh}": [
            run(webhook("3"), misspell_log, asks="", fails=NO_LOG),
            run(refresh=refresh, asks=asks, warns=NO_LOG),
            run(correct_log, refresh="notified", asks="list 3"),
        ]
        for refresh, asks in (("changed", "list"), ("all", f"list {EVERY}"))
    },
    # A change of the detail alone is found if a notification that is left names it.
    **{
        f"a run reads the list, and all that is left of the log, if {what} was read last": [
            run(edit("1", roleOverview="Edited"), webhook("1"), asks="list 1"),
            run(
                *(edit("3", jobTitle="Edited"), edit("4", roleOverview="Edited"), webhook("4")),
                last_read,
                asks="list 1 3 4",
                says=NOT_COVERED,
            ),
            run(asks="list 1"),
            run(asks=""),
        ]
        for what, last_read in {
            "another log": read_log_to(2, "another"),
            "more of it": read_log_to(100),
        }.items()
    },
    # Without news, too: the row that it wrote is newer than all others.
    "a run that is killed after its first record leaves work": [
        run(catalog=NO_JOBS, asks=""),
        run(catalog=NO_JOBS, refresh="changed", upto=3),
        run(catalog=NO_JOBS, refresh="notified", asks="list"),
    ],
    # The closing is in no list yet that a cache shows. Without a webhook, it is a gap at once.
    "a detail that a webhook named and that is 404 is a gap in the next run, if it stays so": [
        run(answer(GONE, "3"), webhook("3"), asks="list 3 list", says="Not found: 1 details"),
        run(asks="list 3 list", fails="404, although the job is listed"),
        run(answer_as_usual, asks="list 3"),
        run(answer(GONE, "3", "4"), webhook("3"), edit("4", jobTitle="x"), fails="'pub-4'"),
        run(answer_as_usual, unpublish("3"), asks="list 3 0 4", closes="3"),
        run(asks=""),
    ],
    "a detail that is known to be 404 stays known when a webhook names it again": [
        run(answer(GONE, "3"), webhook("3"), asks="list 3 list"),
        run(fails="404, although the job is listed"),
        run(later=HOUR, warns="404, although the job is listed"),
        run(webhook("3"), asks="list 3 list", warns="404, although the job is listed"),
    ],
    # The answer may be from before the change.
    "a notification that arrives while its job is fetched is not lost": [
        run(
            *(edit("3", roleOverview="x"), webhook("3"), at("detail pub-3", webhook("3"))),
            asks="list 3",
        ),
        run(asks="list 3", says="Fetching 1 of 10 details (1 pending)"),
        run(asks="list 3"),
        run(asks=""),
    ],
    "a publicId that changed during a run is the one that webhooks name next": [
        run(webhook("3"), at("detail pub-3", edit("3", publicId="pub-new")), asks="list 3 list"),
        run(edit("3", roleOverview="Everything."), webhook("new"), asks="list new", writes="3"),
    ],
    # What the notification log named is owed until it is done.
    "a new job that neither the list nor its total shows is awaited while a replica may lag": [
        run(*UNLISTED, asks="list"),
        run(later=120, asks="list"),
        run(heal, later=120, asks="list new", writes="new"),
        run(asks=""),
    ],
    "a new job that the total counts, and the list does not show, is awaited": [
        run(*UNLISTED, total(11), asks=TWICE, fails="the list shows 10 of 11 jobs"),
        run(later=12 * 60, asks=TWICE, fails="the list shows 10 of 11 jobs"),
        run(heal, asks="list new", writes="new"),
        run(asks=""),
    ],
    "a job that no list shows for ten minutes waits for other work": [
        run(*UNLISTED, asks="list"),
        *(run(later=120, asks="list") for _ in range(5)),
        run(later=120, asks=""),
        run(heal, edit("3", roleOverview="x"), webhook("3"), asks="list 3 new", writes="3 new"),
        run(asks=""),
    ],
    "a flood of unknown publicIds costs two readings of the list": [
        run(*(webhook(*(f"x-{number}" for number in range(5_000))), webhook("x-7")), asks="list"),
        run(later=601, asks="list"),
        run(later=1, asks=""),
    ],
    "another organisation's key ends no wait for an awaited job": [
        run(*UNLISTED, asks="list"),
        run(OTHERS, api_key="their-key", later=11 * 60, asks="list", fails="api_key has changed"),
        run(answer_as_usual, api_key="a-key", asks="list"),
    ],
    # Its detail is pending, and cannot be fetched before a list shows it.
    "a missing job that a webhook names is no reason to run for ever": [
        run(hide("3"), edit("3", roleOverview="x"), webhook("3"), fails="'pub-3'"),
        run(later=2 * HOUR, asks="list 3", warns="'pub-3'"),
        run(asks=""),
        run(heal, webhook("1"), asks="list 1 3", writes="1 3"),
    ],
}


@pytest.mark.parametrize("steps", FIRST_RUNS.values(), ids=FIRST_RUNS)
def test_first_runs(play: Play, steps: list[Step]) -> None:
    play(*steps)


@pytest.mark.parametrize("steps", UNDER_ALL.values(), ids=UNDER_ALL)
def test_runs_under_all(play: Play, steps: list[Step]) -> None:
    play(LOADED, *steps)


@pytest.mark.parametrize("steps", UNDER_CHANGED.values(), ids=UNDER_CHANGED)
def test_runs_under_changed(play: Play, steps: list[Step]) -> None:
    play(run(refresh="changed", asks=f"list {EVERY}"), *steps)


@pytest.mark.parametrize("steps", UNDER_NOTIFIED.values(), ids=UNDER_NOTIFIED)
def test_runs_under_notified(play: Play, steps: list[Step]) -> None:
    play(NOTIFIED, *steps)


def test_what_is_known_to_fail_and_a_closing_are_tried_three_times(
    api: FakeApi, play: Play
) -> None:
    play(
        LOADED,
        run(fail("3"), fails="'pub-3'"),
        run(unpublish("5"), later=HOUR, closes="5", warns="'pub-3'"),
    )

    assert [api.tries[f"pub-{key}"] for key in "345"] == [FEW_TRIES, MAX_TRIES, FEW_TRIES]


def test_missing_jobs_take_turns_so_that_each_closing_is_noticed(play: Play) -> None:
    """A run asks for no more than 20 that still answer."""
    pipeline = play(
        run(publish(*range(10, 60)), refresh="changed"),
        run(hide(*range(29)), fails="are not in the list"),
        run(later=HOUR, warns="are not in the list"),
    )

    pipeline.api.unpublish(*map(str, range(20, 29)))
    for _ in range(4):
        pipeline.run(later=HOUR)

    assert pipeline.closed == {*map(str, range(20, 29))}


def test_three_broken_details_stop_no_closing(play: Play) -> None:
    """They are the ones that were fetched longest ago, and so would be asked for first."""
    play(
        run(refresh="changed"),
        run(fail(0, 1, 2), later=8 * DAY, fails="'pub-0'"),
        run(unpublish("9"), later=HOUR, closes="9", warns="'pub-0'"),
    )


@pytest.mark.parametrize(
    ("failing", "tries"),
    [(range(10), [MAX_TRIES] * 5 + [FEW_TRIES] * 5), (range(1, 10), [MAX_TRIES] * 10)],
)
def test_while_no_detail_arrives_each_is_tried_three_times_after_five(
    api: FakeApi, play: Play, failing: range, tries: list[int]
) -> None:
    play(run(fail(*failing), fails="'pub-9'"))

    assert [*api.tries.values()] == tries


@pytest.mark.parametrize("page", [1, 3])
@pytest.mark.parametrize("error", [REFUSED, PageError("page 1: 503")], ids=str)
def test_nothing_is_written_before_the_list_was_read(
    api: FakeApi, play: Play, error: Exception, page: int
) -> None:
    """A target with `load_method: overwrite` empties a table at its SCHEMA. It is never known.

    The news that the run had read stays unread.
    """
    before = play(NOTIFIED, run(asks="")).sync_state
    api.answers[page] = error
    for event in (webhook("3"), webhook(), webhook()):
        pipeline = play(run(event, later=2 * HOUR, fails=str(error)))
        assert (api.requests, pipeline.output.of("SCHEMA")) == (LIST[:page], [])
        assert pipeline.sync_state == before
    play(run(answer_as_usual, asks="list 3"))


@pytest.mark.parametrize("published", [1, 5, 20, 21, 60])
def test_of_a_hundred_gone_jobs_those_that_are_published_stay(
    api: FakeApi, play: Play, published: int
) -> None:
    """The list and its total lack them all. For an hour, the run asks for none of them."""
    hidden, others = range(published), range(published, 100)
    lost = "100 of 130 published jobs disappeared from the list at once"
    listed = f"list {' '.join(map(str, range(100, 130)))}"
    pipeline = play(
        run(publish(*range(10, 130))),
        run(hide(*hidden), unpublish(*others), asks=listed, fails=lost, activates=""),
        run(later=HOUR / 2, asks="list", fails=lost, activates=""),
    )
    for _ in range(30):  # each run asks for others of them
        pipeline.run(later=DAY)
        assert (pipeline.error, pipeline.activated) == ("", [])
        assert len({*api.details} & {f"pub-{key}" for key in hidden}) <= 20
    assert pipeline.closed == {*map(str, others)}
    assert pipeline.hard.rows["jobs"].keys() >= {*map(str, hidden)}

    play(run(heal, later=DAY, activates="jobs job_details"))

    assert {it[1] for it in pipeline.periods().values()} == {pipeline.periods()["0"][1]}
    for target in pipeline.targets.values():
        assert target.published() == {*api.published}


def test_what_a_404_means_is_known_before_many_are_asked_for(api: FakeApi, play: Play) -> None:
    """All details answer 404. Of 25 unlisted jobs, the run asks for twenty."""
    play(
        run(publish(*range(10, 60))),
        run(hide(*range(25)), answer(GONE, *range(60)), refresh="changed", fails=NONE_LOADS),
    )

    assert len(api.details) == 23


def test_a_long_confirmation_says_how_long_it_takes_and_begins_again_if_it_is_stopped(
    api: FakeApi, play: Play
) -> None:
    gone = [str(number) for number in range(10)]
    play(
        run(publish(*range(10, 30))),
        run(
            *(unpublish(*gone), at("detail pub-4", stop)),
            rate_limit_requests=5,
            fails="143",
            says="10 known jobs. Asking whether they are unpublished: about 2 minutes.",
        ),
        run(refresh="changed", closes=EVERY),
    )

    assert sorted(api.details) == sorted(f"pub-{key}" for key in (*gone, "10"))


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


def test_a_full_log_costs_a_warning_and_the_list_and_what_it_dropped_is_not_fetched(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "KEPT", 1)
    play(
        NOTIFIED,
        run(
            *(edit("3", jobTitle="Edited"), webhook("4"), webhook("5")),
            asks="list 3 5",
            warns="The notification log was full and dropped 1 notifications",
            says=NOT_COVERED,
        ),
        run(asks="list 5"),
        run(asks=""),
    )
