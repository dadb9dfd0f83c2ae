"""Connections that end a response which takes too long in total, however steadily it arrives.

The timeout of a socket is for each read alone. Here all reads of a response have one deadline, from
the interim responses before its head to the end of its body.
"""

import io
import socket
from http.client import HTTPResponse
from time import monotonic
from typing import Any

from requests.adapters import HTTPAdapter
from typing_extensions import Buffer, override
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import ConnectionPool

# A response may take this many times the read timeout.
DEADLINE = 10

# Bytes read at once.
CHUNK = 64 * 1024


class _Reader(io.RawIOBase):
    """Reads from a socket until the deadline.

    Args:
        raw: The reader of the socket.
        seconds: From now to the deadline.
    """

    def __init__(self, raw: io.RawIOBase, seconds: float) -> None:
        super().__init__()
        self._raw, self._ends_at = raw, monotonic() + seconds

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Buffer) -> int | None:
        if monotonic() > self._ends_at:
            msg = "the response took too long in total"
            raise TimeoutError(msg)
        return self._raw.readinto(buffer)

    @override
    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    @override
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        seconds = DEADLINE * (sock.gettimeout() or 0.0)
        self.fp = io.BufferedReader(_Reader(self.fp.detach(), seconds), CHUNK)


class _HTTPConnection(HTTPConnection):
    response_class = _Response


class _HTTPSConnection(HTTPSConnection):
    response_class = _Response


_CLASSES: dict[Any, Any] = {HTTPConnection: _HTTPConnection, HTTPSConnection: _HTTPSConnection}


class DeadlineAdapter(HTTPAdapter):
    """Sends requests over such connections."""

    @override
    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> ConnectionPool:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        # The pool of a SOCKS proxy keeps its own.
        pool.ConnectionCls = _CLASSES.get(pool.ConnectionCls, pool.ConnectionCls)
        return pool  # type: ignore[no-any-return]
