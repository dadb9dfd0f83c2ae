"""Limits the open connections.

A connection belongs to a stranger until it has sent a valid token. A new stranger replaces the
oldest one, and never a sender: however many connections stay open without a token, the next sender
is served.
"""

from __future__ import annotations

from typing import Protocol

STRANGERS = 128
"""Connections without a valid token. A new one has to send its token before this many others
connect."""

SENDERS = 128
"""Connections with a valid token."""


class Connection(Protocol):
    """A connection that can be cut."""

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""

    def cut(self) -> None:
        """Close it at once."""


class Connections:
    """The open connections.

    Args:
        strangers: How many may have sent no valid token.
        senders: How many others there may be.
    """

    def __init__(self, strangers: int = STRANGERS, senders: int = SENDERS) -> None:
        self._most_strangers = strangers
        self._most_senders = senders
        # Dicts keep their order: the oldest, or the one that was used least recently, is first.
        self._strangers: dict[Connection, None] = {}
        self._senders: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        """Add a new connection, and cut the oldest stranger if there are too many."""
        if len(self._strangers) >= self._most_strangers:
            self._cut(next(iter(self._strangers)))
        self._strangers[connection] = None

    def trust(self, connection: Connection) -> bool:
        """Note that a connection has sent a valid token.

        Returns:
            False if it was cut before, or if there are too many senders with requests in
            progress.
        """
        if connection in self._senders:
            del self._senders[connection]  # and added again, as the last used
        elif connection not in self._strangers:
            return False
        elif len(self._senders) >= self._most_senders:
            idle = next((sender for sender in self._senders if sender.idle), None)
            if idle is None:
                return False
            self._cut(idle)
        self._strangers.pop(connection, None)
        self._senders[connection] = None
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        self._strangers.pop(connection, None)
        self._senders.pop(connection, None)

    def _cut(self, connection: Connection) -> None:
        self.remove(connection)
        connection.cut()
