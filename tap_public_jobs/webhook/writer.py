"""Writes to the change log, which blocks, for an application that must not block."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tap_public_jobs.changelog import ChangeLog, ChangeLogError

logger = logging.getLogger(__name__)

T = TypeVar("T")

Refused = Mapping[str, Collection[str]]
"""For each name of a log that is full, the publicIds that were not noted."""

Write = Callable[[], Refused]
"""Writes to some logs."""


class _Failure(NamedTuple):
    names: tuple[str, ...]
    write: Write
    message: str


class Writer:
    """Commits together what arrives while another commit is in progress.

    A commit waits for the disk, so committing notifications one by one would be slow.

    Args:
        log: Where to write.
        patience: Seconds to wait for a commit.
    """

    def __init__(self, log: ChangeLog, patience: float) -> None:
        self._log = log
        self._patience = patience
        # One: the log takes one writer at a time.
        self._thread = ThreadPoolExecutor(1, "change-log")
        self._waiting: dict[str, list[str]] = {}
        self._next: asyncio.Task[Refused] | None = None
        self._check: asyncio.Task[None] | None = None
        self._committing = asyncio.Lock()
        self._failures: dict[str, _Failure] = {}
        self._said: set[str] = set()

    async def append(self, name: str, public_ids: Collection[str]) -> None:
        """Append to a log; returns after the commit.

        Raises:
            ChangeLogError: It may not have been committed.
        """
        self._waiting.setdefault(name, []).extend(public_ids)
        if self._next is None:
            self._next = _task(self._commit())
        again = partial(self._log.append_to, {name: public_ids})
        # Shielded: others wait for the same commit.
        refused = await self._in_time(asyncio.shield(self._next), name, again)
        if not set(public_ids).isdisjoint(refused.get(name, ())):
            raise self._log.full(name)

    async def keep(self, name: str, payload: str) -> None:
        """Keep a payload in a log; returns after the commit.

        Raises:
            ChangeLogError: It may not have been committed.
        """

        def write() -> Refused:
            self._log.keep(payload, name)
            return {}

        # Not shielded: abandoned payloads must not pile up in front of a stuck log.
        await self._in_time(self._run((name,), write), name, write)

    async def check(self, name: str) -> None:
        """Repeat the writes that failed, and make an empty one.

        An empty write alone can succeed where there is no space for a row.

        Args:
            name: Of the log for the empty one.

        Raises:
            ChangeLogError: The log cannot be written.
        """
        if self._check is None or self._check.done():
            self._check = _task(self._repeat(name))
        empty = partial(self._log.append_to, {name: ()})
        await self._in_time(asyncio.shield(self._check), name, empty)

    async def _repeat(self, name: str) -> None:
        while self._failures:
            names, write, _ = next(iter(self._failures.values()))
            full = await self._run(names, write)
            if full:
                raise self._log.full(min(full))
        await self._run((name,), partial(self._log.append_to, {name: ()}))

    async def _commit(self) -> Refused:
        async with self._committing:
            public_ids, self._waiting, self._next = self._waiting, {}, None
            full = await self._run(tuple(public_ids), partial(self._log.append_to, public_ids))
        for name in full:
            again = partial(self._log.append_to, {name: full[name]})
            self._failed(_Failure((name,), again, str(self._log.full(name))))
        return full

    async def _run(self, names: tuple[str, ...], write: Write) -> Refused:
        try:
            full = await asyncio.get_running_loop().run_in_executor(self._thread, write)
        except ChangeLogError as error:
            self._failed(_Failure(names, write, str(error)))
            raise
        failing = bool(self._failures)
        for name in set(names).difference(full):
            self._failures.pop(name, None)
        self._said &= {failure.message for failure in self._failures.values()}
        if failing and not self._failures:
            logger.info("The change log can be written again.")
        return full

    def _failed(self, failure: _Failure) -> None:
        """Note a failure; failures with the same cause are one line in the log."""
        if failure.message not in self._said:
            self._said.add(failure.message)
            logger.error("%s", failure.message)
        self._failures |= dict.fromkeys(failure.names, failure)

    async def _in_time(self, result: Awaitable[T], name: str, write: Write) -> T:
        try:
            return await asyncio.wait_for(result, self._patience)
        except TimeoutError as error:
            msg = "The change log did not respond in time: make sure that its database is up."
            self._failed(_Failure((name,), write, msg))
            raise ChangeLogError(msg) from error


def _task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    # If every waiter has timed out, asyncio would log an error that was never retrieved.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
