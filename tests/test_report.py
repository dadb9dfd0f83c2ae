"""What a run tells its user."""

from __future__ import annotations

import threading

import pytest

from tap_public_jobs.report import Progress, Report, in_words


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
def test_durations_are_told_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_time_left_is_never_less_than_the_rate_limit_needs() -> None:
    """The first burst goes out in seconds, and says nothing about what follows."""
    now = [0.0]
    progress = Progress(3000, 60, 60.0, clock=lambda: now[0])
    now[0], progress.done = 2.0, 60

    assert progress.line() == "Details: 60 of 3,000 (2 %), about 49 minutes left."


def test_time_left_follows_what_was_measured_when_that_is_slower() -> None:
    now = [0.0]
    progress = Progress(3000, 60, 60.0, clock=lambda: now[0])
    now[0], progress.done = 3600.0, 1500

    assert progress.line() == "Details: 1,500 of 3,000 (50 %), about 1 hour left."


def test_progress_is_logged_at_the_start_and_every_thirty_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waits: list[float] = []
    ended = threading.Event()

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            ended.set()
            return True
        progress.done += 30
        return False

    progress = Progress(90, 60, 60.0, clock=lambda: 0.0, wait=wait)
    with caplog.at_level("INFO"), progress:
        assert ended.wait(10)

    assert waits == [30.0, 30.0, 30.0]
    assert caplog.messages == [
        "Fetching 90 details at up to 60 requests per minute: about 2 minutes.",
        "Details: 30 of 90 (33 %), less than a minute left.",
        "Details: 60 of 90 (66 %), less than a minute left.",
    ]


def test_nothing_is_announced_when_there_is_nothing_to_fetch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO"), Progress(0, 60, 60.0):
        pass

    assert caplog.text == ""


def test_the_summary_counts_everything() -> None:
    now = [0.0]
    report = Report(clock=lambda: now[0])
    report.records.update({"jobs": 3000, "job_details": 2999})
    report.skipped = 1
    report.count_retry()
    now[0] = 3060.0

    assert report.summary(requests=3031, rejections=0) == (
        "Synced 3,000 jobs, 2,999 job_details with 3,031 requests (0 rejections, 1 retry); "
        "1 job unpublished meanwhile; took about 51 minutes."
    )
