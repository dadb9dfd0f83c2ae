"""Whether the log has news for a state: the decision, and the command that a scheduler calls."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from webhook.command import JOBS, run, state

from tap_public_jobs.changelog import ChangeLog, Place
from tap_public_jobs.webhook.news import Bookmark, bookmark_of, has_news

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("bookmark", "place", "news"),
    [
        (Bookmark("log", 5, is_pending=False), Place("log", 5, 0), False),
        (Bookmark("log", 5, is_pending=False), Place("log", 5, 5), False),
        (Bookmark("log", 0, is_pending=False), Place("log", 0, 0), False),
        (Bookmark("log", 5, is_pending=False), Place("log", 6, 0), True),
        (Bookmark("log", 5, is_pending=False), Place("log", 6, 6), True),
        (Bookmark("log", 5, is_pending=False), Place("log", 4, 0), True),
        (Bookmark("log", 5, is_pending=False), Place("log", 5, 6), True),
        (Bookmark("log", 5, is_pending=False), Place("other", 5, 0), True),
        (Bookmark("log", 5, is_pending=True), Place("log", 5, 0), True),
        (None, Place("log", 0, 0), True),
    ],
)
def test_the_decision(bookmark: Bookmark | None, place: Place, *, news: bool) -> None:
    assert has_news(bookmark, place) is news


@pytest.mark.parametrize(
    ("text", "bookmark"),
    [
        (json.dumps(state(["log", 5])), Bookmark("log", 5, is_pending=False)),
        (json.dumps({"singer_state": state(["log", 5])}), Bookmark("log", 5, is_pending=False)),
        (json.dumps(state(["log", 5], jobs=[])), Bookmark("log", 5, is_pending=False)),
        (json.dumps(state(["log", 5], run=[1, {}])), Bookmark("log", 5, is_pending=True)),
        (json.dumps(state(["log", 5], listedAt=None)), Bookmark("log", 5, is_pending=True)),
        (
            json.dumps(state(["log", 5], jobs=[*JOBS, ["3", "c", 1, 0, "", 0]])),
            Bookmark("log", 5, is_pending=True),
        ),
        (json.dumps(state(["log", 5], jobs=[["3", "c"]])), None),
        (json.dumps(state(["log", 5], jobs=None)), None),
        (json.dumps(state(["log", 5], format=1)), None),
        (json.dumps(state(None)), None),
        (json.dumps(state(["log", None])), None),
        (json.dumps(state(["log", True])), None),
        (json.dumps(state(["log", -1])), None),
        (json.dumps(state([5, 5])), None),
        ('{"bookmarks": {"jobs": {}}}', None),
        ('{"singer_state": null}', None),
        ("{}", None),
        ("[]", None),
        ("null", None),
        ("", None),
        ("nonsense", None),
        ("[" * 100_000, None),
    ],
)
def test_the_bookmark_of_a_state(text: str, bookmark: Bookmark | None) -> None:
    assert bookmark_of(text) == bookmark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two logs, each with a state that has read all of it."""
    for name in ("default", "acme"):
        log = ChangeLog(f"sqlite:///changes.db?name={name}")
        log.append(["a"])
        (tmp_path / f"{name}.json").write_text(json.dumps(state([log.read().log, 1])))
    return tmp_path


def test_without_news_it_ends_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "news", "--state", str(folder / "default.json")) == (1, "", "")


def test_with_news_it_ends_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ChangeLog("sqlite:///changes.db").append(["b"])

    assert run(capsys, "news", "--state", str(folder / "default.json")) == (0, "", "")


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"{}"])
def test_a_state_that_cannot_be_read_is_news(
    folder: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    if content is not None:
        (folder / "other.json").write_bytes(content)

    assert run(capsys, "news", "--state", "other.json") == (0, "", "")


def test_the_names_with_news_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    states = ["--state", "default=default.json", "--state", f"acme={folder / 'acme.json'}"]

    assert run(capsys, "news", *states) == (1, "", "")
    ChangeLog("sqlite:///changes.db?name=acme").append(["b"])
    assert run(capsys, "news", *states) == (0, "acme\n", "")
    assert (
        run(capsys, "news", "--changes-url", "sqlite:///changes.db?name=acme", *states[:2])[0] == 1
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing option '--state'"),
        (("--state", "x", "--no"), "No such option"),
        (("--state", "x=x"), "There is no change log with the name x"),
        (("--state", "x", "--changes-url", "sqlite:///no.db"), "There is no change log in no.db"),
        (("--state", "x", "--changes-url", "no"), "changes_url must be"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_error_is_not_taken_for_the_absence_of_news(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    status, out, err = run(capsys, "news", *arguments)

    assert (status, out) == (2, "")
    assert err.startswith(f"Error: {words}")
    assert err.count("\n") == 1


def test_a_state_from_a_closed_stdin_is_news(folder: Path) -> None:
    """As a scheduler may start it."""
    code = "from tap_public_jobs.webhook.cli import main; main(['news', '--state', 'acme=-'])"
    command = ["sh", "-c", '"$0" -c "$1" <&-', sys.executable, code]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout, result.stderr) == (0, "acme\n", "")


def test_what_goes_wrong_unforeseen_is_not_taken_for_the_absence_of_news(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: ChangeLog) -> None:
        raise MemoryError

    monkeypatch.setattr(ChangeLog, "places", fail)

    status, out, err = run(capsys, "news", "--state", str(folder / "default.json"))

    assert (status, out) == (2, "")
    assert err.endswith("\nMemoryError\n")


def test_it_imports_nothing_that_takes_long(folder: Path) -> None:
    code = """
import sys
from tap_public_jobs.webhook.cli import main
try:
    main(["news", "--state", "default.json"])
except SystemExit as error:
    assert error.code == 1
slow = {"singer_sdk", "requests", "sqlalchemy", "psycopg", "starlette", "uvicorn", "asyncio"}
sys.exit(" ".join(slow & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )

    assert result.stderr.strip() == ""
