"""The throttle, in simulated time."""

import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import cycle, pairwise
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limit.simulated import Api, FakeTime
from public_jobs_sandbox.limits import ALGORITHMS, Limiter

from tap_public_jobs.limit.pace import FEW, LESSONS
from tap_public_jobs.limit.throttle import HeldSlots, Throttle


def is_within_limit(api: Api) -> bool:
    """Whether no window at the server saw more than `limit` requests.

    Then `limit + 1` requests in a row always span more than a period, wherever the window begins,
    and whether it is fixed or slides.
    """
    times = [Fraction(time) for time in sorted([*api.counted, *api.rejected])]
    return all(b - a > api.period for a, b in zip(times, times[api.limit :], strict=False))


# Seconds between paced requests at 60 a minute.
PACE = 60 / 59

seconds = st.integers(0, 40).map(lambda quarters: quarters / 4)
# What requests take to the server and what their responses take back, whatever it be.
delays = st.just([(0.0, 0.0)]) | st.lists(st.tuples(seconds, seconds), min_size=1, max_size=30)

BURSTS = ["fixed_window", "sliding_log", "token_bucket"]


def apis(most: int = 6, algorithms: Iterable[str] = ("",), **options: Any) -> Any:
    """Any API behind any network, with limits and periods up to some number."""
    usual: dict[str, Any] = {
        "algorithm": st.sampled_from(sorted(algorithms)),
        "limit": st.integers(1, most),
        "period": st.integers(1, 2 * most).map(float),
        "threads": st.integers(1, min(most + 1, 12)),
        "delays": delays,
        "time": st.builds(FakeTime, st.floats(0, 100)),
    }
    return st.builds(Api, **usual | options)


@given(
    api=apis(),
    runs=st.lists(
        st.tuples(st.integers(0, 60), seconds, st.sampled_from([0.0, -0.5, -60.0, -1e9])),
        max_size=5,
    ),
)
@settings(max_examples=400)
def test_no_window_at_the_server_sees_more_than_the_limit_on_any_network(
    api: Api, runs: list[tuple[int, float, float]]
) -> None:
    """Nor does one of runs in a row with one state, even if the clock is set back between two.

    So a limit that allows a burst of its size never rejects.
    """
    for requests, pause, jump in runs:
        api.send(requests)
        held = api.throttle.held_slots()
        api.time.now += pause
        api.offset += jump
        api.start(held)
    api.send(api.limit)

    assert len(api.counted) == api.limit + sum(requests for requests, *_ in runs)
    assert is_within_limit(api)


WILD = st.integers(-(10**15), 10**15)


@given(limit=st.integers(1, 6), held=st.builds(HeldSlots, WILD, WILD))
def test_slots_of_an_earlier_run_are_held_for_a_period_at_most_whatever_the_state_says(
    limit: int, held: HeldSlots
) -> None:
    api = Api("", limit, 5.0, threads=1, delays=[(0.0, 0.0)])
    api.start(held)
    api.time.now += 5.001

    api.send(limit)

    assert api.time.now == 5.001


@given(
    api=apis(
        60,
        ALGORITHMS,
        hint=st.sampled_from([lambda it: it, lambda it: int(it) + 1.0, lambda _: None]),
    )
)
def test_any_limit_on_any_network_is_learnt_in_two_lessons_or_three(api: Api) -> None:
    """Two cost at most one rejection of each worker, and the guarantee holds throughout.

    A third costs one rejection. It is needed if the delays vary by more than a tenth of the
    shortest round trip.
    The server says how long to wait exactly, or in whole seconds rounded down, or not at all.
    """
    api.send(4 * api.limit)

    assert len(api.counted) == 4 * api.limit
    lessons = api.throttle._pace.lessons  # a longer pause is reported too, and is none
    assert lessons <= (2 if len({*api.delays}) == 1 else 3)
    assert len(api.rejected) <= api.threads * min(lessons, 2) + lessons // 3
    assert is_within_limit(api)


AS_IF_DOWN = apis(60, ALGORITHMS, hint=st.none())
# Another client uses the same key.
SHARED = apis(6, BURSTS, limit=st.just(10), others=st.integers(1, 5))


@given(api=AS_IF_DOWN | SHARED)
@settings(max_examples=200)
def test_whatever_a_server_rejects_and_how_no_request_fails_and_the_guarantee_holds(
    api: Api,
) -> None:
    api.send(4 * api.limit)

    assert len(api.counted) == 4 * api.limit
    assert is_within_limit(api)


@pytest.mark.parametrize("others", [10, 20, 30, 40])
@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_what_another_client_leaves_is_found_in_few_rejections(algorithm: str, others: int) -> None:
    """Such as the tap of another project with the same key, until that has ended."""
    api = Api(algorithm, others=others)

    api.send(600)

    assert len(api.counted) == 600
    assert len(api.rejected) <= 60
    assert api.time.now < 1.15 * 600 / (api.limit - others) * api.period
    api.limiter = ALGORITHMS[algorithm](api.limit, api.period)
    api.send(600)
    assert api.throttle._pace.lessons <= LESSONS


@given(limit=st.integers(2, 60), period=st.integers(1, 60), requests=st.integers(1, 300))
@settings(max_examples=50)
def test_without_latency_it_takes_the_least_time_that_the_limit_allows(
    limit: int, period: int, requests: int
) -> None:
    api = Api("", limit, float(period), threads=8, delays=[(0.0, 0.0)])

    api.send(requests)

    assert api.time.now == pytest.approx((requests - 1) // limit * period)


def test_a_slot_is_free_a_period_after_its_response_and_not_before() -> None:
    api = Api(threads=8, delays=[(0.25, 0.5)])

    api.send(180)

    # One request, then three at once, then eight; each goes again a period after its response.
    assert api.counted[60] == pytest.approx(60.75 + 0.25)
    assert api.counted[120] == pytest.approx(2 * 60.75 + 0.25)


def test_a_limit_without_burst_costs_few_rejections_however_many_workers() -> None:
    api = Api("leaky_bucket", threads=64, delays=[(0.1, 0.1)])

    api.send(50)

    assert api.rejected == [pytest.approx(0.3)] * FEW
    gaps = [b - a for a, b in pairwise(api.counted[1:])]
    assert gaps == pytest.approx([PACE] * 48)


# Fails one in fifty requests, with no limit.
UNRELIABLE = mock.Mock(hit=mock.Mock(side_effect=cycle([*[None] * 49, 1.0])))


@pytest.mark.parametrize(
    ("limiter", "most_rejections", "seconds"),
    [(ALGORITHMS["leaky_bucket"](60, 60.0), 12, 1250), (UNRELIABLE, 21, 1050)],
)
def test_many_faults_are_a_limit_which_rejects_few_requests_and_few_cost_no_time(
    limiter: Limiter, most_rejections: int, seconds: float
) -> None:
    """Even if the network's delays vary so little that only some requests arrive too early."""
    random = Random(0)  # noqa: S311  # always the same
    delays = [(random.uniform(0.1, 0.13), 0.1) for _ in range(97)]
    api = Api(delays=delays, limiter=limiter, hint=None)

    api.send(1000)

    assert len(api.rejected) <= most_rejections
    assert api.time.now < seconds


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
    throttle.rejected(throttle.acquire(), asked)

    throttle.acquire()

    assert time.waits == [pytest.approx(waited)]


def test_the_longest_pause_of_one_burst_counts_and_is_reported_if_it_is_much_longer(
    throttle: Throttle, time: FakeTime
) -> None:
    for _ in range(4):
        throttle.answered(throttle.acquire())
    burst = [throttle.acquire() for _ in range(4)]

    reported: list[Any] = [
        throttle.rejected(sent, asked) for sent, asked in zip(burst, (5, 60, 300, 5), strict=True)
    ]
    throttle.acquire()

    assert reported == [(5, pytest.approx(PACE)), None, (300, pytest.approx(PACE)), None]
    assert time.waits == [300]


def test_responses_that_may_be_rejections_slow_the_run_down_and_a_server_that_is_down_does_not(
    throttle: Throttle, time: FakeTime
) -> None:
    """One of them teaches to send evenly; many, but not in a row, to send one at a time."""

    def end(*doubts: int) -> list[Any]:
        return [throttle.answered(throttle.acquire(), is_doubtful=bool(it)) for it in doubts]

    even: Any = (0.0, pytest.approx(PACE))
    assert end(0, 1, *[1] * 20, *[0] * 10) == [None, even, *[None] * 30]
    assert time.waits == [pytest.approx(PACE)] * 30
    assert throttle.try_acquire() == pytest.approx(PACE)
    assert end(1, 0, 1, 0, 1, 0) == [*[None] * 4, even, None]
    throttle.acquire()
    assert throttle.try_acquire() == math.inf


def test_a_request_without_a_response_teaches_nothing(throttle: Throttle, time: FakeTime) -> None:
    """A reset answers no request, ends no row of faults, and is no short round trip."""
    throttle.acquire()
    throttle.unanswered()
    throttle.acquire()
    assert throttle.try_acquire() == math.inf  # one at a time until the first response
    throttle.unanswered()
    for _ in range(4):
        throttle.answered(throttle.acquire() - 0.5, is_doubtful=True)
        throttle.acquire()
        throttle.unanswered()
    assert throttle._pace.lessons == 1  # a server that is down is no limit
    throttle.rejected(throttle.acquire() - 0.5)
    throttle.acquire()
    time.now += 5
    throttle.unanswered()
    assert throttle.try_acquire() == pytest.approx(PACE - 0.9 * 0.5)


def test_after_a_second_lesson_requests_go_one_at_a_time(
    throttle: Throttle, time: FakeTime
) -> None:
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
    throttle.rejected(first, 0.0)
    sent = throttle.acquire()
    time.now += 0.5
    throttle.rejected(sent, 0.0)
    throttle.answered(second, is_doubtful=True)  # it was sent before the lesson, and is none
    throttle.answered(third)

    assert time.waits == pytest.approx([PACE])
    assert throttle.try_acquire() == pytest.approx(60.0)
    assert send(5.0) == pytest.approx(PACE - 0.9 * 0.5)
    assert send(0.4) == pytest.approx(PACE - 0.9 * 0.4)
    throttle.answered(throttle.acquire(), is_doubtful=True)
    assert send(5.0) == pytest.approx(PACE)


def test_a_later_lesson_pauses_as_long_as_the_server_asks_and_then_twice_as_long_each_time(
    throttle: Throttle, time: FakeTime
) -> None:
    """What it asked for was enough, if a request has been answered since the last lesson."""
    for _ in range(LESSONS):
        throttle.answered(throttle.acquire())
        throttle.rejected(throttle.acquire(), 7.0)
    assert [it for it in time.waits if it > 2] == [7] * (LESSONS - 1)

    for pause in (7.0, 7.0, 8 * PACE, 16 * PACE, 32 * PACE, 60.0, 60.0):
        assert throttle.try_acquire() == pytest.approx(pause)
        throttle.rejected(throttle.acquire(), 7.0)


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


def test_a_request_that_has_to_wait_does_not_once_the_throttle_is_closed() -> None:
    time = FakeTime()
    throttle = time.throttle()
    throttle.close(KeyError("stopped"))

    with pytest.raises(KeyError, match="stopped"):
        throttle.acquire(time.now + 100)

    assert time.waits == []
