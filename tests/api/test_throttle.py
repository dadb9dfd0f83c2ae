"""The throttle, in simulated time."""

import heapq
import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from api.simulated import FakeTime
from hypothesis import given, settings
from hypothesis import strategies as st
from public_jobs_sandbox.limits import ALGORITHMS, Limiter

from tap_public_jobs.api.client import MAX_TRIES
from tap_public_jobs.api.models import HeldSlots
from tap_public_jobs.api.pace import FEW, LESSONS, WIDER
from tap_public_jobs.api.throttle import Throttle


def rejected(throttle: Throttle, sent: float, retry_after: float | None = None) -> Any:
    """End a request as one that is known to be rejected."""
    throttle.refused(sent, retry_after)
    pacing = throttle.limited()
    throttle.resume()
    return pacing


@dataclass
class Network:
    """Workers that send requests through a throttle, over a network with delays.

    Every request takes a time to reach the server and a time back. All times are simulated.

    Attributes:
        algorithm: How the server counts; it rejects nothing if that is empty.
        others: Requests per period that another client of the key takes from the limit.
        hint: What the server says of the seconds until it accepts a request again.
        is_bare_503: Whether it rejects as a server that is down, so that requests are tried again.
        counted: When the requests arrived that the server accepted.
        rejected: When the others arrived.
        offset: Of the clock that shows the time since the epoch.
    """

    limit: int
    period: float
    workers: int
    delays: list[tuple[float, float]]
    algorithm: str = ""
    now: float = 0.0
    others: int = 0
    hint: Callable[[float], float | None] = lambda seconds: seconds
    is_bare_503: bool = False
    counted: list[float] = field(default_factory=list)
    rejected: list[float] = field(default_factory=list)
    offset: float = 1_800_000_000.0
    server: Limiter | None = None
    throttle: Throttle = field(init=False)

    def __post_init__(self) -> None:
        if self.algorithm:
            self.server = ALGORITHMS[self.algorithm](self.limit - self.others, self.period)
        self.start(None)

    def start(self, held: HeldSlots | None) -> None:
        """Begin a run with what the one before held."""
        self.throttle = Throttle(
            self.limit,
            self.period,
            held=held,
            epoch=lambda: self.now + self.offset,
            clock=lambda: self.now,
        )

    def run(self, requests: int) -> None:
        """Send requests until as many are accepted."""
        # (time, kind, number, tries, sent, hint); the server judges requests in order of arrival.
        events: list[tuple[float, str, int, int, float, float | None]] = []
        waiting, idle, number = [0] * requests, self.workers, 0
        while waiting or events:
            delay = math.inf
            while waiting and idle and (delay := self.throttle.try_acquire()) == 0:
                idle -= 1
                up, _ = self.delays[number % len(self.delays)]
                event = (self.now + up, "arrives", number, waiting.pop(), self.now, None)
                heapq.heappush(events, event)
                number += 1
            wake = self.now + delay if waiting and idle else math.inf
            if events and events[0][0] <= wake:
                self.now, kind, request, tries, sent, hint = heapq.heappop(events)
                if kind == "arrives":
                    hint = self.judge()
                    back = self.now + self.delays[request % len(self.delays)][1]
                    heapq.heappush(events, (back, "returns", request, tries, sent, hint))
                elif kind == "returns" and hint is not None and self.is_bare_503:
                    assert tries < MAX_TRIES - 1
                    self.throttle.answered(sent, is_doubtful=True)
                    again = self.now + 2**tries / 2
                    heapq.heappush(events, (again, "tries again", request, tries + 1, sent, hint))
                else:
                    idle += 1
                    waiting += [tries] * (hint is not None)
                    if hint is None:
                        self.throttle.answered(sent)
                    elif kind == "returns":
                        rejected(self.throttle, sent, self.hint(hint))
            else:
                assert wake < math.inf, "the throttle waits for a request that is not in flight"
                assert wake > self.now, "the throttle asks to be asked again at once"
                self.now = wake

    def judge(self) -> float | None:
        hint = self.server.hit(self.now) if self.server else None
        (self.counted if hint is None else self.rejected).append(self.now)
        return hint

    @property
    def is_within_limit(self) -> bool:
        """Whether no window at the server saw more than `limit` requests.

        Then `limit + 1` requests in a row always span more than a period, wherever the window
        begins, and whether it is fixed or slides.
        """
        times = [Fraction(time) for time in sorted([*self.counted, *self.rejected])]
        return all(b - a > self.period for a, b in zip(times, times[self.limit :], strict=False))


# Seconds between paced requests at 60 a minute.
PACE = 60 / 59

seconds = st.integers(0, 40).map(lambda quarters: quarters / 4)
# What requests take to the server and what their responses take back, whatever it be.
delays = st.just([(0.0, 0.0)]) | st.lists(st.tuples(seconds, seconds), min_size=1, max_size=30)

BURSTS = ["fixed_window", "sliding_log", "token_bucket"]


def networks(most: int = 6, algorithms: Iterable[str] = ("",), **options: Any) -> Any:
    """Any network, with limits and periods up to some number."""
    usual: dict[str, Any] = {
        "limit": st.integers(1, most),
        "period": st.integers(1, 2 * most).map(float),
        "workers": st.integers(1, 12),
        "delays": delays,
        "algorithm": st.sampled_from(sorted(algorithms)),
        "now": st.floats(0, 100),
    }
    return st.builds(Network, **usual | options)


@given(
    network=networks(),
    runs=st.lists(
        st.tuples(st.integers(0, 60), seconds, st.sampled_from([0.0, -0.5, -60.0, -1e9])),
        max_size=5,
    ),
)
@settings(max_examples=400)
def test_no_window_at_the_server_sees_more_than_the_limit_on_any_network(
    network: Network, runs: list[tuple[int, float, float]]
) -> None:
    """Nor does one of runs in a row with one state, even if the clock is set back between two."""
    for requests, pause, jump in runs:
        network.run(requests)
        held = network.throttle.held_slots()
        network.now += pause
        network.offset += jump
        network.start(held)
    network.run(network.limit)

    assert len(network.counted) == network.limit + sum(requests for requests, *_ in runs)
    assert network.is_within_limit


WILD = st.integers(-(10**15), 10**15)


@given(limit=st.integers(1, 6), held=st.builds(HeldSlots, WILD, WILD))
def test_slots_of_an_earlier_run_are_held_for_a_period_at_most_whatever_the_state_says(
    limit: int, held: HeldSlots
) -> None:
    network = Network(limit, 5.0, 1, [(0.0, 0.0)])
    network.start(held)
    network.now += 5.001

    network.run(limit)

    assert network.now == 5.001


@given(network=networks(8, BURSTS))
def test_limits_that_allow_a_burst_of_their_size_never_reject_on_any_network(
    network: Network,
) -> None:
    network.run(60)

    assert network.rejected == []


@given(
    network=networks(
        60,
        ALGORITHMS,
        hint=st.sampled_from([lambda it: it, lambda it: int(it) + 1.0, lambda _: None]),
    )
)
def test_any_limit_on_any_network_is_learnt_in_two_lessons_or_four(network: Network) -> None:
    """Three cost at most one rejection of each worker, and the guarantee holds throughout.

    A third is needed if the delays vary. A fourth costs one rejection, if they vary by more than a
    tenth of the shortest round trip.
    The server says how long to wait exactly, or in whole seconds rounded down, or not at all.
    """
    network.run(4 * network.limit)

    assert len(network.counted) == 4 * network.limit
    lessons = network.throttle._pace.lessons  # a longer pause is reported too, and is none
    assert lessons <= (2 if len({*network.delays}) == 1 else 4)
    assert len(network.rejected) <= network.workers * min(lessons, 3) + lessons // 4
    assert network.is_within_limit


AS_IF_DOWN = networks(60, ALGORITHMS, is_bare_503=st.just(value=True))
# Another client uses the same key.
SHARED = networks(6, BURSTS, limit=st.just(10), others=st.integers(1, 5))


@given(network=AS_IF_DOWN | SHARED)
@settings(max_examples=200)
def test_whatever_a_server_rejects_and_how_no_request_fails_and_the_guarantee_holds(
    network: Network,
) -> None:
    network.run(4 * network.limit)

    assert len(network.counted) == 4 * network.limit
    assert network.is_within_limit


@given(limit=st.integers(2, 60), period=st.integers(1, 60), requests=st.integers(1, 300))
@settings(max_examples=50)
def test_without_latency_it_takes_the_least_time_that_the_limit_allows(
    limit: int, period: int, requests: int
) -> None:
    network = Network(limit, float(period), workers=8, delays=[(0.0, 0.0)])

    network.run(requests)

    assert network.now == pytest.approx((requests - 1) // limit * period)


def test_a_slot_is_free_a_period_after_its_response_and_not_before() -> None:
    network = Network(60, 60.0, workers=8, delays=[(0.25, 0.5)])

    network.run(180)

    # One request, then three at once, then eight; each goes again a period after its response.
    assert network.counted[60] == pytest.approx(60.75 + 0.25)
    assert network.counted[120] == pytest.approx(2 * 60.75 + 0.25)


def test_a_limit_without_burst_costs_few_rejections_however_many_workers() -> None:
    network = Network(60, 60.0, 64, [(0.1, 0.1)], "leaky_bucket")

    network.run(50)

    assert network.rejected == [pytest.approx(0.3)] * FEW
    gaps = [b - a for a, b in pairwise(network.counted[1:])]
    assert gaps == pytest.approx([PACE] * 48)


class Unreliable:
    """Fails one in fifty requests, with no limit."""

    def __init__(self) -> None:
        self._count = 0

    def hit(self, _: float) -> float | None:
        self._count += 1
        return None if self._count % 50 else 1.0


@pytest.mark.parametrize(
    ("server", "most_rejections", "seconds"),
    [(ALGORITHMS["leaky_bucket"](60, 60.0), 12, 1250), (Unreliable(), 21, 1050)],
)
def test_many_faults_are_a_limit_which_rejects_few_requests_and_few_cost_no_time(
    server: Limiter, most_rejections: int, seconds: float
) -> None:
    """Even if the network's delays vary so little that only some requests arrive too early."""
    random = Random(0)  # noqa: S311  # always the same
    delays = [(random.uniform(0.1, 0.13), 0.1) for _ in range(97)]
    network = Network(60, 60.0, 16, delays, server=server, is_bare_503=True)

    network.run(1000)

    assert len(network.rejected) <= most_rejections
    assert network.now < seconds


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def throttle(time: FakeTime) -> Throttle:
    return time.throttle()


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (0.0, PACE), (None, 60.0)])
def test_a_rejection_pauses_every_request_for_as_long_as_the_server_asks(
    throttle: Throttle, time: FakeTime, asked: float | None, waited: float
) -> None:
    """If the server does not say, for a period; and never for less than the even pace."""
    rejected(throttle, throttle.acquire(), asked)

    throttle.acquire()

    assert time.waits == [pytest.approx(waited)]


def test_the_longest_pause_of_one_burst_counts_and_is_reported_if_it_is_much_longer(
    throttle: Throttle, time: FakeTime
) -> None:
    for _ in range(4):
        throttle.answered(throttle.acquire())
    burst = [throttle.acquire() for _ in range(4)]

    reported: list[Any] = [
        rejected(throttle, sent, asked) for sent, asked in zip(burst, (5, 60, 300, 5), strict=True)
    ]
    throttle.acquire()

    assert reported == [(5, pytest.approx(PACE)), None, (300, pytest.approx(PACE)), None]
    assert time.waits == [300]


def test_responses_that_may_be_rejections_slow_the_run_down_and_a_server_that_is_down_does_not(
    throttle: Throttle, time: FakeTime
) -> None:
    """One of them teaches to send evenly; many, but not in a row, to send more slowly."""

    def end(*doubts: int) -> list[Any]:
        return [throttle.answered(throttle.acquire(), is_doubtful=bool(it)) for it in doubts]

    even: Any = (0.0, pytest.approx(PACE))
    wider: Any = (0.0, pytest.approx(WIDER * PACE))
    assert end(0, 1, *[1] * 20, *[0] * 10) == [None, even, *[None] * 30]
    assert time.waits == [pytest.approx(PACE)] * 30
    assert throttle.try_acquire() == pytest.approx(PACE)
    assert end(1, 0, 1, 0, 1, 0) == [*[None] * 4, wider, None]
    throttle.acquire()
    assert throttle.try_acquire() == pytest.approx(WIDER * PACE)


def test_after_a_third_lesson_requests_go_one_at_a_time(throttle: Throttle, time: FakeTime) -> None:
    """And only after a whole period, if none was answered since the lesson before.

    Most of the shortest round trip is taken off the pace, until a further lesson.
    """

    def send(seconds: float) -> float:
        """Send a request, and return the wait after its response."""
        sent = throttle.acquire()
        time.now += seconds
        assert throttle.try_acquire() == math.inf
        throttle.answered(sent)
        return throttle.try_acquire()

    throttle.answered(throttle.acquire() - 9)
    first, second, third = (throttle.acquire() for _ in range(3))
    time.now += 0.5
    rejected(throttle, first, 0.0)
    for _ in range(2):
        sent = throttle.acquire()
        time.now += 0.5
        rejected(throttle, sent, 0.0)
    throttle.answered(second, is_doubtful=True)  # it was sent before the lesson, and is none
    throttle.answered(third)

    assert time.waits == pytest.approx([PACE, 60.0])
    assert throttle.try_acquire() == pytest.approx(60.0)
    assert send(5.0) == pytest.approx(PACE - 0.9 * 0.5)
    assert send(0.4) == pytest.approx(PACE - 0.9 * 0.4)
    throttle.answered(throttle.acquire(), is_doubtful=True)
    assert send(5.0) == pytest.approx(PACE)


def test_a_later_lesson_pauses_as_long_as_the_server_asks_until_only_a_pause_helps(
    throttle: Throttle, time: FakeTime
) -> None:
    """What it asked for was enough, if a request has been answered since the last lesson."""
    for _ in range(LESSONS):
        throttle.answered(throttle.acquire())
        rejected(throttle, throttle.acquire(), 7.0)

    assert [it for it in time.waits if it > 2] == [7] * (LESSONS - 1)
    assert throttle.try_acquire() == pytest.approx(60)


def test_a_request_in_flight_at_the_end_of_a_run_holds_its_slot_as_if_answered_then(
    throttle: Throttle, time: FakeTime
) -> None:
    throttle.answered(throttle.acquire())
    sent = throttle.acquire()
    time.now += 5.0

    assert throttle.held_slots() == HeldSlots(1, 2)  # rounded up
    throttle.answered(sent)
    time.now += 5.0
    assert throttle.held_slots() == HeldSlots(-4, 2)


def test_closing_ends_the_waits_of_other_threads_and_lets_nothing_through() -> None:
    throttle = Throttle(1, 3600.0)
    throttle.answered(throttle.acquire())
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(throttle.acquire) for _ in range(2)]
        throttle.close(SystemExit(143))
        for it in waiting:
            with pytest.raises(SystemExit, match="143"):
                it.result(10)
    assert throttle.requests == 1
