"""What a refusal means: a run never takes a limit for a job's own fault, and a job stops no run."""

import math
from random import Random

import pytest
from api.conftest import PAGE, Answered, response
from api.simulated import Api, FakeTime
from hypothesis import given, settings
from hypothesis import strategies as st
from public_jobs_sandbox.limits import ALGORITHMS

from tap_public_jobs.api.models import HeldSlots
from tap_public_jobs.errors import AccessError

JOBS = 40

# Statuses of rejections, and headers, in which `{}` is the whole seconds until the next one.
REJECTIONS = [
    (403, {}),
    (403, {"X-RateLimit-Remaining": "0"}),
    (429, {}),
    (429, {"Retry-After": "{}"}),
    (503, {"Retry-After": "{}"}),
    (503, {"X-RateLimit-Remaining": "0"}),
]
tenths = st.integers(0, 20).map(lambda it: it / 10)


@given(
    algorithm=st.sampled_from(sorted(ALGORITHMS)),
    limit=st.integers(4, 12),
    divisor=st.sampled_from([1, 2]),
    reject_with=st.sampled_from(REJECTIONS),
    delays=st.lists(st.tuples(tenths, tenths), min_size=1, max_size=20),
    threads=st.integers(1, 10),
    bad=st.dictionaries(
        st.sampled_from([f"job-{it}" for it in range(JOBS)]),
        st.sampled_from([401, 403, 429]),
        max_size=3,
    ),
    starts_at=st.floats(0, 20),
)
@settings(max_examples=100, deadline=None)
def test_whatever_a_limit_rejects_with_only_the_jobs_that_are_always_refused_fail(
    algorithm: str,
    limit: int,
    divisor: int,
    reject_with: tuple[int, dict[str, str]],
    delays: list[tuple[float, float]],
    threads: int,
    bad: dict[str, int],
    starts_at: float,
) -> None:
    """Even if the limit is half of what the run expects."""
    api = Api(
        algorithm,
        limit,
        float(limit),
        threads,
        delays,
        others=limit - limit // divisor,
        reject_with=reject_with,
        bad=bad,
        time=FakeTime(starts_at),
    )

    api.read(JOBS)

    assert sorted(api.refused) == sorted(bad)
    assert sorted(api.fetched + api.refused) == sorted(f"job-{it}" for it in range(JOBS))


@pytest.mark.parametrize("status", [401, 403, 429])
@pytest.mark.parametrize("number", [0, 59, 150, 299])
def test_a_single_job_that_is_refused_costs_a_run_seconds(status: int, number: int) -> None:
    """A run that fetches it alone, too; and it costs the runs after it no pace."""
    name, page = f"job-{number}", "jobs?page=1&pageSize=100"
    api = Api("sliding_log", bad={name: status})
    healthy = Api("sliding_log")

    assert api.read(300) < 1.1 * healthy.read(300)
    assert api.refused == [name]
    assert len(api.fetched) == 299
    first = api.seen.index((name, status))
    assert api.seen[first:].count((name, status)) == 3
    assert [it for it, _ in api.seen if it in {name, page}] == [page, *[name, page] * 2, name]
    assert (api.throttle.rejections, api.throttle._pace.lessons) == (3, 0)

    alone = Api("sliding_log", bad={"job-0": status})
    assert alone.read(1) < healthy.read(1) + 15


def test_jobs_that_are_known_to_be_refused_are_sent_once() -> None:
    """Even if it is a limit after all, the next run tries them again."""
    api = Api("sliding_log", bad={"job-0": 403, "job-1": 401})

    assert api.read(3, tries=1) < 15
    assert api.refused == ["job-0", "job-1"]
    assert sorted(api.seen[1:]) == [("job-0", 403), ("job-1", 401), ("job-2", 200)]
    assert api.throttle._pace.lessons == 0


def test_a_rejection_is_the_limits_although_the_job_is_known_to_be_refused() -> None:
    api = Api("sliding_log", 20, 20.0, others=10, reject_with=(429, {}))

    api.read(40, tries=1)

    assert sorted(api.fetched) == sorted(f"job-{number}" for number in range(40))


def test_a_single_job_that_is_refused_makes_no_limit_look_like_another() -> None:
    """Although a limit rejects with the same status, and answers page 1 in between."""
    into_a_window = FakeTime(1001.2)
    api = Api("sliding_counter", 12, 6.0, 4, [(0.01, 0.01)], bad={"job-0": 403}, time=into_a_window)

    api.read(100)

    assert api.refused == ["job-0"]


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_counter"])
@pytest.mark.parametrize("reject_with", [(403, {}), (429, {}), (429, {"Retry-After": "{}"})])
def test_a_single_job_that_is_refused_lets_no_limit_of_a_third_look_like_another(
    algorithm: str, reject_with: tuple[int, dict[str, str]], status: int
) -> None:
    """Page 1 gets less room than the detail that is sent after it, so a limit rejects page 1."""
    for threads in (4, 8):
        api = Api(algorithm, threads=threads, delays=[(0.05, 0.05)], others=40)
        api.reject_with, api.bad = reject_with, {"job-0": status}

        api.read(100)

        assert api.refused == ["job-0"]


@pytest.mark.parametrize("reject_with", [(429, {"Retry-After": "{}"}), (429, {}), (503, {})])
@pytest.mark.parametrize(
    ("round_trip", "noise", "pages", "most"),
    [(0.3, 0, 1, 1.06), (0.5, 0, 3, 1.06), (0.6, 0, 3, 1.06), (0.3, 0.06, 3, 1.15)],
)
def test_a_limit_without_bursts_costs_little_more_than_the_least_time(
    reject_with: tuple[int, dict[str, str]],
    round_trip: float,
    noise: float,
    pages: int,
    most: float,
) -> None:
    """Whether it says how long to wait or not; an interval for each request is the least time.

    If the network lets even requests catch up with each other, that pauses no whole period.
    """
    random = Random(0)  # noqa: S311  # always the same
    each = round_trip / 2
    delays = [(each + random.uniform(0, noise), each + random.uniform(0, noise)) for _ in range(97)]
    api = Api("leaky_bucket", delays=delays, reject_with=reject_with)

    assert api.read(300, pages=pages) < most * (299 + pages)
    assert len(api.fetched) == 300
    assert sum(status != 200 for _, status in api.seen) <= 20


class CountsRejections:
    """A sliding counter that counts what it rejects, as HAProxy's `http_req_rate` does."""

    def __init__(self, limit: int, period: float) -> None:
        self._limit, self._period = limit, period
        self._window, self._previous, self._current = 0, 0, 0

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, and judge it."""
        window = math.floor(now / self._period)
        if window != self._window:
            self._previous = self._current if window == self._window + 1 else 0
            self._window, self._current = window, 0
        self._current += 1
        left = window + 1 - now / self._period
        return None if self._current + math.floor(self._previous * left) <= self._limit else 1.0


def test_a_limit_that_counts_what_it_rejects_rejects_one_request() -> None:
    """Two more intervals, and page 1 has room."""
    into_a_window = FakeTime(1010.0)
    api = Api(threads=1, limiter=CountsRejections(60, 60.0), time=into_a_window)

    assert api.read(180) < 190
    assert [status for _, status in api.seen if status != 200] == [403]


HELD = HeldSlots(-1_000_000, 1)


@pytest.mark.parametrize(
    ("held", "answers", "pauses"),
    [
        pytest.param(None, "F", 0, id="the first answer: the plan"),
        pytest.param(HELD, "FP", 1, id="after an answer in the last run: a limit"),
        pytest.param(HELD, "FFP", 2, id="twice"),
        pytest.param(HELD, "FFF", 2, id="three times: the plan, or a limit"),
        pytest.param(None, "PFP", 1, id="after an answer in this run: a limit"),
    ],
)
def test_a_page_with_a_bare_403_may_be_a_limit_if_the_key_has_worked(
    answered: Answered, held: HeldSlots | None, answers: str, pauses: int
) -> None:
    time = FakeTime()
    sent = {"P": PAGE, "F": response(b"{}", "403 Forbidden")}
    api, server = answered(*(sent[it] for it in answers), throttle=time.throttle(held=held))

    for _ in range(answers.count("P")):
        assert api.page(1).total == 0
    if answers.endswith("F"):
        said = r"plan lacks the public API.* may use up the rate limit"
        with pytest.raises(AccessError, match=said):
            api.page(1)

    assert len(server.heads) == len(answers)
    assert [it for it in time.waits if it > 2] == [60] * pauses
