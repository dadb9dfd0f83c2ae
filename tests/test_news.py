"""The command that says whether a run has work to do: quick, and an error is never "no work"."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tap_public_jobs.news import main, read_state
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync.state import Cycle, KnownJob, LastRead, SyncState
from tap_public_jobs.sync.state_json import dump

STATE = SyncState(
    run_time=1_700_000_000,
    listed_at=1_700_000_000,
    jobs={"1": KnownJob("a", None, 1, 1_700_000_000, fetched_at=2)},
    forms={"job_details": "f"},
    cycle=Cycle(1_700_000_000, "changed", 1_700_000_000, has_ended=True),
    last_read=LastRead("log", 5),
)

WORK = (0, "", "")
NO_WORK = (1, "", "")


def written(state: SyncState) -> dict[str, Any]:
    """The state as the tap writes it."""
    singer_state: dict[str, Any] = {}
    dump(state, singer_state)
    return singer_state


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NotificationLog:
    """A log, whose only notification the state in `state.json` has read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", "sqlite:///changes.db?name=acme")
    log = NotificationLog("sqlite:///changes.db?name=acme")
    log.append({"acme": ["a"]})
    read = replace(STATE, last_read=LastRead(log.read().log_id, 1))
    Path("state.json").write_text(json.dumps(written(read)))
    return log


class Command:
    """Runs the command in this process: status, stdout, stderr."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        self.patch, self.capture = monkeypatch, capture

    def __call__(self, *arguments: str) -> tuple[object, str, str]:
        self.patch.setattr(sys, "argv", ["tap-public-jobs-news", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, *self.capture.readouterr()


@pytest.fixture
def news(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def test_a_notification_of_the_log_that_no_run_has_read_is_work(
    log: NotificationLog, news: Command
) -> None:
    log.append({"globex": ["b"]})
    assert news("state.json") == NO_WORK
    log.append({"acme": [None]})
    assert news("state.json") == WORK


def test_what_the_last_run_left_is_work(log: NotificationLog, news: Command) -> None:
    left = replace(STATE, last_read=LastRead(log.read().log_id, 1), awaited={"b": 1})
    Path("state.json").write_text(json.dumps(written(left)))
    assert news("state.json") == WORK


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (written(STATE), STATE),
        ({"singer_state": written(STATE)}, STATE),
        ({"bookmarks": {"jobs": {"sync": {"format": 1}}}}, SyncState()),
        ({"singer_state": None}, SyncState()),
        ([], SyncState()),
        (b"nonsense \xff", SyncState()),
        (b"[" * 100_000, SyncState()),
    ],
)
def test_a_state_that_cannot_be_read_is_that_of_a_first_run(content: Any, state: SyncState) -> None:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    Path("state.json").write_bytes(text)

    assert read_state("state.json") == state
    assert read_state("no.json") == SyncState()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "Error: changes_url must be sqlite:///path"),
        (
            "sqlite:///no.db",
            "Error: There is no notification log in no.db. Correct changes_url, or",
        ),
        ("sqlite:///changes.db?name=globex", "Error: There is no notification log in changes.db"),
    ],
)
def test_a_mistake_is_one_line_and_not_taken_for_the_absence_of_work(
    news: Command, monkeypatch: pytest.MonkeyPatch, url: str | None, words: str
) -> None:
    monkeypatch.delenv("TAP_PUBLIC_JOBS_CHANGES_URL")
    if url:
        monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", url)

    status, out, err = news("state.json")

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(words)


def test_what_goes_wrong_unforeseen_is_not_taken_for_the_absence_of_work(news: Command) -> None:
    with mock.patch.object(NotificationLog, "read", side_effect=MemoryError):
        status, out, err = news("state.json")
    assert (status, out) == (2, "")
    assert err.endswith("\nMemoryError\n")

    status, out, err = news()  # without the path of a state
    assert (status, out) == (2, "")
    assert "required: state" in err


def test_a_scheduler_may_start_it_often_and_without_stdin() -> None:
    """It imports nothing else that takes long."""
    slow = ("singer_sdk", "requests", "psycopg", "click")
    code = f"import atexit, sys; atexit.register(lambda: print(*{{*{slow}}} & {{*sys.modules}}));"
    command = "from tap_public_jobs.news import main; main()"

    def ended(code: str, **options: Any) -> tuple[int, str, str]:
        line = [sys.executable, "-c", code, "-"]
        result = subprocess.run(line, capture_output=True, text=True, check=False, **options)
        return result.returncode, result.stdout, result.stderr

    with Path("state.json").open() as file:
        assert ended(code + command, stdin=file) == (1, "\n", "")
    assert ended(f"import sys; sys.stdin = None; {command}") == WORK
