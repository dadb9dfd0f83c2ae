"""Writes to the change log, which blocks, for an application that must not."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tap_public_jobs.changelog import ChangeLog, ChangeLogError

T = TypeVar("T")


class Writer:
    """Commits together what comes while another commit is in progress.

    A commit waits for the disk, so that notifications one by one would be slow.

    Args:
        log: Where to write.
        patience: Seconds to wait for a commit.
    """

    def __init__(self, log: ChangeLog, patience: float) -> None:
        self._log = log
        self._patience = patience
        # One: the log takes one writer at a time.
        self._thread = ThreadPoolExecutor(1, "change-log")
        self._waiting: list[str] = []
        self._next: asyncio.Task[None] | None = None
        self._committing = asyncio.Lock()

    async def append(self, public_ids: Iterable[str]) -> None:
        """Append to the log; returns after the commit.

        Raises:
            ChangeLogError: It may not have been committed.
        """
        self._waiting += public_ids
        if self._next is None:
            self._next = asyncio.create_task(self._commit())
            # Whoever waited may have lost patience; asyncio would log what nobody heard.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        await self._in_time(asyncio.shield(self._next))  # it is the commit of others too

    async def keep(self, payload: str) -> None:
        """Keep a payload in the log; returns after the commit.

        Raises:
            ChangeLogError: It may not have been committed.
        """
        await self._in_time(self._run(self._log.keep, payload))

    async def _commit(self) -> None:
        async with self._committing:
            public_ids, self._waiting, self._next = self._waiting, [], None
            await self._run(self._log.append, public_ids)

    async def _run(self, write: Callable[[T], None], value: T) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, write, value)

    async def _in_time(self, commit: Awaitable[None]) -> None:
        try:
            await asyncio.wait_for(commit, self._patience)
        except TimeoutError as error:
            msg = "The change log did not answer in time: see whether its database is well."
            raise ChangeLogError(msg) from error
