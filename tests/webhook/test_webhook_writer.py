"""What the writer makes of notifications that come at once."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from tap_public_jobs.changelog import ChangeLog, ChangeLogError, tables
from tap_public_jobs.webhook.writer import Writer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_new_jobs_of_a_full_log_keep_out_no_known_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of invented publicIds shares its commits with what is true."""
    monkeypatch.setattr(tables, "MOST_ROWS", 2)
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append(["a", "b"])

    async def at_once() -> list[BaseException | None]:
        writer = Writer(log, patience=60)
        sent = (["new"], ["a"], ["b", "another"])
        return await asyncio.gather(
            *(writer.append("default", ids) for ids in sent), return_exceptions=True
        )

    refused, noted, partly = asyncio.run(at_once())

    assert isinstance(refused, ChangeLogError)
    assert noted is None
    assert isinstance(partly, ChangeLogError)
    assert log.read(2).public_ids == ["a", "b"]


class Stuck(ChangeLog):
    """A log whose database does not answer until it is let go."""

    def __init__(self) -> None:
        super().__init__("sqlite:///never.db")
        self.asked = threading.Event()
        self.answer = threading.Event()
        self.kept: list[str] = []

    def keep(self, payload: str, name: str | None = None) -> None:
        assert name == "default"
        self.asked.set()
        self.answer.wait()
        self.kept.append(payload)


def test_a_payload_that_was_given_up_is_not_written_later() -> None:
    """While the log is stuck, what waits for it would fill the memory."""
    log = Stuck()

    async def send() -> list[BaseException | None]:
        writer = Writer(log, patience=60)
        first = asyncio.create_task(writer.keep("default", "first"))
        await asyncio.to_thread(log.asked.wait)
        writer._patience = 0.01
        given_up = (writer.keep("default", f"given up {number}") for number in range(5))
        answers = await asyncio.gather(*given_up, return_exceptions=True)
        writer._patience = 60
        log.answer.set()
        await first
        await writer.keep("default", "last")
        return answers

    answers = asyncio.run(send())

    assert [type(answer) for answer in answers] == [ChangeLogError] * 5
    assert log.kept == ["first", "last"]
