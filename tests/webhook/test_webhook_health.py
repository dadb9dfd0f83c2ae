"""Health fails as long as notifications do, and one cause is one line in the log."""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

import pytest
import requests
from webhook.served import TOKEN, serving

from tap_public_jobs.changelog import ChangeLog, database, tables
from tap_public_jobs.webhook.app import make_app
from tap_public_jobs.webhook.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFUSED = (503, "The change log cannot be written")
NOTED = (200, '{"publicIds":1}')
KEPT = (202, '{"publicIds":0}')
WELL = (200, "OK")
OTHER = "y" * 32


class Receiver(NamedTuple):
    url: str

    def health(self) -> tuple[int, str]:
        response = requests.get(f"{self.url}/health", timeout=60)
        return response.status_code, response.text

    def post(self, body: str = '{"publicId": "a"}', token: str = TOKEN) -> tuple[int, str]:
        response = requests.post(f"{self.url}/hooks/{token}", body, timeout=60)
        return response.status_code, response.text


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    folder = tmp_path / "folder"
    folder.mkdir()
    return ChangeLog(f"sqlite:///{folder / 'changes.db'}")


@pytest.fixture
def receiver(log: ChangeLog, caplog: pytest.LogCaptureFixture) -> Iterator[Receiver]:
    caplog.set_level(logging.INFO)
    tokens = Tokens(lambda: f"default {TOKEN}\nother {OTHER}", log.name)
    with serving(make_app(log, tokens)) as (host, port):
        yield Receiver(f"http://{host}:{port}")


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert all(record.exc_info is None for record in caplog.records)
    return [it.getMessage() for it in caplog.records if it.levelno == logging.ERROR]


def test_health_writes_no_row(log: ChangeLog, receiver: Receiver) -> None:
    assert receiver.health() == WELL
    assert (log.counts().rows, log.counts().unrecognised) == (0, 0)


def test_health_fails_without_any_notification(
    log: ChangeLog, receiver: Receiver, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.rmdir()
    assert receiver.health() == REFUSED
    assert receiver.post() == REFUSED
    folder.mkdir()

    assert receiver.health() == WELL
    assert log.read().public_ids == ["a"]


@pytest.mark.parametrize("body", ['{"publicId": "a"}', '{"what": "is this"}'])
def test_health_fails_after_a_failed_write_until_a_write_succeeds(
    log: ChangeLog, receiver: Receiver, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Although an empty write succeeds: the write that failed is tried again."""
    assert receiver.health() == WELL
    table = "public_jobs_log_change" if "publicId" in body else "public_jobs_log_unrecognised"
    no_space = (
        f"CREATE TRIGGER no_space BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with log._transaction(write=True) as transaction:
        transaction.execute(no_space)

    assert [receiver.post(body), receiver.post(body)] == [REFUSED] * 2
    assert [receiver.health(), receiver.health()] == [REFUSED] * 2
    assert len(errors(caplog)) == 1
    with log._transaction(write=True) as transaction:
        transaction.execute("DROP TRIGGER no_space")

    assert receiver.health() == WELL
    assert caplog.messages.count("The change log can be written again.") == 1
    assert log.counts().rows + log.counts().unrecognised == 1
    assert receiver.post(body)[0] in {200, 202}


def test_a_locked_log_is_one_line_and_health_recovers(
    log: ChangeLog,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another writer holds the lock for longer than a sender waits."""
    monkeypatch.setattr(database, "PATIENCE", 60)
    log.append([])
    file = tmp_path / "folder" / "changes.db"
    with serving(make_app(log, TOKEN, patience=0.1)) as (host, port):
        receiver = Receiver(f"http://{host}:{port}")
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answers = [receiver.post(), receiver.post("{}"), receiver.health(), receiver.post()]
        reported = errors(caplog)
        other.execute("ROLLBACK")
        other.close()
        while receiver.health() != WELL:
            pass
        while (well := receiver.post()) == REFUSED:  # a busy disk may take longer, too
            pass

    assert answers == [REFUSED] * 4
    assert well == NOTED
    assert reported == [
        "The change log did not respond in time: make sure that its database is up."
    ]
    assert log.read().public_ids == ["a"]


def test_a_full_log_is_one_line_and_stops_no_other(
    log: ChangeLog,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 1)
    assert receiver.post() == NOTED

    assert [receiver.post('{"publicId": "b"}') for _ in range(3)] == [REFUSED] * 3
    assert receiver.post(token=OTHER) == NOTED
    assert receiver.health() == REFUSED

    [line] = errors(caplog)
    assert line.startswith("The change log default in ")
    assert line.endswith(" is full (1 jobs): run the tap, then public-jobs-webhook prune.")
    assert log.places()["other"].position == 1
    log.forget(1)
    assert receiver.health() == WELL
    assert log.read(1).public_ids == ["b"]
