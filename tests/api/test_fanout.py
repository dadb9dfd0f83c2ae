"""The unordered, bounded, concurrent map, with calls that end when the test says so."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest

from tap_public_jobs.api import fanout
from tap_public_jobs.api.fanout import FanOut

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 10.0
"""How long to wait for what must happen, before calling it a failure."""


class Gate:
    """A function whose calls start in threads and return when they are let through."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.most_at_once = 0
        self._at_once = 0
        self._changed = threading.Condition()
        self._open: dict[int, threading.Event] = defaultdict(threading.Event)

    def __call__(self, item: int) -> str:
        with self._changed:
            self.started.append(item)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            gate = self._open[item]
            self._changed.notify_all()
        assert gate.wait(SECONDS)
        with self._changed:
            self._at_once -= 1
        return f"result {item}"

    def wait_for(self, *items: int) -> None:
        """Wait until exactly these calls have started."""
        with self._changed:
            assert self._changed.wait_for(lambda: set(self.started) == set(items), SECONDS), (
                f"started: {self.started}"
            )

    def let(self, *items: int) -> None:
        with self._changed:
            for item in items:
                self._open[item].set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.let(*range(300))  # leave no thread behind
    _join_workers()


@pytest.fixture
def consumer() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped map waits for as long as a test may take."""
    monkeypatch.setattr(fanout, "GRACE", 2 * SECONDS)


def _join_workers() -> None:
    """Wait until the threads of all maps have ended, and with them all that they could start."""
    for thread in threading.enumerate():
        if thread.daemon and "_work" in thread.name:
            thread.join(SECONDS)
            assert not thread.is_alive()


def _results(*items: int) -> list[str]:
    return [f"result {item}" for item in items]


def test_each_item_is_called_once_and_each_result_is_yielded_once() -> None:
    calls: list[int] = []

    def function(item: int) -> int:
        calls.append(item)
        return item * 2

    results = list(FanOut(function, range(1000), workers=8))

    assert sorted(calls) == list(range(1000))
    assert sorted(results) == list(range(0, 2000, 2))


def test_results_come_as_they_arrive(gate: Gate) -> None:
    """A slow job does not hold back others that are already paid for."""
    results = iter(FanOut(gate, range(4), workers=4))

    for item in (3, 1, 2, 0):
        gate.let(item)
        assert next(results) == f"result {item}"
    assert list(results) == []


def test_no_more_calls_at_once_than_workers(gate: Gate, consumer: ThreadPoolExecutor) -> None:
    results = consumer.submit(list, FanOut(gate, range(20), workers=3))
    gate.wait_for(0, 1, 2)

    gate.let(*range(20))

    assert len(results.result(SECONDS)) == 20
    assert gate.most_at_once == 3


def test_a_call_that_hangs_holds_up_neither_the_others_nor_their_results(gate: Gate) -> None:
    results = iter(FanOut(gate, range(100), workers=2))

    gate.let(*range(1, 100))

    assert sorted(islice(results, 99)) == sorted(_results(*range(1, 100)))


def test_a_slow_consumer_bounds_how_many_calls_start(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items are taken from an endless source only as results are consumed."""
    monkeypatch.setattr(fanout, "AHEAD", 6)
    gate.let(*range(100))
    results = iter(FanOut(gate, count(), workers=4))

    consumed = [next(results)]
    gate.wait_for(*range(7))
    consumed += islice(results, 2)
    gate.wait_for(*range(9))

    assert len(set(consumed)) == 3
    results.close()  # type: ignore[attr-defined]
    _join_workers()
    assert sorted(gate.started) == list(range(9))


def test_a_slow_consumer_bounds_the_bytes_that_wait(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one worker, no call starts while 30 bytes or more wait."""
    monkeypatch.setattr(fanout, "AHEAD_BYTES", 30)
    gate.let(*range(100))
    results = iter(FanOut(gate, count(), workers=1, size_of=lambda _: 10))

    assert next(results) == "result 0"
    gate.wait_for(0, 1, 2, 3)
    assert next(results) == "result 1"
    gate.wait_for(0, 1, 2, 3, 4)

    results.close()  # type: ignore[attr-defined]
    _join_workers()
    assert gate.started == [0, 1, 2, 3, 4]


def test_a_result_larger_than_the_bound_still_gets_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fanout, "AHEAD_BYTES", 30)

    results = FanOut(str, range(5), workers=2, size_of=lambda _: 1000)

    assert sorted(results) == ["0", "1", "2", "3", "4"]


def test_a_result_is_released_when_the_consumer_comes_back_for_the_next() -> None:
    released: list[str] = []
    results = iter(FanOut(str, range(3), workers=1, release=released.append))

    for number in range(3):
        assert next(results) == str(number)
        assert released == [str(before) for before in range(number)]
    assert list(results) == []
    assert released == ["0", "1", "2"]


def test_nothing_to_do() -> None:
    assert list(FanOut(str, [], workers=8)) == []


def test_a_failure_starts_no_further_call_and_loses_nothing_that_is_done() -> None:
    started: list[int] = []
    is_under_way, is_raised = threading.Event(), threading.Event()

    def function(item: int) -> int:
        started.append(item)
        if item == 0:
            assert is_under_way.wait(SECONDS)
            msg = "item 0"
            raise ValueError(msg)
        if item == 4:
            is_under_way.set()
            assert is_raised.wait(SECONDS)
        return item

    results = iter(FanOut(function, range(1000), workers=2))

    assert [next(results) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="item 0"):
        next(results)
    is_raised.set()
    _join_workers()
    assert sorted(started) == [0, 1, 2, 3, 4]


def test_the_first_failure_is_raised_while_other_calls_still_run(gate: Gate) -> None:
    def function(item: int) -> str:
        if item == 1:
            gate.wait_for(0)
            msg = "item 1"
            raise ValueError(msg)
        return gate(item)

    with pytest.raises(ValueError, match="item 1"):
        list(FanOut(function, [0, 1], workers=2))


def test_only_the_first_of_two_failures_is_raised() -> None:
    second = threading.Event()

    def function(item: int) -> None:
        if item == 1:
            assert second.wait(SECONDS)
        msg = f"item {item}"
        raise ValueError(msg)

    results = FanOut(function, [0, 1], workers=2)
    with pytest.raises(ValueError, match="item 0"):
        list(results)
    second.set()
    _join_workers()


def test_an_abandoned_map_starts_nothing_more(gate: Gate) -> None:
    gate.let(0)
    results = iter(FanOut(gate, range(100), workers=1))
    assert next(results) == "result 0"
    gate.wait_for(0, 1)

    results.close()  # type: ignore[attr-defined]
    gate.let(*range(1, 100))

    _join_workers()
    assert gate.started == [0, 1]


def test_a_stopped_map_yields_what_is_done_and_what_ends_soon(
    gate: Gate, consumer: ThreadPoolExecutor
) -> None:
    """All of it is paid for."""
    fan_out = FanOut(gate, range(100), workers=3)
    results = consumer.submit(list, fan_out)
    gate.wait_for(0, 1, 2)
    gate.let(1)
    gate.wait_for(0, 1, 2, 3)

    fan_out.stop()
    gate.let(0, 2, 3)

    assert sorted(results.result(SECONDS)) == _results(0, 1, 2, 3)
    _join_workers()
    assert sorted(gate.started) == [0, 1, 2, 3]


def test_a_stopped_map_does_not_wait_for_calls_that_hang(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "GRACE", 0.05)
    fan_out = FanOut(gate, range(100), workers=2)
    results = iter(fan_out)
    gate.let(1)
    assert next(results) == "result 1"
    gate.wait_for(0, 1, 2)

    fan_out.stop()

    assert list(results) == []


def test_half_of_the_grace_is_kept_for_what_the_consumer_has_still_to_do(
    gate: Gate, consumer: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    class Condition(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            if timeout is not None:
                waits.append(timeout)
                gate.let(0)
            return super().wait(timeout)

    monkeypatch.setattr(fanout, "GRACE", 1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: 5000.0)
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Condition", Condition)
        fan_out = FanOut(gate, range(100), workers=1)
    results = consumer.submit(list, fan_out)
    gate.wait_for(0)

    fan_out.stop()

    assert results.result(SECONDS) == ["result 0"]
    assert waits[0] == 500.0


def test_a_consumer_that_is_too_slow_is_stopped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state must be written before SIGKILL follows."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(fanout, "GRACE", 1.4)
    all_done = threading.Event()

    def function(item: int) -> int:
        if item == 9:
            all_done.set()
        return item

    fan_out = FanOut(function, range(10), workers=1)
    results = iter(fan_out)
    assert next(results) == 0
    assert all_done.wait(SECONDS)
    _join_workers()

    fan_out.stop()
    assert next(results) == 1
    now = 1.5

    assert list(results) == []


def test_what_fails_because_it_was_stopped_is_no_failure(consumer: ThreadPoolExecutor) -> None:
    started, stopped = threading.Event(), threading.Event()

    def function(_: int) -> int:
        started.set()
        assert stopped.wait(SECONDS)
        msg = "the throttle is closed"
        raise ValueError(msg)

    fan_out = FanOut(function, range(100), workers=1)
    results = consumer.submit(list, fan_out)
    assert started.wait(SECONDS)

    fan_out.stop()
    stopped.set()

    assert results.result(SECONDS) == []


def test_a_map_that_was_stopped_before_it_began_calls_nothing(gate: Gate) -> None:
    fan_out = FanOut(gate, range(100), workers=4)

    fan_out.stop()

    assert list(fan_out) == []
    assert gate.started == []
