"""An ordered, bounded, concurrent map."""

from __future__ import annotations

import queue
import threading
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


def fan_out(
    function: Callable[[T], R], items: Iterable[T], *, workers: int, ahead: int = AHEAD
) -> Iterator[R]:
    """Apply a function to each item in threads, and yield the results in the items' order.

    An exception ends the map: no further item is begun, what is done is still yielded in order,
    and then the exception that came first in time is raised. Calls still running then are left
    behind in daemon threads, which do not keep the process alive.

    Args:
        function: Called from several threads.
        items: Consumed lazily, from the caller's thread.
        workers: Calls at once.
        ahead: Items begun and not yet consumed, however slow the consumer.

    Raises:
        Exception: The first that `function` raised.
    """
    source = iter(items)
    pool = _Pool(function, workers)
    try:
        while not pool.failures:
            for item in islice(source, ahead - pool.pending):
                pool.begin(item)
            if not pool.pending:
                return
            yield from pool.wait()
        yield from pool.rest()
        raise pool.failures[0]
    finally:
        pool.close()


class _Pool(Generic[T, R]):
    """Threads that work through items in the order of their beginning."""

    def __init__(self, function: Callable[[T], R], workers: int) -> None:
        self.failures: list[Exception] = []
        self._function = function
        self._workers = workers
        self._threads = 0
        self._waiting: queue.SimpleQueue[tuple[int, T] | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._done: dict[int, R] = {}
        self._begun = 0
        self._taken = 0

    @property
    def pending(self) -> int:
        """Items begun and not yet taken."""
        return self._begun - self._taken

    def begin(self, item: T) -> None:
        self._waiting.put((self._begun, item))
        self._begun += 1
        if self._threads < self._workers:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True).start()

    def wait(self) -> Iterator[R]:
        """Wait for the result that is next in order, and yield it unless a failure comes first."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken in self._done or self.failures)
        if self._taken in self._done:
            self._taken += 1
            yield self._done.pop(self._taken - 1)

    def rest(self) -> Iterator[R]:
        """Yield the results that are there, in order."""
        for index in sorted(self._done):
            yield self._done.pop(index)

    def close(self) -> None:
        """Let the threads end after what they are doing."""
        self.failures.append(RuntimeError("closed"))
        for _ in range(self._threads):
            self._waiting.put(None)

    def _work(self) -> None:
        while (task := self._waiting.get()) is not None and not self.failures:
            index, item = task
            try:
                result = self._function(item)
            except Exception as error:  # noqa: BLE001  # raised again in the consumer's thread
                with self._changed:
                    self.failures.append(error)
                    self._changed.notify()
            else:
                with self._changed:
                    self._done[index] = result
                    self._changed.notify()
