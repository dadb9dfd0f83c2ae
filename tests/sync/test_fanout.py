"""A map that runs in threads, keeps the pace of its consumer, and stops in time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tap_public_jobs.sync.fanout import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """All three calls have ended before the first result is looked at."""

    def at_once(_: object, function: Callable[[int], float], item: int) -> Future[float]:
        call: Future[float] = Future()
        if item == 0:
            call.set_exception(ZeroDivisionError())
        else:
            call.set_result(function(item))
        return call

    monkeypatch.setattr(ThreadPoolExecutor, "submit", at_once)
    results: list[float] = []
    with pytest.raises(ZeroDivisionError):
        results.extend(fan_out(lambda it: 6 / it, range(100), workers=3))

    assert results == [6, 3]


class Hanging:
    """A call that hangs until it is released, or fails for one item."""

    def __init__(self, failing: int) -> None:
        self.started, self.ended = list[int](), list[int]()
        self.release = threading.Event()
        self._failing = failing

    def __call__(self, item: int) -> None:
        self.started.append(item)
        if item == self._failing:
            raise ZeroDivisionError  # as when the throttle is closed
        self.release.wait(LONG)
        self.ended.append(item)


def test_an_exception_of_one_call_waits_for_no_other() -> None:
    calls = Hanging(failing=3)

    with pytest.raises(ZeroDivisionError):
        list(fan_out(calls, range(100), workers=4))

    assert (sorted(calls.started), calls.ended) == ([0, 1, 2, 3], [])
    calls.release.set()


def stopping(after: Callable[[], bool], grace: float) -> Callable[[], float | None]:
    """Stop once a condition holds, with these seconds left."""
    deadline: list[float] = []

    def stop_by() -> float | None:
        if not deadline and after():
            deadline.append(time.monotonic() + grace)
        return deadline[0] if deadline else None

    return stop_by


def test_a_stop_yields_what_runs_and_starts_nothing_more() -> None:
    started: list[int] = []
    may_end = threading.Event()
    stop_by = stopping(lambda: len(started) == 2, LONG)

    def function(item: int) -> int:
        started.append(item)
        assert may_end.wait(LONG)
        return item

    results = fan_out(function, range(100), workers=2, stop_by=stop_by)
    threading.Timer(0.3, may_end.set).start()

    assert sorted(results) == [0, 1]
    assert started == [0, 1]


def test_a_stop_ends_in_time_although_a_call_hangs_or_fails() -> None:
    calls = Hanging(failing=1)
    stop_by = stopping(lambda: len(calls.started) > 1, 0.2)

    results = fan_out(calls, range(100), workers=2, stop_by=stop_by)

    assert (list(results), calls.ended) == ([], [])
    calls.release.set()


def test_a_stop_ends_in_time_although_the_consumer_is_slow() -> None:
    stopped = threading.Event()
    results = fan_out(lambda it: it, range(64), workers=4, stop_by=stopping(stopped.is_set, 0.0))

    next(results)
    stopped.set()

    assert len(list(results)) <= 1
