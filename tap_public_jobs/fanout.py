"""An ordered, bounded, concurrent map."""

from __future__ import annotations

import math
import queue
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 256
"""Items begun but not yet taken by the consumer: what a slow head of the line may hold up.

At 60 requests a minute this is four minutes of results, longer than all tries of one request take.
"""

GRACE = 1.4
"""Seconds that a stopped fan-out waits for the calls under way, whose results are paid for."""


class FanOut(Generic[T, R]):
    """Applies a function to each item in threads, and yields the results in the items' order.

    An exception ends it: no further item is begun, what is done is still yielded in order, and
    then the exception that came first in time is raised. Calls still running then are left behind
    in daemon threads, which do not keep the process alive. Stopped, it ends without an exception.

    Args:
        function: Called from several threads.
        items: Consumed lazily, from the consumer's thread.
        workers: Calls at once.
        ahead: Items begun and not yet consumed, however slow the consumer.
    """

    def __init__(
        self, function: Callable[[T], R], items: Iterable[T], *, workers: int, ahead: int = AHEAD
    ) -> None:
        self._function = function
        self._items = iter(items)
        self._workers = workers
        self._ahead = ahead
        self._threads = 0
        self._waiting: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._done: dict[int, R] = {}
        self._failures: list[Exception] = []
        self._running = 0
        self._begun = 0
        self._taken = 0
        self._ending = False
        self._deadline = math.inf

    def __iter__(self) -> Iterator[R]:
        """Yield the results.

        Raises:
            Exception: The first that `function` raised.
        """
        try:
            while not self._ending:
                for item in islice(self._items, self._ahead - (self._begun - self._taken)):
                    self._begin(item)
                if self._taken == self._begun:
                    return
                yield from self._next()
            yield from self._rest()
            if self._failures:
                raise self._failures[0]
        finally:
            self._ending = True
            for _ in range(self._threads):
                self._waiting.put(None)

    def stop(self) -> None:
        """Begin nothing more, and end after what is done within `GRACE`.

        May be called from a signal handler.
        """
        with self._changed:
            self._ending = True
            self._deadline = time.monotonic() + GRACE
            self._changed.notify_all()

    def _begin(self, item: T) -> None:
        self._waiting.put((self._begun, item))
        self._begun += 1
        if self._threads < self._workers:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True).start()

    def _next(self) -> Iterator[R]:
        """Wait for the result that is next in order, and yield it unless the end comes first."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken in self._done or self._ending)
        if self._taken in self._done:
            self._taken += 1
            yield self._done.pop(self._taken - 1)

    def _rest(self) -> Iterator[R]:
        """Yield what is done in order; after a failure without waiting for more."""
        if not self._failures:
            with self._changed:
                self._changed.wait_for(lambda: not self._running, GRACE)
        for index in sorted(self._done):
            if time.monotonic() > self._deadline:
                return  # the consumer is too slow to take them all
            yield self._done.pop(index)

    def _work(self) -> None:
        while (task := self._waiting.get()) is not None:
            with self._changed:
                if self._ending:
                    return
                self._running += 1
            index, item = task
            try:
                result = self._function(item)
            except Exception as error:  # noqa: BLE001  # raised again in the consumer's thread
                with self._changed:
                    if not self._ending:
                        self._failures.append(error)
                    self._ending = True
            else:
                self._done[index] = result
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
