"""The throttle with real threads, on a server that really counts."""

from __future__ import annotations

from typing import Any

import pytest
from harness import sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

LIMIT = 40
PERIOD = 0.8


def run(jobs: int, **options: Any) -> Sandbox:
    """Sync some jobs under a limit of 40 requests per 0.8 seconds, with uneven latency."""
    sandbox = Sandbox.demo(
        jobs=jobs,
        options=Options(
            limit_requests=LIMIT, limit_period=PERIOD, latency=0.01, jitter=0.05, **options
        ),
    )
    with serving(sandbox) as url:
        output = sync(
            {
                "api_key": sandbox.key,
                "base_url": url,
                "rate_limit_requests": LIMIT,
                "rate_limit_period_seconds": PERIOD,
            }
        )
    ids = {posting.job["id"] for posting in sandbox.organisation.published()}
    assert {record["id"] for record in output.records("job_details")} == ids
    return sandbox


def rejections(sandbox: Sandbox) -> list[int]:
    return [request.number for request in sandbox.requests if request.status != 200]


@pytest.mark.parametrize("algorithm", ["sliding_log", "fixed_window", "token_bucket"])
def test_limits_by_windows_and_buckets_never_reject(algorithm: str) -> None:
    sandbox = run(120, limit_algorithm=algorithm)

    assert rejections(sandbox) == []
    assert len(sandbox.requests) == 2 + 120


@pytest.mark.parametrize(("algorithm", "jobs"), [("sliding_counter", 120), ("leaky_bucket", 30)])
def test_stricter_limits_are_learnt_from_a_handful_of_rejections(algorithm: str, jobs: int) -> None:
    sandbox = run(jobs, limit_algorithm=algorithm)

    rejected = rejections(sandbox)
    assert len(rejected) <= 10
    assert len(sandbox.requests) == -(-jobs // 100) + jobs + len(rejected)


@pytest.mark.parametrize(
    ("status", "retry_after"),
    [
        (429, "seconds"),
        (429, "date"),
        (429, None),
        (429, "-5"),
        (429, "31536000"),
        (429, "soon"),
        (503, "seconds"),
        (403, "seconds"),
        (420, "1"),
    ],
)
def test_a_rejection_in_any_form_ends_well(status: int, retry_after: str | None) -> None:
    """The budget is set too high, so that the server has to refuse."""
    sandbox = Sandbox.demo(
        jobs=10,
        options=Options(
            limit_requests=6,
            limit_period=0.3,
            rejection_status=status,
            retry_after=retry_after,
        ),
    )
    with serving(sandbox) as url:
        output = sync(
            {
                "api_key": sandbox.key,
                "base_url": url,
                "rate_limit_requests": 8,
                "rate_limit_period_seconds": 0.3,
            }
        )

    assert len(output.records("job_details")) == 10
    assert len(output.of("ACTIVATE_VERSION")) == 2
    assert status in {request.status for request in sandbox.requests}


def test_metrics_time_the_server_and_not_the_throttle(caplog: pytest.LogCaptureFixture) -> None:
    """One after the other, requests take no longer than the run less its waits of 0.3 seconds."""
    sandbox = Sandbox.demo(jobs=12, options=Options(limit_requests=6, limit_period=0.3))
    with serving(sandbox) as url, caplog.at_level("INFO"):
        sync(
            {
                "api_key": sandbox.key,
                "base_url": url,
                "rate_limit_requests": 6,
                "rate_limit_period_seconds": 0.3,
                "max_concurrent_requests": 1,
            }
        )

    points = [
        record.args[0].value  # type: ignore[union-attr, index]
        for record in caplog.records
        if "http_request_duration" in record.getMessage()
    ]
    assert len(points) == 13
    assert sum(points[:-1]) < sandbox.requests[-1].time - sandbox.requests[0].time - 0.5
