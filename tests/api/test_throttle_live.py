"""The throttle with real threads, on a server that really counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import pytest
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.api.throttle import MARGIN, Throttle

if TYPE_CHECKING:
    from api.conftest import Connect

WORKERS = 16


class Backfill(NamedTuple):
    """What came of reading the list and every detail."""

    throttle: Throttle
    paces: list[float]
    """Seconds between two requests, after each lesson."""
    retries: list[int]


def backfill(connect: Connect, sandbox: Sandbox, limit: int, period: float) -> Backfill:
    result = Backfill(Throttle(limit, period), [], [])
    with serving(sandbox) as url:
        api = connect(
            url,
            sandbox.key,
            throttle=result.throttle,
            page_size=100,
            on_pacing=lambda _, interval: result.paces.append(interval),
            on_retry=lambda: result.retries.append(1),
        )
        jobs = [JobRef(item["id"], item["publicId"]) for item in api.page(1).items]
        with ThreadPoolExecutor(WORKERS) as threads:
            details = list(threads.map(api.detail, jobs))
    published = [posting.job["id"] for posting in sandbox.organisation.published()]
    assert sorted(detail["id"] for detail in details) == sorted(published)
    return result


def rejections(sandbox: Sandbox) -> int:
    return sum(request.status != 200 for request in sandbox.requests)


def most_in_a_period(sandbox: Sandbox, period: float) -> int:
    """How many requests the server saw in the fullest stretch of a period."""
    times = [request.time for request in sandbox.requests]
    return max(sum(start <= time <= start + period for time in times) for start in times)


@pytest.mark.parametrize("algorithm", ["sliding_log", "fixed_window", "token_bucket"])
def test_limits_that_allow_a_burst_of_their_size_never_reject(
    connect: Connect, algorithm: str
) -> None:
    options = Options(
        limit_requests=40, limit_period=0.4, latency=0.01, jitter=0.02, limit_algorithm=algorithm
    )
    sandbox = Sandbox.demo(jobs=90, options=options)

    result = backfill(connect, sandbox, 40, 0.4)

    assert rejections(sandbox) == result.throttle.rejections == 0
    assert len(sandbox.requests) == result.throttle.requests == 1 + 90
    assert most_in_a_period(sandbox, 0.4) <= 40


@pytest.mark.parametrize(("algorithm", "jobs"), [("sliding_counter", 90), ("leaky_bucket", 20)])
def test_stricter_limits_are_learnt_from_a_handful_of_rejections(
    connect: Connect, algorithm: str, jobs: int
) -> None:
    options = Options(
        limit_requests=40, limit_period=0.4, latency=0.01, jitter=0.02, limit_algorithm=algorithm
    )
    sandbox = Sandbox.demo(jobs=jobs, options=options)

    result = backfill(connect, sandbox, 40, 0.4)

    pace = MARGIN * 0.4 / 39
    assert result.paces in ([], [pytest.approx(pace)], [pytest.approx(pace)] * 2)
    assert result.throttle.rejections == rejections(sandbox) <= WORKERS * len(result.paces)
    assert len(sandbox.requests) == 1 + jobs + rejections(sandbox)
