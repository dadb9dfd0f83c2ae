"""What a run reports: its plan, how far it is, and at the end what it did.

Nobody outside forges a line of the log, or floods one.
"""

import logging
import threading
from collections import Counter

import pytest
from limit.simulated import FakeTime

from tap_public_jobs.limit.throttle import HeldSlots, Throttle
from tap_public_jobs.lines import LONGEST_LINE, OneLineRecord, quoted, shortened
from tap_public_jobs.sync.report import PROGRESS_INTERVAL, Counts, DetailCounts, Report


@pytest.fixture
def time() -> FakeTime:
    return FakeTime(0.0)


@pytest.fixture
def report(time: FakeTime, caplog: pytest.LogCaptureFixture) -> Report:
    """The report of a run that may make 60 requests per minute; what it logs is kept."""
    caplog.set_level("INFO")
    return Report(Throttle(60, 60), lambda: time.now)


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (60, 2.0, "60 of 3,000 (2 %), about 49 minutes left."),  # the burst says little
        (1500, 3600.0, "1,500 of 3,000 (50 %), about 1 hour left."),
        (0, 60.0, "0 of 3,000 (0 %), about 50 minutes left."),
        (2940, 0.0, "2,940 of 3,000 (98 %), less than a minute left."),
        (2939, 0.0, "2,939 of 3,000 (97 %), about 2 minutes left."),
    ],
)
def test_time_left_is_what_was_measured_and_at_least_what_the_rate_limit_needs(
    report: Report, time: FakeTime, done: int, seconds: float, words: str
) -> None:
    time.now = 1000 + seconds

    assert report.progress(done, 3000, 1000.0) == words


def test_time_left_follows_what_the_limit_teaches() -> None:
    report = Report(Throttle(2, 2.0))
    report.throttle.rejected(report.throttle.acquire())

    assert report.progress(0, 3000, 0.0) == "0 of 3,000 (0 %), about 1 hour 40 minutes left."


def test_progress_is_logged_every_thirty_seconds_until_the_work_ends(
    report: Report, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    details = DetailCounts(planned=90)

    class EndsAtTheThirdLook(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            details.done += 30
            return len(waits) == 3

    report._log_progress(details, EndsAtTheThirdLook())

    assert waits == [PROGRESS_INTERVAL] * 3 == [30.0] * 3
    assert caplog.messages == [
        "Details: 30 of 90 (33 %), less than a minute left.",
        "Details: 60 of 90 (66 %), less than a minute left.",
    ]


def test_progress_ends_with_the_work_and_does_not_begin_without_any(report: Report) -> None:
    before = set(threading.enumerate())  # threads of earlier tests may end at any time

    with report.fetching(DetailCounts(0, 3000), {}):
        assert set(threading.enumerate()) <= before
    with report.fetching(DetailCounts(90), {"new": 90}):
        (thread,) = set(threading.enumerate()) - before
    thread.join(10)

    assert not thread.is_alive()


def test_the_plan_is_logged_with_the_time_it_takes(
    report: Report, caplog: pytest.LogCaptureFixture
) -> None:
    for reasons in ({"new": 1_000, "changed": 200}, {}):
        planned = sum(reasons.values())
        with report.fetching(DetailCounts(planned, 3_000 - planned), reasons):
            pass

    plan = "(200 changed, 1,000 new) at up to 60 requests per 60 s: about 20 minutes."
    first, second = f"Fetching 1,200 of 3,000 details {plan}", "Details: all 3,000 are up to date."
    assert caplog.messages == [first, second]


@pytest.mark.parametrize(
    ("details", "age", "waits"), [(30, 20, True), (2, 20, False), (30, 60, False)]
)
def test_a_run_that_the_slots_of_the_last_one_hold_up_says_for_how_long(
    time: FakeTime, caplog: pytest.LogCaptureFixture, details: int, age: int, *, waits: bool
) -> None:
    report = Report(time.throttle(held=HeldSlots(-age, 58)), lambda: time.now)

    with caplog.at_level("INFO"), report.fetching(DetailCounts(details), {"new": details}):
        pass

    said = "Waiting for requests of the last run, 40 s (rate limit)."
    assert caplog.messages[:-1] == [said] * waits


def test_the_summary_counts_everything(
    report: Report, time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    details = {"planned": 5, "unchanged": 2995, "done": 5, "fetched": 2, "failed": 2}
    details |= {"unpublished": 1}
    records = {"jobs": 3000, "job_publications": 3001, "job_details": 2}
    new_fields = {"jobs": [], "job_details": ["salaryPeriod", "remote"]}
    done = Counts(Counter(records), new_fields, 2, 1, DetailCounts(**details))
    time.now = 3060.0

    report.throttle.requests, report.throttle.rejections = 3031, 2
    report.log_summary(done, retries=1)

    (said,) = caplog.records
    assert said.message == (
        "Synced 3,000 jobs, 3,001 job_publications, 2 job_details; "
        "3,031 requests (2 rejections, 1 retry); "
        "details: 2 fetched, 2,995 unchanged, 2 failed, 1 unpublished during the run; "
        "2 jobs opened and 1 job closed since the last complete listing; "
        "new fields in job_details: salaryPeriod, remote; "
        "took about 51 minutes."
    )
    counts = {"requests": 3031, "rejections": 2, "retries": 1, "opened": 2, "closed": 1}
    new = {"job_details": ["salaryPeriod", "remote"]}
    others = {"details": details, "records": records, "new_fields": new, "seconds": 3060.0}
    assert vars(said).items() >= (counts | others).items()


@pytest.mark.parametrize(
    ("opened", "closed", "said"),
    [
        (0, 0, ""),
        (1, 0, "1 job opened and 0 jobs closed since the last complete listing; "),
        (0, 2, "0 jobs opened and 2 jobs closed since the last complete listing; "),
    ],
)
def test_the_summary_leaves_out_what_did_not_happen(
    report: Report, caplog: pytest.LogCaptureFixture, opened: int, closed: int, said: str
) -> None:
    report.log_summary(Counts(opened=opened, closed=closed), retries=0)

    assert caplog.messages == [
        f"Synced no records; 0 requests (0 rejections, 0 retries); {said}took less than a minute."
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ingénieur - 日本語, 𝄞 \\ 'x'", "Ingénieur - 日本語, 𝄞 \\ 'x'"),
        ("a\r\nb\x85c\u2028d\te", r"a\r\nb\x85c\u2028d\te"),
        ("\x1b[2J\x9b\0\x7f", r"\x1b[2J\x9b\x00\x7f"),
        ("\u202egnp\u2066\u200b\ufeff", r"\u202egnp\u2066\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("x" * LONGEST_LINE + ". Run again.", None),
    ],
)
def test_a_message_is_one_line(text: str, shown: str | None) -> None:
    """What a terminal or a reader of lines obeys is escaped; a long line keeps its end."""
    record = OneLineRecord("x", logging.INFO, "", 0, "%s", (text,), None)
    line = record.getMessage()

    assert shown in {line, None}
    assert line.isprintable()
    assert len(line) <= LONGEST_LINE + 1
    assert line.endswith(" Run again.") or shown


def test_a_name_is_short() -> None:
    assert shortened("n" * 100) == "n" * 100
    assert quoted("a" * 500 + "z") == "'" + "a" * 74 + "…" + "a" * 23 + "z'"
