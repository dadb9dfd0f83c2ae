"""One listing of a paginated list that trusts no number of the server's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tap_public_jobs.errors import ListingError, PageError
from tap_public_jobs.ledger import fingerprint
from tap_public_jobs.api.listing import Job, Listing, Page

if TYPE_CHECKING:
    from collections.abc import Callable


def job(number: int) -> dict[str, Any]:
    return {"id": f"id-{number}", "publicId": f"job-{number}", "jobTitle": f"Job {number}"}


class Server:
    """Answers pages of jobs, and remembers which were asked for.

    Args:
        jobs: Numbers of the jobs, or for each sweep its own.
        size: Jobs a page holds.
        said_size: The size that the server answers.
        total: The total that it answers.
        beyond: The page it answers beyond the last, by default an empty one.
    """

    def __init__(
        self,
        *sweeps: list[int],
        size: int = 2,
        said_size: int | None = None,
        total: int | str | None = "exact",
        beyond: Callable[[], Page] | None = None,
    ) -> None:
        self.asked: list[int] = []
        self._sweeps = sweeps
        self._size = size
        self._said_size = said_size or size
        self._total = total
        self._beyond = beyond

    def __call__(self, number: int) -> Page:
        self.asked.append(number)
        sweep = min(self.asked.count(1), len(self._sweeps)) - 1
        jobs = [job(n) for n in self._sweeps[sweep]]
        items = jobs[(number - 1) * self._size : number * self._size]
        if not items and self._beyond:
            return self._beyond()
        total = len(jobs) if self._total == "exact" else self._total
        assert not isinstance(total, str)
        return Page(items, self._said_size, total)


def _refuse() -> Page:
    msg = "the answer is 404"
    raise PageError(msg)


def listed(server: Server) -> tuple[Listing, list[str]]:
    listing = Listing(server)
    return listing, [summary["id"] for summary in listing.summaries()]


def ids(*numbers: int) -> list[str]:
    return [f"id-{number}" for number in numbers]


@pytest.mark.parametrize(
    ("server", "asked"),
    [
        pytest.param(Server([1, 2, 3]), [1, 2], id="a short last page"),
        pytest.param(Server([1, 2, 3, 4]), [1, 2, 3], id="an exact multiple of the page size"),
        pytest.param(Server([1]), [1], id="one page"),
        pytest.param(Server([]), [1], id="no jobs"),
        pytest.param(
            Server([1, 2, 3, 4, 5], size=2, said_size=100),
            [1, 2, 3],
            id="pages shorter than the server says",
        ),
        pytest.param(Server([1, 2, 3, 4], beyond=lambda: Page([], 2, 0)), [1, 2, 3], id="0 beyond"),
        pytest.param(Server([1, 2, 3, 4], beyond=_refuse), [1, 2, 3], id="an error beyond"),
        pytest.param(
            Server([1, 2, 3, 4], beyond=lambda: Page([job(3), job(4)], 2, 4)),
            [1, 2, 3],
            id="the last page again beyond it",
        ),
    ],
)
def test_one_sweep_is_enough_when_the_numbers_fit(server: Server, asked: list[int]) -> None:
    listing, seen = listed(server)

    assert seen == ids(*server._sweeps[0])
    assert server.asked == asked
    assert listing.consistent


@pytest.mark.parametrize(
    "total",
    [
        pytest.param(0, id="zero"),
        pytest.param(3, id="too small"),
        pytest.param(1000, id="too large"),
        pytest.param(None, id="absent"),
    ],
)
@pytest.mark.parametrize("said_size", [2, 100])
def test_a_total_that_never_fits_costs_a_second_sweep_and_no_job(
    total: int | None, said_size: int
) -> None:
    """Two sweeps that see the same jobs outweigh it; each ends at an empty page."""
    server = Server([1, 2, 3, 4, 5], said_size=said_size, total=total)

    listing, seen = listed(server)

    assert seen == ids(1, 2, 3, 4, 5)
    assert server.asked == [1, 2, 3, 4] * 2
    assert listing.consistent


def test_no_job_under_a_total_above_zero_is_not_an_empty_organisation() -> None:
    server = Server([], total=7)

    listing, seen = listed(server)

    assert seen == []
    assert server.asked == [1, 1, 1]
    assert not listing.consistent


def test_a_job_published_between_pages_is_seen_in_the_next_sweep() -> None:
    """It pushes one job onto the next page, where that is seen twice, and is itself missed."""

    class Drifting(Server):
        def __call__(self, number: int) -> Page:
            if len(self.asked) == 1:
                self._sweeps = ([0, 1, 2, 3, 4],)
            return super().__call__(number)

    server = Drifting([1, 2, 3, 4])

    listing, seen = listed(server)

    assert seen == ids(1, 2, 3, 4, 0)
    assert listing.consistent


def test_each_job_is_told_once_however_often_it_is_listed() -> None:
    listing, seen = listed(Server([1, 2, 2, 1, 3]))

    assert seen == ids(1, 2, 3)
    assert listing.jobs() == [Job(f"id-{n}", f"job-{n}", fingerprint(job(n))) for n in (1, 2, 3)]
    assert listing.consistent  # the second sweep saw the same


def test_a_list_that_never_settles_is_told_whole_and_not_taken_for_complete(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listing, seen = listed(Server([1, 2, 2], [2, 3, 3], [3, 4, 4]))

    assert seen == ids(1, 2, 3, 4)
    assert not listing.consistent
    assert "different each of the 3 times" in caplog.text


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
        pytest.param("x", id="a string for a job"),
        pytest.param(None, id="null for a job"),
        pytest.param([], id="an array for a job"),
    ],
)
def test_a_job_without_a_key_is_left_out_and_its_place_told(item: object) -> None:
    pages = {1: Page([job(1), job(2)], 2, 3), 2: Page([item], 2, 3)}
    listing = Listing(lambda number: pages[number])

    assert [summary["id"] for summary in listing.summaries()] == ids(1, 2)
    assert listing.unusable == ["page 2, item 1"]


def test_a_server_that_ignores_the_page_number_is_an_error_and_no_loop() -> None:
    server = Server([1, 2], total=10)
    listing = Listing(lambda _: server(1))

    with pytest.raises(ListingError, match="Page 2 of the list repeats"):
        list(listing.summaries())
    assert server.asked == [1, 1]


def test_pages_that_go_round_in_a_circle_are_an_error_and_no_loop() -> None:
    pages = [Page([job(1), job(2)], 2, 100), Page([job(3), job(4)], 2, 100)]
    listing = Listing(lambda number: pages[number % 2])

    with pytest.raises(ListingError, match="never ends"):
        list(listing.summaries())


def test_a_page_that_cannot_be_read_before_the_end_is_an_error() -> None:
    """Else the jobs beyond it would be taken for unpublished."""
    server = Server([1, 2], total=4, beyond=_refuse)

    with pytest.raises(PageError):
        listed(server)


def test_jobs_without_a_key_do_not_end_the_list() -> None:
    pages = {1: Page([None], 1, 3), 2: Page([None], 1, 3), 3: Page([job(1)], 1, 3)}
    listing = Listing(lambda number: pages.get(number, Page([], 1, 3)))

    assert [summary["id"] for summary in listing.summaries()] == ids(1)
    assert listing.unusable == ["page 1, item 1", "page 2, item 1"]


def test_a_public_id_that_changes_between_sweeps_is_asked_for_by_its_last() -> None:
    moved = job(1) | {"publicId": "moved"}
    pages = iter([Page([job(1)], 2, 2), Page([], 2, 2), Page([moved], 2, 1)])
    listing = Listing(lambda _: next(pages))

    assert [it.public_id for it in listing.jobs()] == ["moved"]


def test_jobs_goes_on_where_the_summaries_were_left() -> None:
    """The list is read once, whoever reads it first, and no further than anyone asks."""
    server = Server([1, 2, 3, 4, 5])
    listing = Listing(server)
    summaries = listing.summaries()

    assert next(summaries)["id"] == "id-1"
    del summaries
    assert [it.id for it in listing.jobs(1)] == ids(1)
    assert server.asked == [1]

    assert [it.id for it in listing.jobs()] == ids(1, 2, 3, 4, 5)
    assert server.asked == [1, 2, 3]
    assert [it.id for it in listing.jobs()] == ids(1, 2, 3, 4, 5)
    assert server.asked == [1, 2, 3]


def test_pages_are_asked_for_at_once_as_far_as_the_first_one_says_that_there_are_any() -> None:
    """Pages 2 to 4 wait for each other, and so would never end one after the other."""
    server = Server([1, 2, 3, 4, 5, 6, 7])
    together = threading.Barrier(3, timeout=10)

    def fetch_page(number: int) -> Page:
        if number > 1:
            together.wait()
        return server(number)

    listing = Listing(fetch_page, workers=3)

    assert [job["id"] for job in listing.summaries()] == ids(1, 2, 3, 4, 5, 6, 7)
    assert sorted(server.asked) == [1, 2, 3, 4]
    assert listing.consistent


def test_a_page_that_fails_among_others_ends_the_listing_after_those_before_it() -> None:
    server = Server([1, 2, 3, 4, 5, 6, 7])

    def fetch_page(number: int) -> Page:
        if number == 3:
            msg = "page 3 is broken"
            raise PageError(msg)
        return server(number)

    summaries = Listing(fetch_page, workers=4).summaries()

    assert [next(summaries)["id"] for _ in range(4)] == ids(1, 2, 3, 4)
    with pytest.raises(PageError, match="page 3 is broken"):
        next(summaries)


def test_a_total_that_is_too_large_costs_no_more_pages_than_there_are_workers() -> None:
    server = Server([1, 2, 3, 4, 5], total=1_000_000)

    listing = Listing(server, workers=4)

    assert [job["id"] for job in listing.summaries()] == ids(1, 2, 3, 4, 5)
    assert max(server.asked) <= 4 + 4
    assert listing.consistent
