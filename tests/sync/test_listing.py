"""The published jobs, read from a list that drifts and whose numbers may be wrong."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from fake_api import FakeApi
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_public_jobs.errors import PageError, TapError
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.sync.listing import PAUSE, ListReader
from tap_public_jobs.sync.notes import NOT_ASKED
from tap_public_jobs.sync.report import Report
from tap_public_jobs.sync.source import Page
from tap_public_jobs.sync.state import HOUR, KnownJob, SyncState


def api_with(*numbers: int, page_size: int = 2) -> FakeApi:
    """An API that lists these jobs, two on a page."""
    api = FakeApi(page_size)
    for number in numbers:
        api.publish(str(number))
    return api


NOW = 1_800_000_000


# An hour ago: what has been wrong since then is known.
KNOWN = NOW - HOUR


class Reading:
    """What a run makes of a list.

    Args:
        api: Answers.
        before: The jobs that earlier runs saw.
        short_since: When the list first fell short.

    Attributes:
        waits: Seconds between two sweeps.
        listing: The published jobs.
    """

    def __init__(self, api: Any, before: Iterable[int] = (), short_since: int = 0) -> None:
        self.waits: list[float] = []
        known = {str(number): KnownJob(f"pub-{number}", None, 1000, 1000) for number in before}
        reader = ListReader(
            api=api,
            state=SyncState(jobs=known, listed_at=1000, short_since=short_since),
            now=NOW,
            workers=1,
            report=Report(Throttle(60, 60)),
            sleep=self.waits.append,
        )
        self.listing = reader.resolve_unlisted(reader.read())
        self.doubts = [why for _, why in self.listing.doubts]


def ids(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]


# What one sweep sees.


# How many jobs there are, what is odd about the list, and how many pages are read.
ENOUGH: dict[str, tuple[int, str, Any, int]] = {
    "shorter than they say": (5, "shown_size", 100, 3),
    "a total that is too small": (3, "total", 2, 2),
    "too small, and full pages": (4, "total", 1, 3),
    "an error beyond": (4, "answers", {3: PageError("404")}, 3),
    "a total of 0 beyond": (4, "answers", {3: Page([], 2, 0)}, 3),
    "the last page again": (2, "answers", {2: Page(api_with(1, 2).listed(), 2, 2)}, 2),
}


@pytest.mark.parametrize(("jobs", "name", "value", "pages"), ENOUGH.values(), ids=ENOUGH)
def test_one_sweep_is_enough_when_it_shows_what_the_list_promises(
    jobs: int, name: str, value: Any, pages: int
) -> None:
    numbers = range(1, jobs + 1)
    api = api_with(*numbers)
    setattr(api, name, value)

    reading = Reading(api, numbers)

    assert [*reading.listing.jobs] == ids(*numbers)
    assert (reading.listing.missing, reading.doubts) == ({}, [])
    assert reading.listing.is_complete
    assert api.pages == [*range(1, pages + 1)]
    assert api.details == []


# How many jobs there are, what is odd about the list, what it counts, and how many pages are read.
SHORT: dict[str, tuple[int, str, Any, int, int]] = {
    "a total that is too large": (5, "shown_size", 2, 1_000, 4),
    "and shorter pages than they say": (5, "shown_size", 100, 1_000, 4),
    "the first page again and again": (2, "listed", lambda: api_with(1, 2).listed() * 3, 4, 2),
    "the first page for ever": (2, "listed", lambda: api_with(1, 2).listed() * 99, 1_000_000, 4),
}


@pytest.mark.parametrize(("jobs", "name", "value", "total", "pages"), SHORT.values(), ids=SHORT)
def test_a_list_that_shows_less_than_it_promises_is_read_twice(
    jobs: int, name: str, value: Any, total: int, pages: int
) -> None:
    """With a pause in between; a cached total lags for seconds. Nothing is closed, or asked for."""
    api = api_with(*range(1, jobs + 1))
    setattr(api, name, value)
    api.total = total

    reading = Reading(api, [1, 6])

    assert [*reading.listing.jobs] == ids(*range(1, jobs + 1))
    assert (reading.listing.gone, reading.listing.missing) == ([], {"6": NOT_ASKED})
    assert reading.doubts == [f"the list shows {jobs} of {total:,} jobs"]
    assert not reading.listing.is_complete
    assert api.pages == [*range(1, pages + 1)] * 2
    assert api.details == []
    assert reading.waits == [PAUSE]


@pytest.mark.parametrize("status", [400, 404, 416, 422])
@pytest.mark.parametrize(("jobs", "total"), [(3, 12), (3, None), (4, 5)])
def test_a_page_that_is_refused_ends_a_list_with_a_wrong_total(
    status: int, jobs: int, total: int | None
) -> None:
    """Behind a short page, or if less than a page is to come.

    The rest is the gap of any short list. After an hour, the list is complete.
    """
    known = [*range(1, jobs + 1)]
    api = api_with(*known)
    api.total = total
    api.answers[3] = PageError("page 3", status)

    first, second = Reading(api), Reading(api, known, short_since=KNOWN)

    for reading in (first, second):
        assert [*reading.listing.jobs] == ids(*known)
        assert len(reading.doubts) == 1
    assert (first.listing.is_complete, second.listing.is_complete) == (False, True)
    # Without a total, another reading would not help.
    assert api.pages == [1, 2, 3] * (3 if total else 2)


@pytest.mark.parametrize(
    ("jobs", "total", "status"),
    [(4, 12, 404), (4, 6, 404), (3, 12, 500), (3, 12, 403), (3, 12, None)],
)
def test_any_other_error_before_the_total_is_reached_stops_the_run(
    jobs: int, total: int, status: int | None
) -> None:
    """Behind a full page, there may be another; and other errors may pass."""
    api = api_with(*range(jobs))
    api.total = total
    api.answers[3] = PageError("page 3", status)

    with pytest.raises(PageError):
        Reading(api)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"publicId": "x"}, id="no id"),
        pytest.param({"id": "x"}, id="no publicId"),
        pytest.param({"id": 7, "publicId": "x"}, id="a number for an id"),
        pytest.param({"id": "x", "publicId": "\ud800"}, id="half a surrogate pair"),
        pytest.param({"id": "x\0", "publicId": "x"}, id="a NUL in the id"),
        pytest.param("x", id="a string for a job"),
    ],
)
def test_a_job_without_a_usable_key_is_left_out_and_its_place_named(item: object) -> None:
    """Reading again would not help. After an hour, the list is complete without it."""
    api = api_with(1, 2, 3, 4)
    api.answers[2] = lambda page: page._replace(items=[item, *page.items[1:]])

    first, second = Reading(api), Reading(api, [1, 2, 4], short_since=KNOWN)

    place = "a job without a usable id or publicId was left out: page 2, item 1 of the list"
    for reading in (first, second):
        assert [*reading.listing.jobs] == ids(1, 2, 4)
        assert (reading.listing.missing, reading.doubts) == ({}, [place])
    assert (first.listing.is_complete, second.listing.is_complete) == (False, True)
    assert api.pages == [1, 2, 3] * 2
    api.total = 9
    assert Reading(api, short_since=KNOWN).doubts == [f"{place}; the list shows 3 of 9 jobs"]


# Lists that drift while they are read.


@pytest.mark.parametrize("page_size", [1, 2])
def test_jobs_published_at_the_front_are_seen_when_the_list_is_read_again(page_size: int) -> None:
    """They push others onto the next page, where those are seen twice, and are missed."""
    api = api_with(1, 2, 3, 4, page_size=page_size)
    new = iter(range(10, 12))

    def publish(request: str) -> None:
        if request != "page 1" and (job := next(new, None)):
            api.publish(str(job), first=True)

    api.on_request = publish

    listing = Reading(api, [1, 2, 3, 4]).listing

    assert {*listing.jobs} == {*ids(1, 2, 3, 4, 10, 11)}
    assert listing.is_complete


def close_another(api: FakeApi) -> None:
    """The jobs after it move to the page before."""
    api.published.pop("1", None)


def move_to_the_front(api: FakeApi) -> None:
    """The last job of the first page comes again on the second one."""
    api.published = {"3": api.published.pop("3"), **api.published}


@pytest.mark.parametrize(
    ("drift", "jobs", "shown"),
    [
        pytest.param(close_another, (1, 2, 3, 4, 5), (1, 2, 4, 5, 3), id="totals differ"),
        pytest.param(close_another, (1, 2, 3), (1, 2, 3), id="the last page is empty"),
        pytest.param(move_to_the_front, (1, 2, 3, 4), (1, 2, 4, 3), id="one comes twice"),
    ],
)
def test_a_job_with_a_new_public_id_that_the_pages_pass_by_is_not_closed(
    drift: Callable[[FakeApi], None], jobs: tuple[int, ...], shown: tuple[int, ...]
) -> None:
    """Its old publicId is 404, so the list is read once more if it changed while it was read."""
    api = api_with(*jobs)
    api.publish("3", "pub-renamed")

    def change(_: str) -> None:
        if api.requests == ["page 1", "page 2"]:
            drift(api)

    api.on_request = change

    reading = Reading(api, jobs)

    assert "detail pub-3" in api.requests
    assert {*reading.listing.jobs} == {*ids(*shown)}
    assert "3" not in reading.listing.gone
    assert api.pages.count(1) == 2


# Any change between any two requests.

numbers = st.lists(st.integers(0, 9), unique=True)
a_change = st.tuples(st.sampled_from(["unpublish", "hide", "front", "end"]), st.integers(0, 19))
a_swap = st.lists(a_change, max_size=3)


@given(
    published=numbers, before=numbers, changes=st.lists(a_swap, max_size=40), size=st.integers(1, 4)
)
@settings(max_examples=300, deadline=None)
def test_no_published_job_is_closed_whatever_changes_between_two_requests(
    published: list[int], before: list[int], changes: list[list[tuple[str, int]]], size: int
) -> None:
    """A listing may end incomplete, or with an error; then it closes nothing."""
    api = api_with(*published, page_size=size)
    pending = iter(changes)
    ever_published = {*api.published}
    ever_unpublished = {*ids(*range(20))} - ever_published

    def change(_: str) -> None:
        """Make the next changes. Job n + 10 has the publicId of job n."""
        for kind, number in next(pending, []):
            job_id, public_id = str(number), f"pub-{number % 10}"
            if kind == "unpublish":
                api.published.pop(job_id, None)
            elif kind == "hide":
                api.hidden ^= {job_id}
            elif public_id not in {it["publicId"] for it in api.published.values()}:
                api.publish(job_id, public_id, first=kind == "front")
            ever_published.update(api.published)
            ever_unpublished.update({*ids(*range(20))} - api.published.keys())

    api.on_request = change
    try:
        listing = Reading(api, before).listing
    except TapError:
        return

    for job_id in listing.gone:
        assert f"pub-{job_id}" in api.details
        assert job_id in ever_unpublished
    assert {*listing.jobs} <= ever_published
    if listing.is_complete:
        unlisted = {*listing.gone} | {*listing.missing}
        assert {*ids(*before)} == unlisted | ({*ids(*before)} & {*listing.jobs})
        assert not unlisted & {*listing.jobs}
    else:
        assert listing.gone == []
