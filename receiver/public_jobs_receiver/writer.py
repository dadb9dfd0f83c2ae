"""Writes notifications to the notification log: those that wait share one commit."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from tap_public_jobs.notification_log import PATIENCE, NotificationLog, NotificationLogError

# The publicIds of changed jobs, by the name of their log, as `NotificationLog.append` takes them.
Notified = Mapping[str, Sequence[str | None]]

logger = logging.getLogger(__name__)

TOO_LATE = "The notification log did not respond in time: make sure that its database is up."


class Writer:
    """Appends to the notification log for many senders at once.

    A commit waits for the disk, so if each notification had its own, a burst would be refused.

    Args:
        log: Where changes are noted.
    """

    def __init__(self, log: NotificationLog) -> None:
        self._log = log
        # The changes that wait for a commit, by the future that their sender waits for.
        self._waiting: dict[asyncio.Future[bool], Notified] = {}
        # The task that commits until nothing waits any more.
        self._committing: asyncio.Task[None] | None = None
        # What the last commit could not note; None after one that succeeded.
        self._failed: Notified | None = None

    async def append(self, changes: Notified) -> bool:
        """Note changes as `NotificationLog.append` does, and return whether they are committed."""
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

        That one tries again what the last one could not note, because on a full disk an empty
        commit succeeds.
        """
        if self._committing is None:
            return await self.append(self._failed or {})
        return self._failed is None

    async def _commit_all(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            changes = defaultdict[str, list[str | None]](list)
            for notified in waiting.values():
                for name, public_ids in notified.items():
                    changes[name] += public_ids
            failed: Notified | None = None
            try:
                await asyncio.to_thread(self._log.append, changes)
            except Exception as error:  # whatever it is, every sender is answered
                unforeseen = None if isinstance(error, NotificationLogError) else error
                logger.error("%s", error, exc_info=unforeseen)  # noqa: TRY400
                failed = changes
            self._failed = failed
            for committed in waiting:
                if not committed.done():  # else its sender no longer waits
                    committed.set_result(failed is None)
        self._committing = None
