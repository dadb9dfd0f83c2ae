"""Serves the receiver with uvicorn."""

from __future__ import annotations

import asyncio
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from tap_public_jobs.webhook.connections import STRANGERS, Connections

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from starlette.types import ASGIApp

KEEP_ALIVE = 75
"""Seconds that an idle connection of a sender is kept open, longer than common proxies do."""

BACKLOG = 1024
"""Connections that wait in the kernel to be accepted."""

ACCEPTED_AT_ONCE = STRANGERS // 4
"""asyncio accepts this many before it reads what has arrived, and three times as many before it
answers. That must be fewer than `STRANGERS`: otherwise a sender is cut with its request unread.
"""


def listen(host: str, port: int) -> socket.socket:
    """Bind a port, or any free one for 0.

    Raises:
        OSError: The port is taken, or the host is not this computer.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # asyncio turns Nagle's algorithm off only if the socket names its protocol.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


class Protocol(H11Protocol):
    """A connection that is cut if its headers do not arrive, or if a new one replaces it.

    Args:
        connections: All open connections.
        arguments: uvicorn's.
    """

    patience: float = 5
    """Seconds for the headers of a request; uvicorn would wait forever."""

    def __init__(self, *, connections: Connections, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self._others = connections
        self.access_log = False  # it would show the token
        # The application calls this as soon as it has seen a valid token.
        self.app_state = {**self.app_state, "trust": partial(connections.trust, self)}

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def cut(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._others.add(self)
        self._deadline = self.loop.call_later(self.patience, self.cut)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self._others.remove(self)
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._deadline.cancel()
        elif self._deadline.cancelled():
            self._deadline = self.loop.call_later(self.patience, self.cut)


class Server(uvicorn.Server):
    """Ends with status 0 after SIGTERM or SIGINT, once the requests in progress have ended.

    Args:
        app: What is served.
        reload: Called after SIGHUP, in a thread.
    """

    def __init__(self, app: ASGIApp, reload: Callable[[], None] | None = None) -> None:
        self._reload = reload
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=partial(Protocol, connections=Connections()),  # type: ignore[arg-type]  # a class
            ws="none",
            lifespan="off",
            log_config=None,
            server_header=False,
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=25,  # longer than any request takes
        )
        super().__init__(config)

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # asyncio has set it to the number that it accepts at once
        if self._reload:
            loop = asyncio.get_running_loop()
            run = partial(loop.run_in_executor, None, self._reload)
            loop.add_signal_handler(signal.SIGHUP, run)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again after the shutdown.
        self.should_exit = True
