"""The throttle with real threads, on a server that really counts."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from api.conftest import Connect
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.api.throttle import Throttle

# Even a busy computer sends two requests within a tenth of a second.
LIMIT, PERIOD, JOBS = 10, 1.0, 12


def fetch(connect: Connect, **options: Any) -> tuple[list[int | None], Throttle]:
    """Read the list, and every detail in sixteen threads; return the statuses of all requests."""
    options |= {"limit_requests": LIMIT, "limit_period": PERIOD, "latency": 0.01, "jitter": 0.02}
    sandbox, throttle = Sandbox.demo(JOBS, options=Options(**options)), Throttle(LIMIT, PERIOD)
    with serving(sandbox) as url, ThreadPoolExecutor(16) as threads:
        api = connect(url, sandbox.key, throttle=throttle, page_size=100)
        jobs = [JobRef(item["id"], item["publicId"]) for item in api.page(1).items]
        details = list(threads.map(api.detail, jobs))

    assert sorted(it["id"] for it in details) == sorted(job.id for job in jobs)
    return [request.status for request in sandbox.requests], throttle


def test_a_limit_that_allows_a_burst_of_its_size_never_rejects(connect: Connect) -> None:
    """Sixteen threads read the list and every detail, and no window is fuller than the limit."""
    statuses, throttle = fetch(connect, limit_algorithm="sliding_log")

    assert statuses == [200] * (1 + JOBS)
    assert (throttle.requests, throttle.rejections) == (1 + JOBS, 0)


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("reject_with", ["403", "503", "503 X-RateLimit-Remaining: 0"])
def test_a_limit_that_rejects_costs_no_detail_whatever_it_answers(
    connect: Connect, reject_with: str
) -> None:
    statuses, _ = fetch(connect, limit_algorithm="leaky_bucket", reject_with=reject_with)

    assert {*statuses} == {200, int(reject_with[:3])}
