"""What a run reports: the time left while it works, and a summary when it ends."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tap_public_jobs.api.throttle import Throttle
    from tap_public_jobs.sync.outcomes import Outcomes
    from tap_public_jobs.sync.plan import Plan

logger = logging.getLogger(__name__)

# Seconds between two lines about the progress of the details.
PROGRESS_INTERVAL = 30.0

# Seconds.
ONE_MINUTE = 60.0


@dataclass
class Report:
    """The counts and events of a run.

    Attributes:
        throttle: Knows the rate limit, and counts requests.
        clock: Returns monotonic time in seconds.
        records: Records written, by stream.
        new_fields: Undeclared fields that no earlier run saw, by stream.
        opened: Jobs that are listed for the first time, or again.
        closed: Jobs that are no longer published.
    """

    throttle: Throttle
    clock: Callable[[], float] = time.monotonic
    records: Counter[str] = field(default_factory=Counter)
    new_fields: dict[str, list[str]] = field(default_factory=dict)
    opened: int = 0
    closed: int = 0
    _details: tuple[Plan, Outcomes] | None = None

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self._started_at = self.clock()

    @contextmanager
    def fetching(self, plan: Plan, outcomes: Outcomes) -> Iterator[None]:
        """Log what the run fetches, and while it fetches, its progress.

        Args:
            plan: The details to fetch.
            outcomes: Their outcomes so far.
        """
        self._details = plan, outcomes
        if not plan.reasons:
            logger.info("Fetching %s: nothing is new, changed or too old.", plan)
            yield
            return
        time_left = in_words(len(plan.reasons) * self.throttle.seconds_each)
        rate = f"{self.throttle.limit:,} requests per {self.throttle.period:g} s"
        logger.info("Fetching %s at up to %s: %s.", plan, rate, time_left)
        ended = threading.Event()
        arguments = len(plan.reasons), outcomes, ended
        threading.Thread(target=self._log_progress, args=arguments, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _log_progress(self, total: int, outcomes: Outcomes, ended: threading.Event) -> None:
        since = self.clock()
        while not ended.wait(PROGRESS_INTERVAL):
            logger.info("Details: %s", self.progress(outcomes.done, total, since))

    def confirming(self, total: int) -> None:
        """Log that the run asks for jobs that are not listed, if that takes more than a minute.

        Args:
            total: Jobs to ask for.
        """
        seconds = total * self.throttle.seconds_each
        if seconds > ONE_MINUTE:
            shown = f"The list does not show {total:,} known jobs"
            logger.info("%s. Asking whether they are unpublished: %s.", shown, in_words(seconds))

    def progress(self, done: int, total: int, since: float) -> str:
        """Describe how far requests are, and the time left.

        Args:
            done: How many have an answer.
            total: How many there are.
            since: When the first one was sent, by the clock.
        """
        # The first burst says little: the time left is at least what the rate limit needs.
        measured = (self.clock() - since) / done if done else 0.0
        left = (total - done) * max(self.throttle.seconds_each, measured)
        return f"{done:,} of {total:,} ({100 * done // total} %), {in_words(left)} left."

    def summary(self, retries: int) -> str:
        """Sum the run up in one line.

        Args:
            retries: Further tries of requests that failed.
        """
        records = ", ".join(f"{count:,} {stream}" for stream, count in self.records.items())
        throttle, tries = self.throttle, _count(retries, "retry", "retries")
        requests, rejections = throttle.requests, _count(throttle.rejections, "rejection")
        parts = [
            f"Synced {records or 'no records'}",
            f"{_count(requests, 'request')} ({rejections}, {tries})",
        ]
        if self._details:
            plan, outcomes = self._details
            parts.append(
                f"details: {outcomes.written:,} fetched, {plan.unchanged:,} unchanged, "
                f"{len(outcomes.failed):,} failed, "
                f"{len(outcomes.unpublished):,} unpublished during the run"
            )
        if self.opened or self.closed:
            opened, closed = _count(self.opened, "job"), _count(self.closed, "job")
            parts.append(f"{opened} opened and {closed} closed since the last complete listing")
        for stream, names in self.new_fields.items():
            if names:
                parts.append(f"new fields in {stream}: {', '.join(names)}")
        parts.append(f"took {in_words(self.clock() - self._started_at)}")
        return f"{'; '.join(parts)}."

    def numbers(self, retries: int) -> dict[str, Any]:
        """Return the numbers of the summary, as fields for JSON logs.

        Args:
            retries: Further tries of requests that failed.
        """
        counts: dict[str, Any] = {
            "records": dict(self.records),
            "requests": self.throttle.requests,
            "rejections": self.throttle.rejections,
            "retries": retries,
            "opened": self.opened,
            "closed": self.closed,
            "new_fields": {stream: names for stream, names in self.new_fields.items() if names},
            "seconds": round(self.clock() - self._started_at, 1),
        }
        if self._details:
            plan, outcomes = self._details
            counts["details"] = {
                "fetched": outcomes.written,
                "unchanged": plan.unchanged,
                "failed": len(outcomes.failed),
                "unpublished": len(outcomes.unpublished),
            }
        return counts

    def key_works(self, published: int, page_size: int) -> str:
        """Describe the result of a test of the connection.

        Args:
            published: Published jobs.
            page_size: Jobs per page of the list.
        """
        requests = published + math.ceil(published / page_size) - self.throttle.limit
        first_run = in_words(requests * self.throttle.seconds_each)
        jobs = _count(published, "published job")
        return f"The key works: {jobs}; a first run takes {first_run}."


def in_words(seconds: float) -> str:
    """Put a duration into words, rounded up to minutes."""
    import pendulum  # noqa: PLC0415  # a tenth of the start-up, and --discover has no durations

    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return "less than a minute"
    return f"about {pendulum.duration(minutes=minutes).in_words(locale='en')}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
