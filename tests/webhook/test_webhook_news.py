"""Whether a run has work to do: the decision, and the command that a scheduler calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from webhook.command import COMMAND, ended, run

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.sync.state import Cycle, Job, LastRead, SyncState
from tap_public_jobs.sync.stored import dump
from tap_public_jobs.webhook.cli import read_state

STATE = SyncState(
    run_time=1_700_000_000,
    listed_at=1_700_000_000,
    jobs={"1": Job("a", None, 1, 1_700_000_000, "h1", 2)},
    forms={"job_details": "f"},
    cycle=Cycle(1_700_000_000, "changed", has_ended=True),
    last_read=LastRead("log", 5),
)


def written(state: SyncState) -> dict[str, Any]:
    """The state as the tap writes it."""
    singer_state: dict[str, Any] = {}
    dump(state, singer_state)
    return singer_state


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


@pytest.fixture
def states() -> list[str]:
    """The arguments for two logs, each with a state that has read all of it."""
    arguments = []
    for name in ("default", "acme"):
        log = ChangeLog(f"sqlite:///changes.db?name={name}")
        log.append({log.name: ["a"]})
        read = replace(STATE, last_read=LastRead(log.read().log_id, 1))
        Path(f"{name}.json").write_text(json.dumps(written(read)))
        arguments += ["--state", f"{name}={name}.json"]
    return arguments


def test_the_names_with_news_are_printed(
    states: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "news", *states) == (1, "", "")
    assert run(capsys, "news", "--state", "default.json") == (1, "", "")
    ChangeLog("sqlite:///changes.db?name=acme").append({"acme": [None]})
    assert run(capsys, "news", *states) == (0, "acme\n", "")
    url = "sqlite:///changes.db?name=acme"
    assert run(capsys, "news", "--changes-url", url, "--state", "acme.json") == (0, "", "")
    assert run(capsys, "news", "--changes-url", url, *states[:2]) == (1, "", "")
    # A log that is not there does not hide the news of others.
    status, out, err = run(capsys, "news", *states, "--state", "typo=x")
    assert (status, out) == (0, "acme\n")
    assert err.startswith(
        "Error: There is no notification log with the name typo: add a line `typo <token>`"
    )
    Path("default.json").rename("day=1.json")
    assert run(capsys, "news", "--state", "default=day=1.json") == (1, "", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing option '--state'"),
        (("--state", "x=x"), "There is no notification log with the name x"),
        (
            ("--state", "x", "--changes-url", "sqlite:///no.db"),
            "There is no notification log in no.db",
        ),
    ],
)
@pytest.mark.usefixtures("states")
def test_an_error_is_not_taken_for_the_absence_of_news(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    status, out, err = run(capsys, "news", *arguments)

    assert (status, out) == (2, "")
    assert err.startswith(f"Error: {words}")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("states")
def test_a_state_from_stdin_or_a_closed_one() -> None:
    """As a scheduler may start it."""
    with Path("acme.json").open() as file:
        assert ended("news", "--state", "acme=-", stdin=file) == (1, "", "")
    code = f"import sys; sys.stdin = None; {COMMAND[2]}"
    assert ended("news", "--state", "acme=-", code=code) == (0, "acme\n", "")


@pytest.mark.parametrize(
    ("error", "status", "end"),
    [(MemoryError, 2, "\nMemoryError\n"), (KeyboardInterrupt, 130, "\n")],
)
def test_what_goes_wrong_unforeseen_is_not_taken_for_the_absence_of_news(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    status: int,
    end: str,
) -> None:
    def fail(_: ChangeLog) -> None:
        raise error

    monkeypatch.setattr(ChangeLog, "positions", fail)

    ended_with, out, err = run(capsys, "news", "--state", "default.json")

    assert (ended_with, out) == (status, "")
    assert err.endswith(end)


@pytest.mark.usefixtures("states")
def test_it_imports_nothing_else_that_takes_long() -> None:
    code = f"""
import atexit, sys
slow = ("singer_sdk", "requests", "psycopg", "starlette", "uvicorn", "standardwebhooks")
atexit.register(lambda: print(*{{*slow}} & {{*sys.modules}}))
{COMMAND[2]}"""

    assert ended("news", "--state", "default.json", code=code) == (1, "\n", "")
