"""The published jobs, read from a list that drifts and whose numbers may be wrong."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tap_public_jobs.api.listing import MAX_SWEEPS, SAMPLE, Listing, ListReader
from tap_public_jobs.api.models import JobRef, Page, hash_of
from tap_public_jobs.errors import (
    AccessError,
    NotFoundError,
    PageError,
    PublicJobsError,
    RequestError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class World:
    """An API whose jobs change when the test says so.

    Args:
        numbers: The jobs that are published, in the order of the list.
        size: Jobs that a page holds.
        said_size: The size that a page claims to have.
        total: The total that a page claims.
        beyond: Answers the pages beyond the last; by default they are empty.

    Attributes:
        published: PublicIds of the published jobs, by id, in the order of the list.
        asked: The requests so far: numbers of pages, and publicIds.
        changes: What happens before the n-th request (from 1) is answered.
        broken: What the details of these publicIds raise.
    """

    def __init__(
        self,
        numbers: Iterable[int],
        *,
        size: int = 2,
        said_size: int | None = None,
        total: Literal["exact"] | int | None = "exact",
        beyond: Callable[[], Page] | None = None,
    ) -> None:
        self.published = known(*numbers)
        self.asked: list[int | str] = []
        self.changes: dict[int, Callable[[], object]] = {}
        self.broken: dict[str, RequestError | PublicJobsError] = {}
        self._size = size
        self._said_size = said_size or size
        self._total = total
        self._beyond = beyond

    def page(self, number: int) -> Page:
        self._note(number)
        jobs = [summary(*job) for job in self.listed()]
        items = jobs[(number - 1) * self._size : number * self._size]
        if not items and self._beyond:
            return self._beyond()
        return Page(items, self._said_size, len(jobs) if self._total == "exact" else self._total)

    def detail(self, job: JobRef) -> dict[str, Any]:
        self._note(job.public_id)
        if job.public_id in self.broken:
            raise self.broken[job.public_id]
        if self.published.get(job.id) != job.public_id:
            msg = "the response is 404"
            raise NotFoundError(msg)
        return summary(job.id, job.public_id)

    def listed(self) -> list[tuple[str, str]]:
        """The ids and publicIds in the list, in its order."""
        return list(self.published.items())

    def publish(self, number: int) -> None:
        self.published |= known(number)

    def unpublish(self, number: int) -> None:
        del self.published[f"id-{number}"]

    @property
    def pages(self) -> list[int]:
        return [it for it in self.asked if isinstance(it, int)]

    @property
    def details(self) -> list[str]:
        return [it for it in self.asked if isinstance(it, str)]

    def _note(self, request: int | str) -> None:
        self.asked.append(request)
        if change := self.changes.get(len(self.asked)):
            change()


def known(*numbers: int) -> dict[str, str]:
    return {f"id-{number}": f"job-{number}" for number in numbers}


def summary(job_id: str, public_id: str) -> dict[str, Any]:
    return {"id": job_id, "publicId": public_id, "jobTitle": f"Job {job_id}"}


def items(*numbers: int) -> list[dict[str, Any]]:
    return [summary(*job) for job in known(*numbers).items()]


def ids(*numbers: int) -> list[str]:
    return list(known(*numbers))


def public_ids(*numbers: int) -> list[str]:
    return list(known(*numbers).values())


def assert_complete(listing: Listing, jobs: list[str], gone: list[str]) -> None:
    assert (listing.problems, list(listing.jobs), listing.gone) == ([], jobs, gone)
    assert listing.is_complete


def assert_incomplete(listing: Listing, *problems: str) -> None:
    assert listing.problems == list(problems)
    assert not listing.is_complete
    assert listing.gone == []


def refuse() -> Page:
    msg = "the response is 404"
    raise PageError(msg)


# What one sweep sees.


@pytest.mark.parametrize(
    ("world", "pages"),
    [
        pytest.param(World([1, 2, 3]), [1, 2], id="a short last page"),
        pytest.param(World([1, 2, 3, 4]), [1, 2, 3], id="an exact multiple of the page size"),
        pytest.param(World([1]), [1], id="one page"),
        pytest.param(World([]), [1], id="no jobs"),
        pytest.param(
            World([1, 2, 3, 4, 5], said_size=100), [1, 2, 3], id="shorter pages than they say"
        ),
        pytest.param(World([1, 2, 3, 4], beyond=lambda: Page([], 2, 0)), [1, 2, 3], id="0 beyond"),
        pytest.param(World([1, 2, 3, 4], beyond=refuse), [1, 2, 3], id="an error beyond"),
        pytest.param(
            World([1, 2, 3, 4], beyond=lambda: Page(items(3, 4), 2, 4)),
            [1, 2, 3],
            id="the last page again beyond it",
        ),
        pytest.param(World([1, 2, 3], total=0), [1, 2], id="a total of zero"),
        pytest.param(World([1, 2, 3], total=2), [1, 2], id="a total that is too small"),
        pytest.param(World([1, 2, 3, 4], total=1), [1, 2, 3], id="too small, and full pages"),
    ],
)
def test_one_sweep_is_enough_when_it_shows_what_the_list_promises(
    world: World, pages: list[int]
) -> None:
    listing = ListReader(world, known=world.published).read()

    assert_complete(listing, jobs=list(world.published), gone=[])
    assert world.asked == pages


def test_jobs_and_summaries_are_what_the_api_sent_in_the_order_of_the_list() -> None:
    listing = ListReader(World([3, 1, 2])).read()

    assert listing.summaries == items(3, 1, 2)
    assert listing.jobs == {
        item["id"]: JobRef(item["id"], item["publicId"], hash_of(item)) for item in items(3, 1, 2)
    }


@pytest.mark.parametrize("said_size", [2, 100])
def test_a_total_that_is_too_large_is_believed_and_the_list_is_read_eight_times(
    said_size: int,
) -> None:
    """Nothing is closed, although two equal sweeps look like proof."""
    world = World([1, 2, 3, 4, 5], said_size=said_size, total=1000)

    listing = ListReader(world, known=known(1, 6)).read()

    assert list(listing.jobs) == ids(1, 2, 3, 4, 5)
    assert_incomplete(listing, "the list shows 5 of 1,000 jobs")
    assert world.asked == [1, 2, 3, 4] * MAX_SWEEPS


@pytest.mark.parametrize("said_size", [2, 100])
def test_a_list_without_a_total_is_read_to_an_empty_page_and_is_never_complete(
    said_size: int,
) -> None:
    world = World([1, 2, 3, 4, 5], said_size=said_size, total=None)

    listing = ListReader(world, known=known(1, 6)).read()

    assert list(listing.jobs) == ids(1, 2, 3, 4, 5)
    assert_incomplete(listing, "the list does not say how many jobs there are")
    assert world.asked == [1, 2, 3, 4]


def test_pages_that_come_empty_do_not_make_the_list_shorter() -> None:
    """300 jobs were known, and pages 2 and 3 of 3 are empty: no job is closed."""

    class Broken(World):
        def page(self, number: int) -> Page:
            page = super().page(number)
            return page if number == 1 else page._replace(items=[])

    world = Broken(range(300), size=100)

    listing = ListReader(world, workers=4, known=known(*range(300))).read()

    assert list(listing.jobs) == ids(*range(100))
    assert_incomplete(listing, "the list shows 100 of 300 jobs")
    # After a full list there is one more page, which is asked for together with the others.
    assert sorted(world.pages) == sorted([1, 2, 3, 4] * MAX_SWEEPS)
    assert world.details == []


def test_no_jobs_under_a_total_above_zero_are_not_an_empty_organisation() -> None:
    world = World([], total=7)

    listing = ListReader(world, known=known(1)).read()

    assert_incomplete(listing, "the list shows 0 of 7 jobs")
    assert world.asked == [1] * MAX_SWEEPS


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"publicId": "x"}, id="no id"),
        pytest.param({"id": "x"}, id="no publicId"),
        pytest.param({"id": None, "publicId": "x"}, id="null id"),
        pytest.param({"id": "", "publicId": "x"}, id="empty id"),
        pytest.param({"id": "x", "publicId": ""}, id="empty publicId"),
        pytest.param({"id": 7, "publicId": "x"}, id="a number for an id"),
        pytest.param({"id": "x", "publicId": ["x"]}, id="an array for a publicId"),
        pytest.param({"id": "x", "publicId": "\ud800"}, id="half a surrogate pair"),
        pytest.param({"id": "x\0", "publicId": "x"}, id="a NUL in the id"),
        pytest.param("x", id="a string for a job"),
        pytest.param(None, id="null for a job"),
        pytest.param([], id="an array for a job"),
    ],
)
def test_a_job_without_a_usable_key_is_left_out_and_its_place_named(item: object) -> None:
    class Odd(World):
        def page(self, number: int) -> Page:
            page = super().page(number)
            return page._replace(items=[item, *page.items[1:]]) if number == 2 else page

    world = Odd([1, 2, 3, 4])

    listing = ListReader(world, known=known(1, 3)).read()

    assert listing.summaries == items(1, 2, 4)
    place = "a job without a usable id or publicId was left out: page 2, item 1 of the list"
    assert_incomplete(listing, place)
    assert world.asked == [1, 2, 3]  # reading again would not help


def test_pages_without_any_usable_job_do_not_end_the_list() -> None:
    pages = {1: Page([None], 1, 3), 2: Page([None], 1, 3), 3: Page(items(1), 1, 3)}

    class Odd(World):
        def page(self, number: int) -> Page:
            return pages.get(number, Page([], 1, 3))

    listing = ListReader(Odd([])).read()

    assert listing.summaries == items(1)
    assert [problem.rpartition(": ")[2] for problem in listing.problems] == [
        "page 1, item 1 of the list",
        "page 2, item 1 of the list",
    ]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("total", [3, 1_000_000])
def test_a_server_that_ignores_the_page_number_is_found_out_after_a_few_requests(
    workers: int, total: int
) -> None:
    class Ignoring(World):
        def page(self, number: int) -> Page:
            super().page(number)
            return Page(items(1, 2), 2, total)

    world = Ignoring([1, 2])

    with pytest.raises(PublicJobsError, match="Page 2 of the list repeats jobs already listed"):
        ListReader(world, workers=workers).read()
    assert max(world.pages) <= 1 + workers


@pytest.mark.parametrize("workers", [1, 4])
def test_pages_that_go_round_in_a_circle_are_an_error_and_no_loop(workers: int) -> None:
    circle = [items(1, 2), items(3, 4)]

    class Circle(World):
        def page(self, number: int) -> Page:
            super().page(number)
            return Page(circle[number % 2], 2, 1_000_000)

    world = Circle([1])

    with pytest.raises(PublicJobsError, match="the list never ends"):
        ListReader(world, workers=workers).read()
    assert max(world.pages) < 12 + workers


def test_a_page_that_cannot_be_read_before_the_end_is_an_error() -> None:
    world = World([1, 2], total=4, beyond=refuse)

    with pytest.raises(PageError):
        ListReader(world, known=known(1, 2, 3, 4)).read()


def test_a_first_page_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(PageError):
        ListReader(World([], beyond=refuse)).read()


def test_pages_are_fetched_at_once_as_far_as_the_first_one_promises_them() -> None:
    """Pages 2 to 4 wait for each other, and so would never end one after the other."""
    together = threading.Barrier(3, timeout=10)

    class Slow(World):
        def page(self, number: int) -> Page:
            if number > 1:
                together.wait()
            return super().page(number)

    world = Slow([1, 2, 3, 4, 5, 6, 7])

    listing = ListReader(world, workers=3).read()

    assert_complete(listing, jobs=ids(1, 2, 3, 4, 5, 6, 7), gone=[])
    assert sorted(world.pages) == [1, 2, 3, 4]


def test_a_page_that_is_short_by_mistake_does_not_hide_those_fetched_with_it() -> None:
    class Gap(World):
        def page(self, number: int) -> Page:
            page = super().page(number)
            return page._replace(items=[]) if number == 2 and self.pages.count(2) == 1 else page

    listing = ListReader(Gap([1, 2, 3, 4, 5]), workers=4).read()

    assert_complete(listing, jobs=ids(1, 2, 5, 3, 4), gone=[])


def test_a_total_that_is_too_large_costs_no_more_pages_than_there_are_workers() -> None:
    world = World([1, 2, 3, 4, 5], total=1_000_000)

    ListReader(world, workers=4).read()

    assert max(world.pages) == 5
    assert len(world.pages) == 5 * MAX_SWEEPS


# Lists that drift while they are read.


def test_a_job_published_at_the_front_is_seen_in_the_next_sweep() -> None:
    """It pushes one job onto the next page, where that is seen twice, and is itself missed."""
    world = World([1, 2, 3, 4])
    world.changes[2] = lambda: setattr(world, "published", known(0, 1, 2, 3, 4))

    listing = ListReader(world, known=known(1, 2, 3, 4)).read()

    assert_complete(listing, jobs=ids(1, 2, 3, 4, 0), gone=[])


def test_a_swap_of_two_jobs_between_two_pages_closes_no_third() -> None:
    """All six jobs that the total promises are seen, and none twice; yet job 3 was missed."""
    world = World([1, 2, 3, 4, 5, 6])

    def swap() -> None:
        world.unpublish(1)
        world.publish(7)

    world.changes[2] = swap

    listing = ListReader(world, known=known(1, 2, 3, 4, 5, 6)).read()

    assert_complete(listing, jobs=ids(1, 2, 4, 5, 6, 7, 3), gone=[])
    assert world.asked == [1, 2, 3, 4, "job-3", 1, 2, 3, 4]


def test_a_missed_job_that_is_unpublished_before_the_next_sweep_is_gone() -> None:
    world = World([1, 2, 3, 4, 5, 6])

    def swap() -> None:
        world.unpublish(1)
        world.publish(7)

    world.changes[2] = swap
    world.changes[6] = lambda: world.unpublish(3)

    listing = ListReader(world, known=known(3)).read()

    assert_complete(listing, jobs=ids(1, 2, 4, 5, 6, 7), gone=ids(3))
    assert world.details == ["job-3", "job-3"]


def test_a_list_in_another_order_at_each_request_is_read_until_all_is_seen() -> None:
    class Rotating(World):
        def listed(self) -> list[tuple[str, str]]:
            jobs, start = super().listed(), 3 * len(self.asked) % 7
            return jobs[start:] + jobs[:start]

    world = Rotating(range(7))

    listing = ListReader(world, known=known(*range(8))).read()

    assert set(listing.jobs) == set(ids(*range(7)))
    assert listing.gone == ids(7)
    assert len(world.pages) > 4  # one sweep was not enough


def test_a_list_in_an_order_that_always_hides_a_job_closes_nothing() -> None:
    """Job 6 is on the first page whenever another one is asked for."""

    class Hiding(World):
        def listed(self) -> list[tuple[str, str]]:
            jobs = super().listed()
            return jobs if self.pages[-1] == 1 else jobs[-1:] + jobs[:-1]

    world = Hiding([1, 2, 3, 4, 5, 6])

    listing = ListReader(world, known=known(6)).read()

    assert list(listing.jobs) == ids(1, 2, 3, 4, 5)
    assert_incomplete(listing, "the list shows 5 of 6 jobs")
    assert len(world.asked) == 4 * MAX_SWEEPS


def test_a_public_id_that_changes_between_two_sweeps_counts_as_last_listed() -> None:
    world = World([1, 2, 3], total=4)
    world.changes[4] = lambda: world.published.update({"id-1": "renamed"})

    listing = ListReader(world).read()

    assert listing.jobs["id-1"].public_id == "renamed"
    assert listing.summaries[0] == summary("id-1", "renamed")


# Known jobs that the list does not show.


def test_a_job_that_is_not_listed_and_answers_404_is_gone() -> None:
    world = World([1, 3])

    listing = ListReader(world, known=known(1, 2, 3)).read()

    assert_complete(listing, jobs=ids(1, 3), gone=ids(2))
    assert world.asked == [1, 2, "job-2"]


def test_an_organisation_that_unpublishes_all_its_jobs_has_none() -> None:
    world = World([])

    listing = ListReader(world, known=known(1, 2)).read()

    assert_complete(listing, jobs=[], gone=ids(1, 2))


def test_a_list_that_is_suddenly_empty_is_not_believed_while_details_answer() -> None:
    class Empty(World):
        def listed(self) -> list[tuple[str, str]]:
            return []

    world = Empty([1, 2])

    listing = ListReader(world, known=known(1, 2)).read()

    assert_incomplete(
        listing,
        "the list does not show the job 'job-1', but its detail exists",
        "the list does not show the job 'job-2', but its detail exists",
    )
    assert world.pages == [1] * MAX_SWEEPS


def test_a_large_list_that_is_suddenly_empty_costs_samples_of_its_details() -> None:
    class Empty(World):
        def listed(self) -> list[tuple[str, str]]:
            return []

    world = Empty(range(3000))

    listing = ListReader(world, workers=4, known=world.published).read()

    assert len(listing.problems) == SAMPLE
    assert_incomplete(listing, *listing.problems)
    assert world.asked[:2] == [1, 1]  # before any detail is asked for
    assert len(world.details) == SAMPLE * (MAX_SWEEPS - 1)


def test_a_job_that_answered_404_is_not_asked_for_again() -> None:
    """Job 2 is gone, and job 3 is missing from the first two sweeps."""

    class Hiding(World):
        def listed(self) -> list[tuple[str, str]]:
            jobs = super().listed()
            return [job for job in jobs if job[0] != "id-3" or self.pages.count(1) > 2]

    world = Hiding([1, 3])

    listing = ListReader(world, known=known(1, 2, 3)).read()

    assert_complete(listing, jobs=ids(1, 3), gone=ids(2))
    assert world.details == ["job-2", "job-3", "job-3"]


def test_as_many_gone_jobs_as_pages_and_twenty_are_all_asked_for() -> None:
    world = World([1, 2, 3], size=2)
    gone = range(100, 100 + 2 + SAMPLE)

    listing = ListReader(world, known=known(1, *gone)).read()

    assert_complete(listing, jobs=ids(1, 2, 3), gone=ids(*gone))
    assert world.pages == [1, 2]
    assert sorted(world.details) == public_ids(*gone)


def test_more_gone_jobs_than_that_are_sampled_after_the_list_was_read_again() -> None:
    world = World([1, 2, 3], size=2)
    gone = range(100, 100 + 3 + SAMPLE)

    listing = ListReader(world, known=known(1, *gone)).read()

    assert_complete(listing, jobs=ids(1, 2, 3), gone=ids(*gone))
    assert world.asked[:4] == [1, 2, 1, 2]
    assert len(set(world.details)) == len(world.details) == SAMPLE
    assert set(world.details) < set(public_ids(*gone))


@pytest.mark.parametrize("block", range(10))
def test_the_sample_meets_any_tenth_of_the_gone_jobs(block: int) -> None:
    """A list that lost some pages has lost jobs that stand together."""
    still_published = set(ids(*range(4 * block, 4 * block + 4)))

    class Hiding(World):
        def listed(self) -> list[tuple[str, str]]:
            return []

    world = Hiding([])
    world.published = {key: known(*range(40))[key] for key in sorted(still_published)}

    listing = ListReader(world, known=known(*range(40))).read()

    assert "but its detail exists" in listing.problems[0]
    assert listing.gone == []


def test_many_gone_jobs_that_the_next_sweep_shows_cost_no_detail() -> None:
    class Late(World):
        def listed(self) -> list[tuple[str, str]]:
            return super().listed()[:: 1 if self.pages.count(1) > 1 else 2]

    world = Late(range(100), size=100)

    listing = ListReader(world, known=world.published).read()

    assert set(listing.jobs) == set(world.published)
    assert listing.is_complete
    assert world.details == []


def test_a_job_whose_public_id_is_listed_for_another_is_gone_and_not_asked_for() -> None:
    world = World([1])
    world.published["id-9"] = "job-2"

    listing = ListReader(world, known=known(1, 2)).read()

    assert_complete(listing, jobs=ids(1, 9), gone=ids(2))
    assert world.details == []


def test_a_job_that_changed_its_public_id_is_not_gone() -> None:
    world = World([1])
    world.published["id-2"] = "renamed"

    listing = ListReader(world, known=known(1, 2)).read()

    assert_complete(listing, jobs=ids(1, 2), gone=[])


@pytest.mark.parametrize(
    "error",
    [
        RequestError("/jobs/job-2: the response is 400 Bad Request", 400),
        RequestError("/jobs/job-2: the response is 500 Internal Server Error"),
    ],
)
def test_a_job_that_is_not_listed_and_whose_detail_fails_is_not_known_to_be_gone(
    error: RequestError,
) -> None:
    world = World([1])
    world.broken["job-2"] = error

    listing = ListReader(world, known=known(1, 2, 3)).read()

    assert list(listing.jobs) == ids(1)
    assert_incomplete(
        listing, f"a job is no longer listed, but its detail did not return 404: {error}"
    )
    assert world.pages == [1]


def test_a_key_that_is_revoked_while_gone_jobs_are_asked_for_ends_the_run() -> None:
    world = World([1])
    world.broken["job-2"] = AccessError("revoked", 401)

    with pytest.raises(AccessError):
        ListReader(world, known=known(1, 2)).read()


# Another key.


@pytest.mark.parametrize(
    "world",
    [
        World([11, 12]),
        World([]),
        World([11, 12], total=3),
        World([11, 12], total=None),
    ],
    ids=["other jobs", "no jobs", "a list that stays short", "a list without a total"],
)
def test_a_new_key_that_lists_no_known_job_ends_the_run_with_the_remedy(world: World) -> None:
    reader = ListReader(world, known=known(1, 2), is_new_key=True)

    with pytest.raises(PublicJobsError, match="none of the 2 jobs") as caught:
        reader.read()

    assert "Set api_key back" in str(caught.value)
    assert "--full-refresh" in str(caught.value)
    assert world.details == []  # and above all it closed nothing


def test_a_rotated_key_goes_on() -> None:
    listing = ListReader(World([2, 3]), known=known(1, 2), is_new_key=True).read()

    assert_complete(listing, jobs=ids(2, 3), gone=ids(1))


def test_a_new_key_without_known_jobs_goes_on() -> None:
    listing = ListReader(World([1]), known={}, is_new_key=True).read()

    assert_complete(listing, jobs=ids(1), gone=[])


def test_an_organisation_that_replaces_all_its_jobs_goes_on() -> None:
    listing = ListReader(World([3, 4]), known=known(1, 2)).read()

    assert_complete(listing, jobs=ids(3, 4), gone=ids(1, 2))


# Any change between any two requests.


class Restless(World):
    """A world that makes the next of some changes before each request.

    Attributes:
        ever_published: Ids of the jobs that were published at some moment.
        ever_unpublished: Ids of the jobs that were not, at some moment.
        not_found: Ids of the jobs whose details answered 404.
    """

    def __init__(
        self, numbers: Iterable[int], changes: list[list[tuple[str, int]]], size: int
    ) -> None:
        super().__init__(numbers, size=size)
        self.ever_published = set(self.published)
        self.ever_unpublished = set(ids(*range(20))) - self.ever_published
        self.not_found: set[str] = set()
        self._changes = iter(changes)

    def _note(self, request: int | str) -> None:
        super()._note(request)
        for kind, number in next(self._changes, []):
            self._change(kind, number)
            self.ever_published |= set(self.published)
            self.ever_unpublished |= set(ids(*range(20))) - set(self.published)

    def _change(self, kind: str, number: int) -> None:
        """Change one job. Job n + 10 has the publicId of job n."""
        job_id, public_id = f"id-{number}", f"job-{number % 10}"
        if kind == "unpublish":
            self.published.pop(job_id, None)
        elif public_id not in self.published.values():
            job = {job_id: public_id}
            self.published = job | self.published if kind == "front" else self.published | job

    def detail(self, job: JobRef) -> dict[str, Any]:
        try:
            return super().detail(job)
        except NotFoundError:
            self.not_found.add(job.id)
            raise


numbers = st.lists(st.integers(0, 9), unique=True)
a_change = st.tuples(st.sampled_from(["unpublish", "front", "end"]), st.integers(0, 19))
a_swap = st.lists(a_change, max_size=3)


@given(
    published=numbers,
    before=numbers,
    changes=st.lists(a_swap, max_size=40),
    size=st.integers(1, 4),
)
@settings(max_examples=300, deadline=None)
def test_no_published_job_is_closed_whatever_changes_between_two_requests(
    published: list[int], before: list[int], changes: list[list[tuple[str, int]]], size: int
) -> None:
    """A listing may end incomplete, or with an error; then it closes nothing."""
    world = Restless(published, changes, size)
    try:
        listing = ListReader(world, known=known(*before)).read()
    except PublicJobsError:
        return

    taken = {job.public_id for job in listing.jobs.values()}
    for job_id in listing.gone:
        assert job_id in world.not_found or known(*before)[job_id] in taken
        assert job_id in world.ever_unpublished
    assert set(listing.jobs) <= world.ever_published
    if listing.is_complete:
        assert set(ids(*before)) == set(listing.gone) | (set(ids(*before)) & set(listing.jobs))
    else:
        assert listing.gone == []


@given(published=numbers, before=numbers, size=st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_a_list_that_does_not_change_is_read_in_one_sweep_and_exactly(
    published: list[int], before: list[int], size: int
) -> None:
    world = World(published, size=size)

    listing = ListReader(world, known=known(*before)).read()

    gone = [number for number in before if number not in published]
    assert_complete(listing, jobs=ids(*published), gone=ids(*gone))
    assert world.pages == list(range(1, len(published) // size + 2))
    assert world.details == public_ids(*gone)
