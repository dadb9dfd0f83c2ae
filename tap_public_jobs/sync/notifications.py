"""What a notification log says.

It is a module of its own, so that a run that reads no log does not load SQLAlchemy.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

# Positions that a log keeps.
KEPT = 100_000


class Notifications(NamedTuple):
    """How far a log has got, and what was notified since a position.

    Attributes:
        log_id: Identity of the log. Positions in another log are unrelated.
        position: Rises with every notification; smaller than requested if an earlier copy of the
            log was restored.
        public_ids: Distinct, in the order of their last notification. A notification that names no
            job only raises `position`.
    """

    log_id: str
    position: int
    public_ids: Sequence[str] = ()

    @property
    def forgotten(self) -> int:
        """The last position that the log has dropped; a reader that was behind it missed some."""
        return max(0, self.position - KEPT)


class Log(Protocol):
    """A log of notifications that outlives a run."""

    def read(self, after: int = 0) -> Notifications:
        """Return what was notified past a position."""
