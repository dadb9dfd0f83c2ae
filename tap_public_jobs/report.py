"""What a run tells its user: the time left while it works, and what it did when it ends."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

logger = logging.getLogger(__name__)

PROGRESS_INTERVAL = 30.0
"""Seconds between two lines about the progress of the fan-out."""


class Report:
    """What happened in a run. Its methods may be called from any thread.

    Args:
        clock: Monotonic time in seconds.

    Attributes:
        records: Records written, by stream.
        skipped: Jobs that were unpublished between the listing and their detail.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.records: Counter[str] = Counter()
        self.skipped = 0
        self.retries = 0
        self._clock = clock
        self._started_at = clock()
        self._lock = threading.Lock()

    def count_retry(self) -> None:
        """Count one more try of a request that failed."""
        with self._lock:
            self.retries += 1

    def summary(self, *, requests: int, rejections: int) -> str:
        """Sum the run up in one line.

        Args:
            requests: Requests sent, retries and rejections included.
            rejections: Requests that the API refused for the rate limit.
        """
        records = ", ".join(f"{count:,} {stream}" for stream, count in self.records.items())
        return (
            f"Synced {records or 'no records'} with {_count(requests, 'request')} "
            f"({_count(rejections, 'rejection')}, {_count(self.retries, 'retry', 'retries')}); "
            f"{_count(self.skipped, 'job')} unpublished meanwhile; "
            f"took {in_words(self._clock() - self._started_at)}."
        )


class Progress:
    """Logs how far a long piece of work is, every `PROGRESS_INTERVAL` seconds while it is entered.

    Args:
        total: Requests to make.
        limit: Requests per period that the API allows.
        period: Seconds.
        clock: Monotonic time in seconds.
        wait: Waits for a number of seconds; True if the work has ended meanwhile.
    """

    def __init__(
        self,
        total: int,
        limit: int,
        period: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self.done = 0
        self._total = total
        self._seconds_each = period / limit
        self._rate = f"{limit:,} requests per {_exactly(period)}"
        self._clock = clock
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._started_at = clock()

    def __enter__(self) -> Self:
        if not self._total:
            return self
        logger.info(
            "Fetching %s at up to %s: %s.",
            _count(self._total, "detail"),
            self._rate,
            in_words(self._seconds_left()),
        )
        threading.Thread(target=self._log_until_ended, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()

    def line(self) -> str:
        """Say how far the work is and how long it will still take."""
        percent = 100 * self.done // self._total if self._total else 100
        return (
            f"Details: {self.done:,} of {self._total:,} ({percent} %), "
            f"{in_words(self._seconds_left())} left."
        )

    def _log_until_ended(self) -> None:
        while not self._wait(PROGRESS_INTERVAL):
            logger.info("%s", self.line())

    def _seconds_left(self) -> float:
        """Extrapolate, but not below what the rate limit allows: its first burst is no measure."""
        left = self._total - self.done
        so_far = self._clock() - self._started_at
        return left * max(self._seconds_each, so_far / self.done if self.done else 0.0)


def in_words(seconds: float) -> str:
    """Put a duration into words, rounded up to minutes."""
    import pendulum  # noqa: PLC0415  # a tenth of the start-up, and --discover has no durations

    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return "less than a minute"
    return f"about {pendulum.duration(minutes=minutes).in_words(locale='en')}"


def _exactly(seconds: float) -> str:
    """Put the length of a period into words: a minute is "minute", 90 of them have a number."""
    import pendulum  # noqa: PLC0415  # as above

    return pendulum.duration(seconds=seconds).in_words(locale="en").removeprefix("1 ")


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
