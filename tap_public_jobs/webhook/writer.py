"""Writes to the change log, which blocks, for an application that must not block."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tap_public_jobs.changelog import PATIENCE, ChangeLog
from tap_public_jobs.errors import ChangeLogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

logger = logging.getLogger(__name__)


class Writer:
    """Commits together what arrives while another commit is in progress.

    A commit waits for the disk, so committing notifications one by one would be slow.

    Args:
        log: Where to write.

    Attributes:
        failed: What the last commit could not note; empty after one that succeeded.
    """

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        self._waiting: dict[str, dict[str | None, None]] = {}
        self.failed: dict[str, dict[str | None, None]] = {}
        self._next: asyncio.Task[bool] | None = None
        self._committing = asyncio.Lock()

    async def append(self, changes: Mapping[str, Iterable[str | None]]) -> bool:
        """Note changes, as `ChangeLog.append_to` does.

        Returns:
            True after the commit; False if it failed, for a reason that is in the receiver's log.
        """
        for name, public_ids in changes.items():
            self._waiting.setdefault(name, {}).update(dict.fromkeys(public_ids))
        if self._next is None:
            self._next = asyncio.create_task(self._commit())
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(self._next)  # others wait for the same commit
        except TimeoutError:
            logger.error(  # noqa: TRY400  # one line
                "The change log did not respond in time: make sure that its database is up."
            )
            return False

    async def _commit(self) -> bool:
        async with self._committing:
            changes, self._waiting, self._next = self._waiting, {}, None
            try:
                await asyncio.to_thread(self._log.append_to, changes)
            except ChangeLogError as error:
                logger.error("%s", error)  # noqa: TRY400  # one line
                self.failed = changes
                return False
            self.failed = {}
            return True
