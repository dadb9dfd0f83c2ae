"""A map that runs in threads, keeps the pace of its consumer, and stops in time."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import count

import pytest

from tap_public_jobs.limit import fanout
from tap_public_jobs.limit.fanout import fan_out

# Seconds that no test takes.
LONG = 60.0


@pytest.mark.parametrize("workers", [1, 4, 64])
@pytest.mark.parametrize("number", [0, 1, 3, 200])
def test_every_item_has_one_result(number: int, workers: int) -> None:
    assert sorted(fan_out(lambda it: it * 2, range(number), workers=workers)) == [
        it * 2 for it in range(number)
    ]


def test_results_come_as_they_arrive() -> None:
    """The first item waits until the second one's result has been consumed."""
    second_is_consumed = threading.Event()

    def function(item: int) -> int:
        if item == 1:
            assert second_is_consumed.wait(LONG)
        return item

    results = []
    for result in fan_out(function, [1, 2], workers=2):
        results.append(result)
        second_is_consumed.set()

    assert results == [2, 1]


def test_a_slow_consumer_bounds_how_far_ahead_the_calls_get() -> None:
    started = count(1)
    latest = [0]

    def function(_: int) -> None:
        latest[0] = next(started)

    with closing(fan_out(function, count(), workers=8)) as results:
        for consumed in range(300):
            next(results)
            assert latest[0] <= consumed + 8


def test_an_exception_ends_the_map_after_what_has_arrived_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All four calls have ended before the first result is looked at."""

    def at_once(_: object, function: Callable[[int], float], item: int) -> Future[float]:
        call: Future[float] = Future()
        if item in {0, 3}:
            call.set_exception(LookupError() if item else ZeroDivisionError())
        else:
            call.set_result(function(item))
        return call

    monkeypatch.setattr(ThreadPoolExecutor, "submit", at_once)
    results: list[float] = []
    with pytest.raises(ZeroDivisionError):
        results.extend(fan_out(lambda it: 6 / it, range(100), workers=4))

    assert results == [6, 3]


def test_what_runs_when_a_call_fails_has_time_to_arrive_and_nothing_more_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its requests are paid for. The consumer learns of the exception after the last of them.

    `tests/test_cli.py` tests that a call which hangs does not hold up the process.
    """
    monkeypatch.setattr(fanout, "GRACE", LONG)
    started, release = list[int](), threading.Event()

    def function(item: int) -> int:
        started.append(item)
        if item == 2:
            raise ZeroDivisionError  # as when the throttle is closed
        release.wait(LONG)
        return item

    threading.Timer(0.3, release.set).start()
    results: list[int] = []
    with pytest.raises(ZeroDivisionError):
        results.extend(fan_out(function, range(100), workers=3))

    assert (sorted(results), sorted(started)) == ([0, 1], [0, 1, 2])
