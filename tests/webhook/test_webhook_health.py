"""Notifications share commits; one that fails is answered 503, and fails health."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from webhook.served import FAILED, NOTED, TOKEN, get, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook import writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WELL = (200, "OK")
# Seconds that no test takes.
LONG = 60.0


class Slow(ChangeLog):
    """A log whose database does not answer until it is let go.

    Attributes:
        commits: The publicIds of each commit, by the name of their log.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked = threading.Event()
        self.answer = threading.Event()
        self.commits: list[dict[str, list[str | None]]] = []

    def append(self, changes: Mapping[str, Iterable[str | None]]) -> None:
        self.commits.append({name: [*public_ids] for name, public_ids in changes.items()})
        self.asked.set()
        self.answer.wait(LONG)
        super().append(changes)


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(f"sqlite:///{tmp_path / 'changes.db'}")


def test_what_waits_too_long_is_answered_and_not_written(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The sender tries again, so no queue grows while the database hangs.

    Health does not wait for the commit: it answers what the last one has shown.
    """
    with ThreadPoolExecutor() as pool, serving(slow) as url:
        hook = f"{url}/hooks/{TOKEN}"
        first = pool.submit(post, hook)
        assert slow.asked.wait(LONG)
        assert get(f"{url}/health") == WELL
        with monkeypatch.context() as impatient:
            impatient.setattr(writer, "PATIENCE", 0.1)
            answers = [post(hook), post(hook), get(f"{url}/health")]
        slow.answer.set()
        assert (first.result(), get(f"{url}/health")) == (NOTED, WELL)

    assert answers == [FAILED] * 3
    assert slow.read()[1:] == (1, ["designer-paris-1a2b3c"])
    assert {record.getMessage() for record in caplog.records} == {
        "The notification log did not respond in time: make sure that its database is up."
    }


def test_those_that_wait_share_a_commit(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that is full is followed by another; if one fails, it fails for all its senders."""
    monkeypatch.setattr(writer, "MOST_IN_A_COMMIT", 3)
    changes = [("acme", "a"), ("default", "b"), ("acme", "\ud800"), ("acme", "c")]

    async def burst() -> list[bool]:
        shared = writer.Writer(slow)
        first = asyncio.create_task(shared.append({"default": ["first"]}))
        await asyncio.to_thread(slow.asked.wait, LONG)
        others = [asyncio.create_task(shared.append({name: [it]})) for name, it in changes]
        await asyncio.sleep(0)  # lets each of them begin
        slow.answer.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(burst()) == [True, False, False, False, True]
    together = {"acme": ["a", "\ud800"], "default": ["b"]}
    assert slow.commits == [{"default": ["first"]}, together, {"acme": ["c"]}]
    assert slow.read().public_ids == ["first"]


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
        file = (tmp_path / "changes.db").rename(tmp_path / "aside")
        (tmp_path / "changes.db").mkdir()
        assert get(f"{url}/health") == FAILED  # although no notification has come
        (tmp_path / "changes.db").rmdir()
        file.rename(tmp_path / "changes.db")
        assert get(f"{url}/health") == WELL
        caplog.clear()
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
