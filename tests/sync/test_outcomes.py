"""What came of the details of a run, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sync.samples import job, listing

from tap_public_jobs.sync.outcomes import MANY_FAILURES, Outcomes

if TYPE_CHECKING:
    from tap_public_jobs.api.listing import Listing
    from tap_public_jobs.api.models import JobRef

RENAMED = job("x")._replace(public_id="renamed")


@pytest.mark.parametrize(
    ("reread", "unpublished", "failed", "renamed"),
    [
        pytest.param(listing(), [job("x")], {}, [], id="no longer listed"),
        pytest.param(
            listing(job("other"), complete=False),
            [],
            {job("x"): "it answered 404, and the list is not complete"},
            [],
            id="not in an incomplete list",
        ),
        pytest.param(
            listing(job("x", "b")),
            [],
            {job("x"): "it answered 404, although the job is listed"},
            [],
            id="still listed",
        ),
        pytest.param(
            listing(job("x"), complete=False),
            [],
            {job("x"): "it answered 404, although the job is listed"},
            [],
            id="in an incomplete list",
        ),
        pytest.param(listing(RENAMED), [], {}, [RENAMED], id="listed under another publicId"),
        pytest.param(
            listing(RENAMED, complete=False), [], {}, [RENAMED], id="renamed, incomplete list"
        ),
    ],
)
def test_what_a_404_means_is_decided_by_the_list(
    reread: Listing,
    unpublished: list[JobRef],
    failed: dict[JobRef, str],
    renamed: list[JobRef],
) -> None:
    outcomes = Outcomes()
    outcomes.note_not_found(job("x"), "it answered 404")

    assert outcomes.settle(reread) == renamed

    assert (outcomes.unpublished, outcomes.failed) == (unpublished, failed)
    assert outcomes.not_found == {}


def test_a_renamed_job_that_is_not_found_either_is_a_problem() -> None:
    outcomes = Outcomes()
    outcomes.note_not_found(job("x"), "it answered 404")
    for it in outcomes.settle(listing(RENAMED)):
        outcomes.note_not_found(it, "it answered 404")

    assert outcomes.settle(listing(RENAMED)) == []

    assert outcomes.problems == [
        "the detail of 'renamed' is missing: it answered 404, although the job is listed"
    ]


def test_an_unpublished_job_is_no_problem() -> None:
    outcomes = Outcomes()
    outcomes.note_not_found(job("x"), "it answered 404")
    outcomes.settle(listing())

    assert outcomes.problems == []


def test_each_failed_job_is_named_with_the_reason() -> None:
    outcomes = Outcomes()
    outcomes.note_failure(job("x"), "the response is 500")
    outcomes.note_failure(job("y"), "timeout")

    assert outcomes.problems == [
        "the detail of 'public-x' is missing: the response is 500",
        "the detail of 'public-y' is missing: timeout",
    ]


def test_many_failures_in_a_row_may_mean_that_the_api_is_down() -> None:
    """And again after as many more, should the list still be readable."""
    outcomes = Outcomes()

    alarms = [outcomes.note_failure(job(str(n)), "timeout") for n in range(2 * MANY_FAILURES)]

    assert alarms == [False, False, False, False, True] * 2


def test_a_written_record_ends_a_row_of_failures() -> None:
    outcomes = Outcomes()
    for number in range(MANY_FAILURES - 1):
        outcomes.note_failure(job(str(number)), "timeout")

    outcomes.note_written()

    assert not outcomes.note_failure(job("x"), "timeout")


def test_every_outcome_counts_as_done() -> None:
    outcomes = Outcomes()
    outcomes.note_written()
    outcomes.note_failure(job("a"), "timeout")
    outcomes.note_not_found(job("b"), "it answered 404")
    before = outcomes.done

    outcomes.settle(listing())

    assert (before, outcomes.done) == (3, 3)
