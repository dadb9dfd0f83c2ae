"""A bounded, concurrent map that yields results as they arrive."""

import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Seconds for the other calls to end after one has failed, because their requests are already sent.
GRACE = 0.6


def fan_out(
    function: Callable[[T], R], items: Iterable[T], *, workers: int
) -> Generator[R, None, None]:
    """Call a function for each item in threads, and yield the results as they arrive.

    The calls that run and the results that wait for the consumer are never more than `workers`, so
    a killed process loses few results, and memory is bounded. A consumer that pauses for a minute
    loses no time, because after that the API allows the requests of a minute at once.

    Args:
        function: Called from several threads.
        items: Consumed lazily.
        workers: Calls at once.

    Raises:
        BaseException: The first that `function` raised. No call starts after it, and the results of
            calls that run are yielded if they arrive within `GRACE` seconds.
    """
    rest = iter(items)
    calls: set[Future[R]] = set()
    arrived: SimpleQueue[Future[R]] = SimpleQueue()
    failure: BaseException | None = None
    ends_at: float | None = None
    pool = ThreadPoolExecutor(workers)
    try:
        while True:
            for item in islice(rest, 0 if failure else workers - len(calls)):
                call = pool.submit(function, item)
                calls.add(call)
                call.add_done_callback(arrived.put)
            if not calls:
                break
            try:
                call = arrived.get(timeout=ends_at and max(0.0, ends_at - time.monotonic()))
            except Empty:
                break
            calls.discard(call)
            if (error := call.exception()) is None:
                yield call.result()
            elif failure is None:
                failure, ends_at = error, time.monotonic() + GRACE
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if failure:
        raise failure
