"""A server of raw bytes, for what no HTTP server would do."""

import contextlib
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from typing_extensions import override

from tap_public_jobs.api.client import API_PATH

Answer = Callable[[socket.socket, str], object]


class RawServer(socketserver.TCPServer):
    """Answers each request with what a function writes to the connection.

    Args:
        answer: Called with the connection and the head of a request. The connection is kept open
            until it closes it, or the client does.
        tls: Makes it a server for https.
        port: Where it listens; 0 picks a free one.

    Attributes:
        url: Its base_url.
        heads: The heads of the requests so far, first to last.
        connections: How many connections were opened.
    """

    allow_reuse_address = True
    request_queue_size = 100

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), socketserver.BaseRequestHandler)
        self.heads: list[str] = []
        self.connections = 0
        self._answer = answer
        self._tls = tls
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.url = f"http{'s' * bool(tls)}://127.0.0.1:{self.server_address[1]}"

    @property
    def targets(self) -> list[str]:
        """Path and query of each request."""
        return [head.split(" ")[1].removeprefix(API_PATH) for head in self.heads]

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        self._open.append(request)
        thread = threading.Thread(target=self.serve, args=(request, self._tls), daemon=True)
        self._threads.append(thread)
        thread.start()

    def serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Answer on a connection, from its start, until it is closed."""
        with contextlib.suppress(OSError), connection:
            if tls:
                connection = tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            with connection, connection.makefile("rb") as file:
                while head := "".join(_head_lines(file)):
                    self.heads.append(head)
                    self._answer(connection, head)

    @override
    def shutdown(self) -> None:
        super().shutdown()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


def _head_lines(file: BinaryIO) -> Iterator[str]:
    while (line := file.readline()).strip():
        yield line.decode("latin-1")


@contextlib.contextmanager
def raw_server(
    answer: Answer, tls: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[RawServer]:
    """Run a server from a thread."""
    with RawServer(answer, tls, port) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """A port that refuses connections, unless the test listens on it; nobody else gets it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        yield port


def response(body: bytes | dict[str, Any], status: str = "200 OK", *headers: str) -> bytes:
    """Write a response with a body of known length."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


def answering(*answers: bytes) -> Answer:
    """Answer with each of these in turn, and then always with the last."""
    left = list(answers)

    def answer(connection: socket.socket, _: str) -> None:
        connection.sendall(left.pop(0) if len(left) > 1 else left[0])

    return answer


# A list without jobs.
PAGE = response({"data": [], "total": 0})
