"""Serves the receiver with uvicorn."""

import asyncio
import socket
from types import FrameType

import h11
import uvicorn
from starlette.applications import Starlette
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

KEEP_ALIVE = 75
"""Seconds that an idle connection is kept open, longer than common proxies do."""

MOST_CONNECTIONS = 256
"""With more, requests are answered 503."""


def listen(host: str, port: int) -> socket.socket:
    """Bind a port, or any free one for 0.

    Raises:
        OSError: It is taken, or the host is not of this computer.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # asyncio turns Nagle's algorithm off only if the socket names its protocol.
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


class Protocol(H11Protocol):
    """Cuts a connection whose headers do not come; uvicorn would wait for ever."""

    patience: float = 10
    """Seconds."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.access_log = False  # it would show the token
        self._deadline = self.loop.call_later(self.patience, transport.abort)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._deadline.cancel()
        elif self._deadline.cancelled():
            self._deadline = self.loop.call_later(self.patience, self.transport.abort)


class Server(uvicorn.Server):
    """Ends with status 0 after SIGTERM or SIGINT, as soon as the requests in progress have."""

    def __init__(self, app: Starlette) -> None:
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=25,  # longer than any request takes
            limit_concurrency=MOST_CONNECTIONS,
        )
        super().__init__(config)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again after the shutdown.
        self.should_exit = True
