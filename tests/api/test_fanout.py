"""The ordered, bounded, concurrent map, with functions that end when the test says so."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest

from tap_public_jobs.api.fanout import FanOut

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 10.0
"""How long to wait for what must happen, before calling it a failure."""


class Gate:
    """A function whose calls begin in threads and return when they are let through."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.most_at_once = 0
        self._at_once = 0
        self._changed = threading.Condition()
        self._open: dict[int, threading.Event] = defaultdict(threading.Event)

    def __call__(self, item: int) -> str:
        with self._changed:
            self.begun.append(item)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            gate = self._open[item]
            self._changed.notify_all()
        assert gate.wait(SECONDS)
        with self._changed:
            self._at_once -= 1
        return f"result {item}"

    def wait_for(self, *items: int) -> None:
        """Wait until exactly these calls have begun."""
        with self._changed:
            assert self._changed.wait_for(lambda: set(self.begun) == set(items), SECONDS), (
                f"begun: {self.begun}"
            )

    def let(self, *items: int) -> None:
        with self._changed:
            for item in items:
                self._open[item].set()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def consumer() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_results_come_in_the_order_of_the_items(gate: Gate, consumer: ThreadPoolExecutor) -> None:
    results = consumer.submit(list, FanOut(gate, range(4), workers=4))
    gate.wait_for(0, 1, 2, 3)

    gate.let(3, 1, 2, 0)

    assert results.result(SECONDS) == ["result 0", "result 1", "result 2", "result 3"]


def test_no_more_calls_at_once_than_workers(gate: Gate, consumer: ThreadPoolExecutor) -> None:
    results = consumer.submit(list, FanOut(gate, range(20), workers=3))
    gate.wait_for(0, 1, 2)

    gate.let(*range(20))

    assert len(results.result(SECONDS)) == 20
    assert gate.most_at_once == 3


def test_a_slow_head_of_the_line_does_not_stop_the_others(
    gate: Gate, consumer: ThreadPoolExecutor
) -> None:
    results = iter(FanOut(gate, count(), workers=2, ahead=5))
    first = consumer.submit(lambda: next(results))

    gate.let(1, 2, 3, 4, 5)
    gate.wait_for(0, 1, 2, 3, 4)
    gate.let(0)

    assert first.result(SECONDS) == "result 0"


def test_a_slow_consumer_bounds_what_is_begun(gate: Gate) -> None:
    """Items are taken from an endless source only as results are consumed."""
    taken = []
    source = (taken.append(item) or item for item in count())  # type: ignore[func-returns-value]
    gate.let(*range(100))
    results = FanOut(gate, source, workers=4, ahead=6)

    consumed = list(islice(results, 3))

    assert consumed == ["result 0", "result 1", "result 2"]
    assert taken == list(range(8))  # three consumed and never more than six beyond the first two


def test_nothing_to_do() -> None:
    assert list(FanOut(str, [], workers=8)) == []


def test_a_failure_ends_it_and_what_is_done_is_not_lost() -> None:
    failing = threading.Event()

    def function(item: int) -> int:
        if item == 2:
            failing.wait(SECONDS)
            msg = "item 2"
            raise ValueError(msg)
        if item == 4:
            failing.set()
        return item

    results = FanOut(function, range(1000), workers=2, ahead=10)
    got: list[int] = []
    with pytest.raises(ValueError, match="item 2"):
        got.extend(results)

    assert got[:4] == [0, 1, 3, 4]
    assert got == sorted(got)
    assert got[-1] < 12


def test_the_first_failure_in_time_is_told_while_an_earlier_item_still_runs(gate: Gate) -> None:
    def function(item: int) -> str:
        if item == 1:
            msg = "item 1"
            raise ValueError(msg)
        return gate(item)

    with pytest.raises(ValueError, match="item 1"):
        list(FanOut(function, [0, 1], workers=2))
    gate.let(0)


def test_an_abandoned_map_begins_nothing_more(gate: Gate) -> None:
    gate.let(0)
    results = iter(FanOut(gate, range(100), workers=1, ahead=3))
    assert next(results) == "result 0"
    gate.wait_for(0, 1)

    results.close()  # type: ignore[attr-defined]
    gate.let(*range(1, 100))

    for thread in threading.enumerate():
        if thread.daemon and "_work" in thread.name:
            thread.join(SECONDS)
    assert gate.begun == [0, 1]


def test_a_stopped_map_yields_what_is_done_and_under_way(
    gate: Gate, consumer: ThreadPoolExecutor
) -> None:
    """Also out of turn: all of it is paid for."""
    fan_out = FanOut(gate, range(100), workers=3)
    results = consumer.submit(list, fan_out)
    gate.wait_for(0, 1, 2)
    gate.let(1)
    gate.wait_for(0, 1, 2, 3)

    fan_out.stop()
    gate.let(0, 2, 3)

    assert results.result(SECONDS) == ["result 0", "result 1", "result 2", "result 3"]
    assert gate.begun == [0, 1, 2, 3]


def test_what_fails_because_it_was_stopped_is_no_failure(consumer: ThreadPoolExecutor) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def function(_: int) -> int:
        begun.set()
        assert stopped.wait(SECONDS)
        msg = "closed meanwhile"
        raise ValueError(msg)

    fan_out = FanOut(function, range(100), workers=1)
    results = consumer.submit(list, fan_out)
    assert begun.wait(SECONDS)

    fan_out.stop()
    stopped.set()

    assert results.result(SECONDS) == []
