"""Requests over the rate limit are rejected, in the way that the options choose."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import pytest
from public_jobs_sandbox.limits import ALGORITHMS
from public_jobs_sandbox.options import Options

if TYPE_CHECKING:
    from sandbox.conftest import Api

JOBS = "/api/public/v1/jobs"


@pytest.mark.parametrize(
    "options",
    [Options(limit_algorithm=algorithm, limit_requests=6) for algorithm in ALGORITHMS],
    ids=ALGORITHMS,
)
def test_a_client_without_a_throttle_is_rejected(api: Api) -> None:
    # The leaky bucket allows single requests, the others a whole burst.
    allowed = 1 if api.sandbox.options.limit_algorithm == "leaky_bucket" else 6

    for _ in range(8):
        api.get(JOBS)

    statuses = [request.status for request in api.sandbox.requests]
    assert statuses == [200] * allowed + [429] * (8 - allowed)


@pytest.mark.parametrize("options", [Options(limit_requests=1)])
def test_each_key_has_its_own_limit(api: Api) -> None:
    assert api.get(JOBS).status_code == 200
    assert api.get(JOBS).status_code == 429

    api.sandbox.add_key()

    assert api.get(JOBS).status_code == 200


@pytest.mark.parametrize("options", [Options(limit_requests=1)])
def test_both_operations_count_even_if_no_job_is_found(api: Api) -> None:
    assert api.detail("no-such-job").status_code == 404
    assert api.get(JOBS).status_code == 429


@pytest.mark.parametrize("options", [Options(limit_requests=1)])
def test_requests_without_a_key_or_an_operation_do_not_count(api: Api) -> None:
    api.get(JOBS, headers={})
    api.get("/elsewhere")
    api.get("/openapi.json")

    assert api.get(JOBS).status_code == 200


@pytest.mark.parametrize("options", [Options(limit_requests=1, rejection_status=503)])
def test_the_status_of_a_rejection_can_be_chosen(api: Api) -> None:
    api.get(JOBS)

    response = api.get(JOBS)

    assert response.status_code == 503
    assert response.json() == {"error": "Rate limit exceeded"}


@pytest.mark.parametrize(
    ("options", "header"),
    [
        (Options(limit_requests=1, retry_after="seconds"), "60"),
        (Options(limit_requests=1, retry_after="seconds", limit_period=0.5), "1"),
        (Options(limit_requests=1, retry_after=None), None),
        (Options(limit_requests=1, retry_after="-5"), "-5"),
        (Options(limit_requests=1, retry_after="soon"), "soon"),
    ],
    ids=["seconds", "seconds are rounded up", "none", "negative", "nonsense"],
)
def test_a_rejection_says_when_to_retry(api: Api, header: str | None) -> None:
    api.get(JOBS)

    assert api.get(JOBS).headers.get("retry-after") == header


@pytest.mark.parametrize("options", [Options(limit_requests=1, retry_after="date")])
def test_the_time_of_a_retry_can_be_a_date(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.25)
    api.get(JOBS)

    date = parsedate_to_datetime(api.get(JOBS).headers["retry-after"])

    assert date.timestamp() == 1_800_000_061  # a date has no fractions: rounded up


def test_without_a_limit_nothing_is_rejected(api: Api) -> None:
    for _ in range(80):
        api.get(JOBS)

    assert {request.status for request in api.sandbox.requests} == {200}


@pytest.mark.parametrize("options", [Options(limit_requests=1)])
def test_new_options_reset_the_rate_limit(api: Api) -> None:
    api.get(JOBS)

    api.sandbox.options = Options(limit_requests=2, limit_algorithm="fixed_window")

    assert [api.get(JOBS).status_code for _ in range(3)] == [200, 200, 429]
