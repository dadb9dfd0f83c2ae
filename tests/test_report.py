"""What a run reports: its plan, how far it is, and at the end what it did."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from sync.samples import job, listing

from tap_public_jobs.report import PROGRESS_INTERVAL, Progress, Report, in_words, key_works
from tap_public_jobs.sync.outcomes import Outcomes
from tap_public_jobs.sync.plan import Plan

if TYPE_CHECKING:
    from tap_public_jobs.sync.plan import Reason


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def report(clock: Clock) -> Report:
    """The report of a run that may make 60 requests per minute."""
    return Report(60, 60, clock)


def plan_of(count: int, reason: Reason = "new", *, published: int = 3000) -> Plan:
    return Plan({job(str(number)): reason for number in range(count)}, published)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (60, "less than a minute"),
        (61, "about 2 minutes"),
        (3000, "about 50 minutes"),
        (3900, "about 1 hour 5 minutes"),
        (90_000, "about 1 day 1 hour"),
    ],
)
def test_durations_are_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


class TestProgress:
    def test_time_left_is_never_less_than_the_rate_limit_needs(self, clock: Clock) -> None:
        """The first burst goes out in seconds, and says nothing about what follows."""
        progress = Progress(3000, lambda: 60, 1.0, clock)
        clock.now = 2.0

        assert progress.line() == "Details: 60 of 3,000 (2 %), about 49 minutes left."

    def test_time_left_follows_what_was_measured_if_that_is_slower(self, clock: Clock) -> None:
        progress = Progress(3000, lambda: 1500, 1.0, clock)
        clock.now = 3600.0

        assert progress.line() == "Details: 1,500 of 3,000 (50 %), about 1 hour left."

    def test_time_left_follows_a_slower_pace_and_ignores_a_faster_one(self, clock: Clock) -> None:
        progress = Progress(3000, lambda: 0, 1.0, clock)

        for pace in (2.0, 0.1):
            progress.slow_down(0.0, pace)
            assert progress.seconds_left() == 6000.0

    def test_time_left_counts_a_pause_and_does_not_extrapolate_from_it(self, clock: Clock) -> None:
        """100 details: 60 at once, a pause of a minute, the others one per second."""
        done = {4.0: 60, 34.0: 60, 64.0: 60, 65.0: 61, 94.0: 90}
        progress = Progress(100, lambda: done[clock.now], 1.0, clock)
        clock.now = 4.0
        progress.slow_down(60.0, 1.0)

        left = {}
        for clock.now in done:
            left[clock.now] = progress.seconds_left()

        assert left == {4.0: 100.0, 34.0: 70.0, 64.0: 40.0, 65.0: 39.0, 94.0: 10.0}

    def test_nothing_to_do_is_done(self, clock: Clock) -> None:
        assert Progress(0, lambda: 0, 1.0, clock).line() == (
            "Details: 0 of 0 (100 %), less than a minute left."
        )

    def test_it_is_logged_every_thirty_seconds_until_the_work_ends(
        self, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        waits: list[float] = []
        ended = threading.Event()

        def wait(seconds: float) -> bool:
            waits.append(seconds)
            if len(waits) == 3:
                ended.set()
            return ended.is_set()

        done = iter([30, 30, 30, 60, 60, 60])
        progress = Progress(90, lambda: next(done), 1.0, clock, wait=wait)
        with caplog.at_level("INFO"), progress:
            assert ended.wait(10)

        assert waits == [PROGRESS_INTERVAL] * 3 == [30.0] * 3
        assert caplog.messages == [
            "Details: 30 of 90 (33 %), less than a minute left.",
            "Details: 60 of 90 (66 %), less than a minute left.",
        ]

    def test_it_ends_with_the_work_and_does_not_begin_without_any(self, clock: Clock) -> None:
        before = set(threading.enumerate())  # threads of earlier tests may end at any time

        with Progress(0, lambda: 0, 1.0, clock):
            assert set(threading.enumerate()) <= before
        with Progress(90, lambda: 0, 1.0, clock):
            (thread,) = set(threading.enumerate()) - before
        thread.join(10)

        assert not thread.is_alive()


class TestReport:
    def test_the_plan_is_logged_with_the_time_it_takes(
        self, report: Report, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO"):
            report.fetching(plan_of(1200), Outcomes())

        (line,) = caplog.messages
        assert line == (
            "Fetching 1,200 of 3,000 details (1,200 new) at up to 60 requests per minute: about "
            "20 minutes."
        )

    def test_a_plan_without_details_says_why(
        self, report: Report, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level("INFO"):
            report.fetching(plan_of(0), Outcomes())

        assert caplog.messages == [
            "Fetching 0 of 3,000 details: nothing is new, changed or too old."
        ]

    @pytest.mark.parametrize(
        ("limit", "period", "rate"),
        [
            (1200, 60, "up to 1,200 requests per minute:"),
            (60, 6, "up to 60 requests per 6 seconds:"),
            (3, 1.5, "up to 3 requests per 1.5 seconds:"),
            (60, 90, "up to 60 requests per 1 minute 30 seconds:"),
            (60, 3600, "up to 60 requests per hour:"),
        ],
    )
    def test_the_rate_is_that_of_the_settings(
        self, caplog: pytest.LogCaptureFixture, limit: int, period: float, rate: str
    ) -> None:
        with caplog.at_level("INFO"):
            Report(limit, period).fetching(plan_of(1), Outcomes())

        assert rate in caplog.text

    def test_progress_counts_what_comes_of_the_details(self, report: Report) -> None:
        outcomes = Outcomes()
        progress = report.fetching(plan_of(4), outcomes)

        outcomes.note_written()
        outcomes.not_found[job("1")] = "it answered 404"
        outcomes.note_failure(job("2"), "timeout")

        assert progress.line() == "Details: 3 of 4 (75 %), less than a minute left."

    def test_a_rejection_is_logged_with_the_pause_and_the_new_pace(
        self, report: Report, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock.now = 61.0
        report.pacing(61.0, 1.0)
        report.fetching(plan_of(1800), Outcomes())
        report.pacing(30.0, 2.0)

        left = "Details: 0 of 1,800 (0 %), about 1 hour 1 minute left."
        rejected = "The API rejected a request for the rate limit. Pausing for "
        assert [it.getMessage() for it in caplog.records if it.levelname == "WARNING"] == [
            f"{rejected}61.0 seconds, then sending at most one request every 1 seconds.",
            f"{rejected}30.0 seconds, then sending at most one request every 2 seconds. {left}",
        ]

    def test_a_rejection_in_the_first_period_is_no_fault(
        self, report: Report, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock.now = 59.0
        with caplog.at_level("INFO"):
            report.pacing(60.0, 1.0)

        (record,) = caplog.records
        assert record.levelname == "INFO"
        assert record.getMessage() == (
            "The API rejected a request for the rate limit: another run used this key within the "
            "last minute. Pausing for 60.0 seconds, then sending at most one request every 1 "
            "seconds."
        )


@pytest.mark.parametrize(
    ("published", "page_size", "words"),
    [
        (0, 100, "0 published jobs; a first run takes less than a minute."),
        (1, 100, "1 published job; a first run takes less than a minute."),
        (59, 100, "59 published jobs; a first run takes less than a minute."),
        (3000, 100, "3,000 published jobs; a first run takes about 50 minutes."),
        (3000, 10, "3,000 published jobs; a first run takes about 54 minutes."),
    ],
)
def test_a_test_of_the_connection_says_how_long_a_first_run_takes(
    published: int, page_size: int, words: str
) -> None:
    assert key_works(published, page_size, 60, 60) == f"The key works: {words}"


class TestSummary:
    def test_it_counts_everything(self, report: Report, clock: Clock) -> None:
        outcomes = Outcomes()
        report.fetching(plan_of(5, published=3000), outcomes)
        for _ in range(2):
            outcomes.note_written()
        outcomes.note_failure(job("2"), "timeout")
        for number in ("3", "4"):
            outcomes.not_found[job(number)] = "it answered 404"
        outcomes.settle(listing(job("3")))
        report.records.update({"jobs": 3000, "job_publications": 3001, "job_details": 2})
        report.new_fields.update(
            {"jobs": [], "job_details": ["salaryPeriod", "remote"], "job_publications": []}
        )
        report.opened, report.closed = 2, 1
        report.count_retry()
        clock.now = 3060.0

        assert report.summary(requests=3031, rejections=2) == (
            "Synced 3,000 jobs, 3,001 job_publications, 2 job_details; "
            "3,031 requests (2 rejections, 1 retry); "
            "details: 2 fetched, 2,995 unchanged, 2 failed, 1 unpublished during the run; "
            "2 jobs opened and 1 job closed since the last complete listing; "
            "new fields in job_details: salaryPeriod, remote; "
            "took about 51 minutes."
        )

    def test_it_leaves_out_what_did_not_happen(self, report: Report) -> None:
        assert report.summary(requests=1, rejections=0) == (
            "Synced no records; 1 request (0 rejections, 0 retries); took less than a minute."
        )
