"""Writes notifications to the change log: those that wait share one commit."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from tap_public_jobs.changelog import PATIENCE, ChangeLog
from tap_public_jobs.errors import ChangeLogError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

logger = logging.getLogger(__name__)

# publicIds after which a commit takes no further notification, so that it ends within `PATIENCE`.
MOST_IN_A_COMMIT = 10_000

TOO_LATE = "The change log did not respond in time: make sure that its database is up."


class Writer:
    """Appends to the change log for many senders at once.

    A commit waits for the disk, so with one for each notification a burst would have to be refused.

    Args:
        log: Where changes are noted.
    """

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        # The changes that wait for a commit, by the future that their sender waits for.
        self._waiting: dict[asyncio.Future[bool], Mapping[str, Sequence[str | None]]] = {}
        # Commits until nothing waits any more.
        self._committing: asyncio.Task[None] | None = None
        # What the last commit could not note; None after one that succeeded.
        self._failed: Mapping[str, Sequence[str | None]] | None = None

    async def append(self, changes: Mapping[str, Sequence[str | None]]) -> bool:
        """Note changes as `ChangeLog.append` does, and return whether they are committed."""
        committed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[committed] = changes
        self._committing = self._committing or asyncio.create_task(self._commit_all())
        try:
            async with asyncio.timeout(PATIENCE):
                return await committed
        except TimeoutError:
            logger.error(TOO_LATE)  # noqa: TRY400  # one line
            self._waiting.pop(committed, None)
            self._failed = changes
            return False

    async def works(self) -> bool:
        """Return whether the last commit succeeded; if none is under way, after another one.

        It tries again what the last one could not note: on a full disk, a commit of nothing
        succeeds.
        """
        if self._committing is None:
            return await self.append(self._failed or {})
        return self._failed is None

    async def _commit_all(self) -> None:
        while self._waiting:
            senders, changes = self._take()
            try:
                await asyncio.to_thread(self._log.append, changes)
                self._failed = None
            except ChangeLogError as error:
                logger.error("%s", error)  # noqa: TRY400  # one line
                self._failed = changes
            except Exception:  # else no sender would ever be answered
                logger.exception("The change log cannot be written")
                self._failed = changes
            for committed in senders:
                if not committed.done():  # else its sender no longer waits
                    committed.set_result(self._failed is None)
        self._committing = None

    def _take(self) -> tuple[list[asyncio.Future[bool]], dict[str, list[str | None]]]:
        """Take what the next commit notes, and the futures of those who wait for it."""
        senders: list[asyncio.Future[bool]] = []
        changes: dict[str, list[str | None]] = defaultdict(list)
        size = 0
        for committed, theirs in [*self._waiting.items()]:
            if size >= MOST_IN_A_COMMIT:
                break
            del self._waiting[committed]
            senders.append(committed)
            for name, public_ids in theirs.items():
                changes[name] += public_ids
                size += len(public_ids)
        return senders, changes
