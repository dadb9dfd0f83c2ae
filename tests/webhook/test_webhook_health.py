"""What cannot be written is answered 503, and health fails as long as it cannot."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from webhook.served import FAILED, NOTED, TOKEN, get, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook import app

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WELL = (200, "OK")
# Seconds that no test takes.
LONG = 60.0


class Slow(ChangeLog):
    """A log whose database does not answer until it is let go."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked = threading.Event()
        self.answer = threading.Event()

    def append(self, changes: Mapping[str, Iterable[str | None]]) -> None:
        self.asked.set()
        self.answer.wait(LONG)
        super().append(changes)


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(f"sqlite:///{tmp_path / 'changes.db'}")


def test_what_waits_too_long_is_answered_and_not_written(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The sender tries again, so no queue grows while the database hangs."""
    with ThreadPoolExecutor() as pool, serving(slow) as url:
        hook = f"{url}/hooks/{TOKEN}"
        first = pool.submit(post, hook)
        assert slow.asked.wait(LONG)
        with monkeypatch.context() as impatient:
            impatient.setattr(app, "PATIENCE", 0.1)
            answers = [post(hook), post(hook), get(f"{url}/health")]
        slow.answer.set()
        assert (first.result(), get(f"{url}/health")) == (NOTED, WELL)

    assert answers == [FAILED] * 3
    assert slow.read()[1:] == (1, ["designer-paris-1a2b3c"])
    assert {record.getMessage() for record in caplog.records} == {
        "The change log did not respond in time: make sure that its database is up."
    }


def test_health_fails_after_a_failed_write_until_a_write_succeeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Although an empty write succeeds: the write that failed is tried again."""
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append({log.name: []})
    refuse = (
        "CREATE TRIGGER no_space BEFORE INSERT ON public_jobs_change "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with serving(log) as url:
        assert get(f"{url}/health") == WELL
        with log._transaction() as connection:
            connection.exec_driver_sql(refuse)
        answers = [post(f"{url}/hooks/{TOKEN}"), get(f"{url}/health"), get(f"{url}/health")]
        with log._transaction() as connection:
            connection.exec_driver_sql("DROP TRIGGER no_space")
        assert [get(f"{url}/health") for _ in range(2)] == [WELL] * 2
        assert log.read()[1:] == (1, ["designer-paris-1a2b3c"])  # once
        assert post(f"{url}/hooks/{TOKEN}") == NOTED

    assert answers == [FAILED] * 3
    assert all("changes.db cannot be used (no). Make sure" in it for it in caplog.messages)
    assert {(it.levelno, it.exc_info) for it in caplog.records} == {(logging.ERROR, None)}


def test_health_makes_no_log(tmp_path: Path) -> None:
    """A tap with a mistyped name would find it, and believe that nothing changes."""
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append({"acme": []})
    with serving(log, f"acme {TOKEN}") as url:
        assert get(f"{url}/health") == WELL

    assert [*log.positions()] == ["acme"]
