"""What a run reports: the time left while it works, and a summary when it ends."""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.lines import shortened

logger = logging.getLogger(__name__)

# Seconds between two lines about the progress of the details.
PROGRESS_INTERVAL = 30.0

# Seconds.
ONE_MINUTE = 60.0


@dataclass
class DetailCounts:
    """How many details a run needs, and what became of them.

    Attributes:
        planned: Are to be fetched.
        unchanged: Need not be fetched, because their rows are up to date.
        done: Arrived, or failed for good.
        fetched: Were written.
        failed: Did not arrive, although the job is published.
        unpublished: Belong to jobs that were unpublished during the run.
    """

    planned: int = 0
    unchanged: int = 0
    done: int = 0
    fetched: int = 0
    failed: int = 0
    unpublished: int = 0


@dataclass
class Counts:
    """What a run has done so far. The run counts, and the report reads.

    Attributes:
        records: Records written, by stream.
        new_fields: Undeclared fields that no earlier run saw, by stream.
        opened: Jobs that a complete list shows for the first time, or again.
        closed: Jobs that are no longer published.
        details: Counts of the details, once they are planned.
    """

    records: Counter[str] = field(default_factory=Counter)
    new_fields: dict[str, list[str]] = field(default_factory=dict)
    opened: int = 0
    closed: int = 0
    details: DetailCounts = field(default_factory=DetailCounts)


@dataclass
class Report:
    """What a run logs about itself.

    Attributes:
        throttle: Knows the rate limit, and counts requests.
        clock: Returns monotonic time in seconds.
    """

    throttle: Throttle
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self._started_at = self.clock()

    @contextmanager
    def fetching(self, details: DetailCounts, reasons: Mapping[str, int]) -> Iterator[None]:
        """Log what the run fetches, and its progress while it does.

        Args:
            details: The counts, which rise meanwhile.
            reasons: How many details are to be fetched for each reason.
        """
        planned, published = details.planned, details.planned + details.unchanged
        if not reasons:
            logger.info("Details: all %s are up to date.", f"{published:,}")
            yield
            return
        throttle = self.throttle
        self.waiting(planned)
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        rate = f"{throttle.limit:,} requests per {throttle.period:g} s"
        time_left = in_words(planned * throttle.seconds_each)
        line = "Fetching %s of %s details (%s) at up to %s: %s."
        logger.info(line, f"{planned:,}", f"{published:,}", counts, rate, time_left)
        ended = threading.Event()
        threading.Thread(target=self._log_progress, args=(details, ended), daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def waiting(self, requests: int) -> None:
        """Log how long requests have to wait because of those of the last run, if they have to."""
        if seconds := self.throttle.held_up(requests):
            logger.info("Waiting for requests of the last run, %.0f s (rate limit).", seconds)

    def _log_progress(self, details: DetailCounts, ended: threading.Event) -> None:
        since = self.clock()
        while not ended.wait(PROGRESS_INTERVAL):
            logger.info("Details: %s", self.progress(details.done, details.planned, since))

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
            done: How many arrived, or failed for good.
            total: How many there are.
            since: When the first one was sent, by the clock.
        """
        # The first burst is faster than the rest: the rate limit needs at least its own time.
        measured = (self.clock() - since) / done if done else 0.0
        left = (total - done) * max(self.throttle.seconds_each, measured)
        return f"{done:,} of {total:,} ({100 * done // total} %), {in_words(left)} left."

    def log_summary(self, counts: Counts, retries: int) -> None:
        """Log one line that sums the run up, with its numbers as fields for JSON logs.

        Args:
            counts: What the run has done.
            retries: Further tries of requests that failed.
        """
        requests, rejections = self.throttle.requests, self.throttle.rejections
        new_fields = {stream: names for stream, names in counts.new_fields.items() if names}
        seconds, details = self.clock() - self._started_at, counts.details
        numbers = {
            "records": dict(counts.records),
            "requests": requests,
            "rejections": rejections,
            "retries": retries,
            "details": asdict(details),
            "opened": counts.opened,
            "closed": counts.closed,
            "new_fields": new_fields,
            "seconds": round(seconds, 1),
        }
        records = ", ".join(f"{count:,} {stream}" for stream, count in counts.records.items())
        again = f"{_count(rejections, 'rejection')}, {_count(retries, 'retry', 'retries')}"
        parts = [f"Synced {records or 'no records'}", f"{_count(requests, 'request')} ({again})"]
        if details != DetailCounts():
            parts.append(
                f"details: {details.fetched:,} fetched, {details.unchanged:,} unchanged, "
                f"{details.failed:,} failed, {details.unpublished:,} unpublished during the run"
            )
        if counts.opened or counts.closed:
            opened, closed = _count(counts.opened, "job"), _count(counts.closed, "job")
            parts.append(f"{opened} opened and {closed} closed since the last complete listing")
        for stream, names in new_fields.items():
            parts.append(f"new fields in {stream}: {', '.join(map(shortened, names))}")
        logger.info("%s; took %s.", "; ".join(parts), in_words(seconds), extra=numbers)

    def still_missing(self, gaps: Collection[tuple[int, str]]) -> None:
        """Log what has been missing for an hour or longer.

        Args:
            gaps: For how many seconds something has been missing, and what.
        """
        if gaps:
            lines = [f"{why} (for {_in_words(hours=age // 3600)})" for age, why in gaps]
            logger.warning("Still missing: %s. Everything else was loaded.", _in_short(lines, 10))

    def incomplete(self, gaps: Collection[str], until: int, *, has_drifted: bool) -> str:
        """Say that the run is incomplete, because something has been missing for a short time.

        Args:
            gaps: What is missing.
            until: When all of it has been missing for an hour, in seconds since the epoch.
            has_drifted: Whether a job is missing from a list that changed while it was read.
        """
        end = datetime.fromtimestamp(until, UTC)
        remedy = (
            f"No action is needed: each run tries again, exits with 1 until {end:%H:%M} UTC, and "
            "then only warns."
        )
        if has_drifted:
            remedy = (
                "The list changed while it was read, and each run tries again. If runs still say "
                "so after two hours, the list has no stable order: ask the API's provider for one."
            )
        return (
            "The sync is incomplete. Everything else was loaded, and no row was removed from a "
            f"table that may lack a job. Reason: {_in_short(gaps, 50)}. {remedy}"
        )

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
    minutes = math.ceil(seconds / 60)
    return "less than a minute" if minutes <= 1 else f"about {_in_words(minutes=minutes)}"


def _in_words(**duration: int) -> str:
    import pendulum  # noqa: PLC0415  # a tenth of the start-up; short runs need no words

    return pendulum.duration(**duration).in_words(locale="en")


def _in_short(sentences: Collection[str], most: int) -> str:
    """Join the first sentences, and count the others."""
    more = f"; and {len(sentences) - most:,} more" if len(sentences) > most else ""
    return "; ".join([*sentences][:most]) + more


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
