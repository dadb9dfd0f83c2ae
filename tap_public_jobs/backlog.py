"""What webhooks have named and no run has fetched yet, and how far their log has been read.

Pure: knows the log by what was read of it, and the state as a JSON value that somebody else keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tap_public_jobs.listing import is_usable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tap_public_jobs.changelog import Changes

Json = Any


class Backlog:
    """The publicIds that were notified and whose details have not been written since.

    Args:
        log: Identity of the change log; empty if none was ever read.
        position: Of the last row that was read.
        pending: The publicIds, in the order of their notification.

    Attributes:
        unbroken: Whether it has everything that was notified since an earlier run, so that a job
            that is not in it has not changed.
    """

    def __init__(self, log: str = "", position: int = 0, pending: Iterable[str] = ()) -> None:
        self.log = log
        self.position = position
        self.pending = dict.fromkeys(pending)
        self.unbroken = False

    @classmethod
    def read(cls, state: Json) -> Self:
        """Read what `write` has written; anything else is as good as nothing."""
        match state:
            case {"log": str(log), "position": int(position), "pending": [*pending]} if (
                0 <= position < 1 << 63
            ):
                return cls(log, position, filter(is_usable, pending))
        return cls()

    def write(self) -> dict[str, Json]:
        """Return the state as JSON."""
        return {"log": self.log, "position": self.position, "pending": list(self.pending)}

    def catch_up(self, read: Callable[[int], Changes]) -> None:
        """Take in what was notified since the last run.

        Args:
            read: Answers what the log has past a position.
        """
        changes = read(self.position)
        same = changes.log == self.log and changes.position >= self.position
        self.unbroken = same and changes.forgotten <= self.position
        if not same:
            changes = read(0)  # another log, whose positions are its own
        self.log, self.position = changes.log, changes.position
        self.pending |= dict.fromkeys(changes.public_ids)

    def keep(self, published: Collection[str]) -> None:
        """Note that of no other jobs than these anything is to be fetched."""
        self.pending = dict.fromkeys(name for name in self.pending if name in published)

    def postpone(self, public_id: str) -> None:
        """Put a job behind all others, which it must not keep from being fetched."""
        if public_id in self.pending:
            self.pending[public_id] = self.pending.pop(public_id)

    def done(self, public_id: str) -> None:
        """Note that nothing is to be fetched of a job any more."""
        self.pending.pop(public_id, None)
