"""A bounded, concurrent map that yields results as they arrive."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

T = TypeVar("T")
R = TypeVar("R")


def fan_out(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    workers: int,
    stop_by: Callable[[], float | None] = lambda: None,
) -> Generator[R, None, None]:
    """Call a function for each item in threads, and yield the results as they arrive.

    There are never more calls that run and results that wait for the consumer than workers: a
    process that is killed loses no more of them, and they are what takes memory. A consumer that
    pauses for a minute loses no time, because the API then allows the requests of a minute at once.

    Args:
        function: Called from several threads.
        items: Consumed lazily.
        workers: Calls at once.
        stop_by: Returns a monotonic time once the work is to stop: then no further call starts, and
            results are yielded until that time.

    Raises:
        Exception: The first that `function` raised, after the results that had arrived with it;
            none once the work is to stop.
    """
    rest = iter(items)
    calls: set[Future[R]] = set()
    arrived: SimpleQueue[Future[R]] = SimpleQueue()
    failure: BaseException | None = None
    pool = ThreadPoolExecutor(workers)
    try:
        while True:
            stops_at = stop_by()
            if stops_at is None and failure and arrived.empty():
                raise failure
            free = 0 if failure or stops_at else workers - len(calls)
            for item in islice(rest, free):
                call = pool.submit(function, item)
                calls.add(call)
                call.add_done_callback(arrived.put)
            if not calls or time.monotonic() > (stops_at or math.inf):
                return
            try:
                call = arrived.get(timeout=0.1)  # a stop is noticed after that
            except Empty:
                continue
            calls.discard(call)
            if (error := call.exception()) is None:
                yield call.result()
            failure = failure or error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
