"""Notifications that come at once share a commit, and health fails as long as they do."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest
from webhook.served import FAILED, NOTED, TOKEN, get, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook import writer as writer_module
from tap_public_jobs.webhook.writer import Writer

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
        self.commits: list[dict[str, list[str | None]]] = []
        self.asked = threading.Event()
        self.answer = threading.Event()

    def append_to(self, changes: Mapping[str, Iterable[str | None]]) -> None:
        self.asked.set()
        self.answer.wait(LONG)
        super().append_to(changes)
        self.commits.append({name: [*ids] for name, ids in changes.items()})


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(f"sqlite:///{tmp_path / 'changes.db'}")


def test_what_comes_during_a_commit_shares_the_next(slow: Slow) -> None:
    """One commit for each notification would be slow."""

    async def send() -> list[bool]:
        writer = Writer(slow)
        first = asyncio.create_task(writer.append({"acme": ["a"]}))
        assert await asyncio.to_thread(slow.asked.wait, LONG)
        others = [
            asyncio.create_task(writer.append({name: [it]}))
            for name, it in [("acme", "b"), ("other", "c"), ("acme", None), ("acme", "b")]
        ]
        await asyncio.sleep(0)
        slow.answer.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(send()) == [True] * 5
    assert slow.commits == [{"acme": ["a"]}, {"acme": ["b", None], "other": ["c"]}]


def test_a_log_that_does_not_answer_is_not_waited_for(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(slow) as url:
        with monkeypatch.context() as impatient:
            impatient.setattr(writer_module, "PATIENCE", 0.1)
            answers = [post(f"{url}/hooks/{TOKEN}"), get(f"{url}/health")]
        slow.answer.set()
        assert get(f"{url}/health") == WELL

    assert answers == [FAILED] * 2
    assert slow.read().public_ids == ["designer-paris-1a2b3c"]
    assert {record.getMessage() for record in caplog.records} == {
        "The change log did not respond in time: make sure that its database is up."
    }


def test_health_fails_after_a_failed_write_until_a_write_succeeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Although an empty write succeeds: the write that failed is tried again."""
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append([])
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
    assert {it.levelno for it in caplog.records} == {logging.ERROR}
    assert all(it.exc_info is None for it in caplog.records)


def test_health_makes_no_log(tmp_path: Path) -> None:
    """A tap with a mistyped name would find it, and believe that nothing changes."""
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append_to({"acme": []})
    with serving(log, f"acme {TOKEN}") as url:
        assert get(f"{url}/health") == WELL

    assert [*log.positions()] == ["acme"]
