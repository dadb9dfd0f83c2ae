"""A bounded, concurrent map that yields results as they arrive."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 64
"""Calls that run and results that wait for the consumer, at most: what the API allows in a minute.

The consumer may pause that long at no cost, and a process that is killed loses no more of them.
"""

AHEAD_BYTES = 8 * 1024 * 1024
"""Bytes of results that wait for the consumer, before further calls wait too."""

GRACE = 1.4
"""Seconds from `stop` to the last result. Half of them are for the calls that still run."""


class FanOut(Generic[T, R]):
    """Calls a function for each item in threads, and yields the results as they arrive.

    An exception ends it: no further call starts, what is done is still yielded, and then the first
    exception is raised.
    Calls that still run then are left behind in daemon threads, which do not keep the process
    alive.

    Args:
        function: Called from several threads.
        items: Consumed lazily, one item at a time.
        workers: Calls at once.
        size_of: Bytes that a result occupies while it waits for the consumer.
        release: Called with each result that the consumer is done with.
    """

    def __init__(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        workers: int,
        size_of: Callable[[R], int] = lambda _: 0,
        release: Callable[[R], object] = lambda _: None,
    ) -> None:
        self._function = function
        self._items = iter(items)
        self._workers = workers
        self._size_of = size_of
        self._release = release
        self._lock = threading.RLock()
        self._arrival = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._done: deque[R] = deque()
        self._held = 0
        self._failure: Exception | None = None
        self._running = 0
        self._is_exhausted = False
        self._is_ending = False
        self._stop_by: float | None = None

    def __iter__(self) -> Iterator[R]:
        """Yield the results.

        Raises:
            Exception: The first that `function` raised.
        """
        for _ in range(self._workers):
            threading.Thread(target=self._work, daemon=True).start()
        try:
            while self._wait_for_result():
                if self._stop_by and time.monotonic() > self._stop_by:
                    return  # the consumer is too slow to take them all
                result = self._take()
                yield result
                self._release(result)
                del result
            if self._failure:
                raise self._failure
        finally:
            self._end()

    def stop(self) -> None:
        """Start no further call, and end within `GRACE`; safe in a signal handler."""
        self._stop_by = time.monotonic() + GRACE
        self._end()

    def _end(self) -> None:
        with self._lock:
            self._is_ending = True
            self._arrival.notify_all()
            self._room.notify_all()

    def _wait_for_result(self) -> bool:
        """Wait until there is a result, or there will be none."""
        with self._lock:
            self._arrival.wait_for(lambda: self._done or self._is_over or self._is_ending)
            if self._stop_by and not self._done:
                left = self._stop_by - time.monotonic()
                self._arrival.wait_for(lambda: self._done or not self._running, left / 2)
            return bool(self._done)

    @property
    def _is_over(self) -> bool:
        return self._is_exhausted and not self._running

    def _take(self) -> R:
        with self._lock:
            result = self._done.popleft()
            self._held -= self._size_of(result)
            self._room.notify()
            return result

    def _work(self) -> None:
        while True:
            with self._lock:
                self._room.wait_for(self._may_start)
                if self._is_ending or self._is_exhausted:
                    return
                try:
                    item = next(self._items)
                except StopIteration:
                    self._is_exhausted = True
                    self._arrival.notify_all()
                    self._room.notify_all()
                    return
                self._running += 1
            self._call(item)

    def _may_start(self) -> bool:
        has_room = self._held < AHEAD_BYTES and len(self._done) + self._running < AHEAD
        return has_room or self._is_ending or self._is_exhausted

    def _call(self, item: T) -> None:
        try:
            result = self._function(item)
        except Exception as error:  # noqa: BLE001  # raised again in the consumer's thread
            with self._lock:
                self._running -= 1
                if not self._is_ending:
                    self._failure = error
                self._end()
        else:
            with self._lock:
                self._running -= 1
                self._done.append(result)
                self._held += self._size_of(result)
                self._arrival.notify()
