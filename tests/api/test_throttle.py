"""The throttle, in simulated time."""

from __future__ import annotations

import heapq
import math
from bisect import bisect
from dataclasses import dataclass, field
from email.utils import formatdate
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from public_jobs_sandbox.limits import ALGORITHMS

from tap_public_jobs.api.throttle import (
    DRIFT,
    ENOUGH_ANSWERS,
    FEW,
    GIVEN_BACK,
    LONGEST_RETRY_AFTER,
    MARGIN,
    Throttle,
    ThrottleClosedError,
    retry_after,
)

if TYPE_CHECKING:
    from public_jobs_sandbox.limits import Limiter


@dataclass
class Network:
    """Workers that send requests through a throttle, over a network with delays.

    Every request takes a time to reach the server and a time back. All times are simulated.
    """

    throttle: Throttle = field(init=False)
    limit: int
    period: float
    workers: int
    delays: list[tuple[float, float]]
    server: Limiter | None = None
    now: float = 0.0
    counted: list[float] = field(default_factory=list)
    rejected: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.throttle = Throttle(self.limit, self.period, clock=lambda: self.now)

    def run(self, requests: int) -> None:
        """Send so many requests until each is accepted."""
        # (time, kind, request, sent, hint); the server judges requests in order of arrival.
        events: list[tuple[float, str, int, float, float | None]] = []
        waiting, idle, number = requests, self.workers, 0
        while waiting or events:
            delay = math.inf
            while waiting and idle and (delay := self.throttle.try_acquire()) == 0:
                waiting, idle = waiting - 1, idle - 1
                up, _ = self.delays[number % len(self.delays)]
                heapq.heappush(events, (self.now + up, "arrives", number, self.now, None))
                number += 1
            wake = self.now + delay if waiting and idle else math.inf
            if events and events[0][0] <= wake:
                self.now, kind, request, sent, hint = heapq.heappop(events)
                if kind == "arrives":
                    hint = self.judge()
                    back = self.now + self.delays[request % len(self.delays)][1]
                    heapq.heappush(events, (back, "returns", request, sent, hint))
                    continue
                idle += 1
                if hint is None:
                    self.throttle.answered(sent)
                else:
                    waiting += 1
                    self.throttle.rejected(sent, hint)
            else:
                assert wake < math.inf, "the throttle waits for a request that is not in flight"
                assert wake > self.now, "the throttle asks to be asked again at once"
                self.now = wake

    def judge(self) -> float | None:
        hint = self.server.hit(self.now) if self.server else None
        (self.counted if hint is None else self.rejected).append(self.now)
        return hint


PACE = MARGIN * 60 / 59
"""Seconds between paced requests at 60 a minute."""

seconds = st.integers(0, 40).map(lambda quarters: quarters / 4)
ways = st.tuples(seconds, seconds)
delays = st.lists(ways, min_size=1, max_size=30)
"""What a request takes to the server and what its answer takes back, whatever it be."""


def over(
    floor: tuple[float, float], delays: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Add delays to what the network takes at least, which the first request meets as it is."""
    return [floor, *((floor[0] + up, floor[1] + back) for up, back in delays)]


def spans(network: Network) -> list[Fraction]:
    """Return how long each `limit + 1` requests in a row took to arrive."""
    times = [Fraction(time) for time in network.counted]
    return [b - a for a, b in zip(times, times[network.limit :], strict=False)]


limits = st.integers(1, 6)
periods = st.integers(1, 12).map(float)
workers = st.integers(1, 12)


@given(
    limit=limits,
    period=periods,
    workers=workers,
    floor=ways,
    delays=delays,
    requests=st.integers(1, 90),
)
def test_no_window_at_the_server_sees_more_than_the_limit(
    limit: int,
    period: float,
    workers: int,
    floor: tuple[float, float],
    delays: list[tuple[float, float]],
    requests: int,
) -> None:
    """On a network whose fastest answer tells what it takes at least.

    `limit + 1` requests in a row span more than a period, so no window of that length has more
    than `limit` of them, wherever it begins and whether it is fixed or slides.
    """
    network = Network(limit, period, workers, over(floor, delays))

    network.run(requests)

    assert len(network.counted) == requests
    assert all(span > period for span in spans(network))


@given(limit=limits, period=periods, workers=workers, delays=delays, requests=st.integers(1, 90))
def test_on_any_network_only_windows_shorter_by_what_is_given_back_are_sure(
    limit: int, period: float, workers: int, delays: list[tuple[float, float]], requests: int
) -> None:
    network = Network(limit, period, workers, delays)

    network.run(requests)

    given_back = GIVEN_BACK * sum(delays[0])  # and never more, as the fastest gets no slower
    assert all(span > period - given_back for span in spans(network))


@given(limit=limits, period=periods, workers=workers, delays=delays, requests=st.integers(1, 90))
def test_on_any_network_the_first_answers_and_the_first_period_are_strict(
    limit: int, period: float, workers: int, delays: list[tuple[float, float]], requests: int
) -> None:
    network = Network(limit, period, workers, delays)

    network.run(requests)

    # What was sent in the first period arrives after it only if it was on its way.
    strict = max(ENOUGH_ANSWERS, sum(time <= period for time in network.counted))
    assert all(span > period for span in spans(network)[: max(0, strict - limit)])


@given(limit=st.integers(2, 60), period=st.integers(1, 60), requests=st.integers(1, 300))
def test_without_latency_it_takes_the_least_time_that_the_limit_allows(
    limit: int, period: int, requests: int
) -> None:
    network = Network(limit, float(period), workers=8, delays=[(0.0, 0.0)])

    network.run(requests)

    assert network.now == pytest.approx((requests - 1) // limit * period)


def test_latency_costs_little_of_a_round_trip_a_period() -> None:
    network = Network(60, 60.0, workers=8, delays=[(0.25, 0.25)])

    network.run(180)

    # One request, then three at once, then eight; each goes again a period after its answer,
    # less most of the round trip.
    cost = 0.5 * (1 - GIVEN_BACK) + DRIFT * 60
    assert network.counted[60] == pytest.approx(60 + cost + 0.25)
    assert network.counted[120] == pytest.approx(2 * (60 + cost) + 0.25)


def test_after_a_rejection_nothing_is_given_back() -> None:
    server = ALGORITHMS["sliding_log"](59, 60.0)  # another client has used one
    network = Network(60, 60.0, 60, [(5.0, 5.0)], server)

    network.run(240)

    assert len(network.rejected) == 1
    taught = bisect(network.counted, network.rejected[0] + 10)
    gaps = [
        b - a for a, b in zip(network.counted[taught:], network.counted[taught + 1 :], strict=False)
    ]
    assert min(gaps) == pytest.approx(PACE)
    assert network.counted[taught + 60] - network.counted[taught] > 60 + 10


@given(
    algorithm=st.sampled_from(["sliding_log", "fixed_window"]),
    limit=st.integers(1, 8),
    period=st.integers(1, 20).map(float),
    workers=st.integers(1, 8),
    floor=ways,
    delays=delays,
    start=st.floats(0, 100),
)
def test_limits_that_count_requests_in_windows_never_reject(
    algorithm: str,
    limit: int,
    period: float,
    workers: int,
    floor: tuple[float, float],
    delays: list[tuple[float, float]],
    start: float,
) -> None:
    server = ALGORITHMS[algorithm](limit, period)
    network = Network(limit, period, workers, over(floor, delays), server, now=start)

    network.run(60)

    assert network.rejected == []


@given(
    algorithm=st.sampled_from(sorted(ALGORITHMS)),
    limit=st.integers(1, 60),
    period=st.integers(1, 60),
    workers=st.integers(1, 8),
    delays=delays,
    start=st.floats(0, 100),
)
def test_any_limit_on_any_network_is_learnt_from_two_lessons(
    algorithm: str,
    limit: int,
    period: int,
    workers: int,
    delays: list[tuple[float, float]],
    start: float,
) -> None:
    """A lesson costs at most one rejection of each worker, and there is no third."""
    server = ALGORITHMS[algorithm](limit, float(period))
    network = Network(limit, float(period), workers, delays, server, now=start)

    network.run(5 * limit)

    assert len(network.counted) == 5 * limit
    assert len(network.rejected) <= 2 * workers


def test_a_limit_without_burst_costs_few_rejections_however_many_workers() -> None:
    server = ALGORITHMS["leaky_bucket"](60, 60.0)
    network = Network(60, 60.0, 64, [(0.1, 0.1)], server)

    network.run(50)

    assert network.rejected == [pytest.approx(0.3)] * FEW
    gaps = [b - a for a, b in zip(network.counted[1:], network.counted[2:], strict=False)]
    assert gaps == pytest.approx([PACE] * 48)


class FakeTime:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def wait(self, seconds: float | None) -> None:
        assert seconds is not None
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def throttle(time: FakeTime) -> Throttle:
    return Throttle(60, 60.0, clock=lambda: time.now, wait=time.wait)


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (0.0, PACE), (None, 60.0)])
def test_a_rejection_pauses_every_request_for_as_long_as_the_server_asks(
    throttle: Throttle, time: FakeTime, asked: float | None, waited: float
) -> None:
    """Without a word from the server, for a period; and never for less than the even pace."""
    throttle.rejected(throttle.acquire(), asked)

    throttle.acquire()

    assert time.waits == [pytest.approx(waited)]


def test_a_second_lesson_waits_a_whole_period_whatever_the_server_says(
    throttle: Throttle, time: FakeTime
) -> None:
    throttle.rejected(throttle.acquire(), 0.0)
    throttle.rejected(throttle.acquire(), 0.0)

    throttle.acquire()

    assert time.waits == [pytest.approx(PACE), pytest.approx(60.0)]


def test_a_burst_of_rejections_is_one_lesson(throttle: Throttle, time: FakeTime) -> None:
    for _ in range(1 + FEW):
        throttle.answered(throttle.acquire())
    for sent in [throttle.acquire() for _ in range(8)]:
        throttle.rejected(sent, 3.0)

    for _ in range(3):
        throttle.acquire()

    # After a second lesson the second of these would wait for the answer to the first.
    assert time.waits == pytest.approx([3.0, PACE, PACE])
    assert (throttle.requests, throttle.rejections) == (15, 8)


def test_a_closed_throttle_lets_nothing_through(throttle: Throttle) -> None:
    throttle.close()

    with pytest.raises(ThrottleClosedError):
        throttle.acquire()


NOW = 1_800_000_000


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="absent"),
        pytest.param({"Retry-After": "30"}, 30.0, id="seconds"),
        pytest.param({"Retry-After": " 0 "}, 0.0, id="zero"),
        pytest.param({"Retry-After": "1.5"}, 1.5, id="fraction"),
        pytest.param({"Retry-After": "-5"}, None, id="negative"),
        pytest.param({"Retry-After": "31536000"}, None, id="a year"),
        pytest.param({"Retry-After": str(int(LONGEST_RETRY_AFTER))}, 3600.0, id="an hour"),
        pytest.param({"Retry-After": "soon"}, None, id="rubbish"),
        pytest.param({"Retry-After": ""}, None, id="empty"),
        pytest.param({"Retry-After": "nan"}, None, id="nan"),
        pytest.param({"Retry-After": "inf"}, None, id="infinite"),
        pytest.param(
            {
                "Retry-After": formatdate(NOW + 20, usegmt=True),
                "Date": formatdate(NOW, usegmt=True),
            },
            21.0,
            id="HTTP-date by the server's clock",
        ),
        pytest.param(
            {
                "Retry-After": formatdate(NOW - 20, usegmt=True),
                "Date": formatdate(NOW, usegmt=True),
            },
            None,
            id="HTTP-date in the past",
        ),
        pytest.param({"Retry-After": formatdate(NOW * 2, usegmt=True)}, None, id="far future"),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
