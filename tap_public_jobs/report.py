"""What a run reports: the time left while it works, and a summary when it ends."""

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

    from tap_public_jobs.sync.outcomes import Outcomes
    from tap_public_jobs.sync.plan import Plan

logger = logging.getLogger(__name__)

# Seconds between two lines about the progress of the details.
PROGRESS_INTERVAL = 30.0


class Report:
    """The counts and events of a run. `count_retry` and `pacing` may be called from any thread.

    Args:
        limit: Requests per period that the API allows.
        period: Seconds.
        clock: Monotonic time in seconds.

    Attributes:
        records: Records written, by stream.
        new_fields: Undeclared fields that no earlier run saw, by stream.
        opened: Jobs that are listed for the first time, or again.
        closed: Jobs that are no longer published.
    """

    def __init__(
        self, limit: int, period: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.records: Counter[str] = Counter()
        self.new_fields: dict[str, list[str]] = {}
        self.opened = 0
        self.closed = 0
        self.retries = 0
        self._limit = limit
        self._period = period
        self._clock = clock
        self._started_at = clock()
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._plan: Plan | None = None
        self._outcomes: Outcomes | None = None

    def count_retry(self) -> None:
        """Count one more try of a request that failed."""
        with self._lock:
            self.retries += 1

    def pacing(self, pause: float, interval: float) -> None:
        """Log that the API rejected a request, and how the run continues."""
        if self._progress:
            self._progress.slow_down(pause, interval)
        # The throttle knows nothing of the requests of earlier runs.
        is_first = self._clock() - self._started_at < self._period
        cause = f": another run used this key within the last {_exactly(self._period)}"
        logger.log(
            logging.INFO if is_first else logging.WARNING,
            "The API rejected a request for the rate limit%s. Pausing for %.1f seconds, then "
            "sending at most one request every %.3g seconds.%s",
            cause if is_first else "",
            pause,
            interval,
            f" {self._progress.line()}" if self._progress else "",
        )

    def fetching(self, plan: Plan, outcomes: Outcomes) -> Progress:
        """Log what the run fetches, and return the progress, to be entered while it fetches.

        Args:
            plan: The details to fetch.
            outcomes: Their outcomes so far.
        """
        self._plan, self._outcomes = plan, outcomes
        self._progress = Progress(
            len(plan.reasons), lambda: outcomes.done, self._period / self._limit, self._clock
        )
        if plan.reasons:
            logger.info(
                "Fetching %s at up to %s requests per %s: %s.",
                plan,
                f"{self._limit:,}",
                _exactly(self._period),
                in_words(self._progress.seconds_left()),
            )
        else:
            logger.info("Fetching %s: nothing is new, changed or too old.", plan)
        return self._progress

    def summary(self, *, requests: int, rejections: int) -> str:
        """Sum the run up in one line.

        Args:
            requests: Requests sent, retries and rejections included.
            rejections: Requests that the API rejected for the rate limit.
        """
        records = ", ".join(f"{count:,} {stream}" for stream, count in self.records.items())
        rejected, retried = (
            _count(rejections, "rejection"),
            _count(self.retries, "retry", "retries"),
        )
        parts = [
            f"Synced {records or 'no records'}",
            f"{_count(requests, 'request')} ({rejected}, {retried})",
        ]
        if self._plan and self._outcomes:
            parts.append(
                f"details: {self._outcomes.written:,} fetched, "
                f"{self._plan.unchanged:,} unchanged, "
                f"{len(self._outcomes.failed):,} failed, "
                f"{len(self._outcomes.unpublished):,} unpublished during the run"
            )
        if self.opened or self.closed:
            opened, closed = _count(self.opened, "job"), _count(self.closed, "job")
            parts.append(f"{opened} opened and {closed} closed since the last complete listing")
        parts += [
            f"new fields in {stream}: {', '.join(names)}"
            for stream, names in self.new_fields.items()
            if names
        ]
        parts.append(f"took {in_words(self._clock() - self._started_at)}")
        return f"{'; '.join(parts)}."


class Progress:
    """Logs the progress of long work every `PROGRESS_INTERVAL` seconds, while it is entered.

    Args:
        total: Requests to make.
        done: Returns how many have been made.
        seconds_each: Seconds per request that the API allows.
        clock: Monotonic time in seconds.
        wait: Waits for a number of seconds; True if the work has ended.
    """

    def __init__(
        self,
        total: int,
        done: Callable[[], int],
        seconds_each: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._total = total
        self._done = done
        self._seconds_each = seconds_each
        self._clock = clock
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._measured_from = clock(), 0

    def __enter__(self) -> Self:
        if self._total:
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
        """Describe the progress and the time left."""
        percent = 100 * self._done() // self._total if self._total else 100
        return (
            f"Details: {self._done():,} of {self._total:,} ({percent} %), "
            f"{in_words(self.seconds_left())} left."
        )

    def slow_down(self, pause: float, seconds_each: float) -> None:
        """Expect a pause, and at least this many seconds per request after it."""
        self._seconds_each = max(self._seconds_each, seconds_each)
        # What was measured until now says nothing about the pace to come.
        self._measured_from = self._clock() + pause, self._done()

    def _log_until_ended(self) -> None:
        while not self._wait(PROGRESS_INTERVAL):
            logger.info("%s", self.line())

    def seconds_left(self) -> float:
        """Extrapolate, but not below what the rate limit allows: its first burst says little."""
        start, done_before = self._measured_from
        done, elapsed = self._done(), self._clock() - start
        measured = elapsed / (done - done_before) if done > done_before else 0.0
        pause = max(0.0, -elapsed)
        return pause + (self._total - done) * max(self._seconds_each, measured)


def key_works(published: int, page_size: int, limit: int, period: float) -> str:
    """Describe the result of a test of the connection.

    Args:
        published: Published jobs.
        page_size: Jobs per page of the list.
        limit: Requests per period that the API allows.
        period: Seconds.
    """
    requests = published + math.ceil(published / page_size)
    first_run = in_words(max(0, requests - limit) * period / limit)
    return f"The key works: {_count(published, 'published job')}; a first run takes {first_run}."


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

    if seconds != int(seconds):
        return f"{seconds:g} seconds"
    words = pendulum.duration(seconds=seconds).in_words(locale="en")
    return words.removeprefix("1 ") if words.count(" ") == 1 else words


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
