"""A server of raw bytes, for what no HTTP server would do, and the client as the tap builds it."""

import contextlib
import json
import os
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tap_public_jobs.api.client import API_PATH, PublicJobsClient
from tap_public_jobs.limit import transport
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.limit.transport import Session
from tap_public_jobs.sync.source import JobRef

# Bytes, or a function of the connection and the head of a request.
Answer = bytes | Callable[[socket.socket, str], object]
Connect = Callable[..., PublicJobsClient]


class RawServer(socketserver.ThreadingTCPServer):
    """Answers each request with the next answer, and then always with the last.

    Args:
        answers: Each is sent, or called to send.
        by: `http`, `https`, or `proxy`, for https behind a proxy.
        tls: Of https.

    Attributes:
        url: Its base_url.
        heads: The heads of the requests so far, first to last.
        connections: How many connections were opened.
    """

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, answers: tuple[Answer, ...], by: str, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.url = f"{by.replace('proxy', 'http')}://127.0.0.1:{self.server_address[1]}"
        self.heads: list[str] = []
        self.connections = 0
        self._answers, self._by, self._tls = [*answers], by, tls

    @property
    def targets(self) -> list[str]:
        """Path and query of each request."""
        return [head.split(" ")[1].removeprefix(API_PATH) for head in self.heads]

    @override
    def finish_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        with contextlib.suppress(OSError):
            self._serve(request, None if self._by == "proxy" else self._tls)

    def _serve(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Answer on a connection, from its start, until the client closes it."""
        if tls:
            connection = tls.wrap_socket(connection, server_side=True)
        with connection, connection.makefile("rb") as file:
            while head := b"".join(takewhile(lambda it: it != b"\r\n", file)).decode("latin-1"):
                self.heads.append(head)
                if head.startswith("CONNECT"):
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    self._serve(connection, self._tls)
                    return
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                if isinstance(answer, bytes):
                    connection.sendall(answer)
                else:
                    answer(connection, head)


Answered = Callable[..., tuple[PublicJobsClient, RawServer]]


def response(body: bytes | dict[str, Any], status: str = "200 OK", *headers: str) -> bytes:
    """Write a response with a body of known length."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


# A list without jobs, and the detail of one.
PAGE = response({"data": [], "total": 0})
JOB = JobRef("id-1", "job-1")
DETAIL = response({"id": "id-1", "publicId": "job-1"})


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """A port that refuses connections, unless the test listens on it; nobody else gets it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        yield port


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no certificates of the computer that runs the tests."""
    for name in [*os.environ]:
        if name.lower().endswith(("_proxy", "_ca_bundle")):
            monkeypatch.delenv(name)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Makes a client of the API at a base_url, with a budget that no test exhausts.

    It tries again at once.
    """
    monkeypatch.setattr(transport, "FIRST_WAIT", 0.0)
    with contextlib.ExitStack() as sessions:

        def connect(base_url: str, key: str = "a-key", **options: Any) -> PublicJobsClient:
            headers = {"Authorization": f"Bearer {key}"}
            throttle = options.pop("throttle", Throttle(100_000, 60.0))
            session = Session(
                throttle=throttle,
                connections=16,
                headers=headers,
                base_url=base_url,
                timeout=options.pop("timeout", 10.0),
            )
            session.key_has_worked = options.pop("key_has_worked", False)
            sessions.enter_context(session)
            return PublicJobsClient(session, base_url, page_size=options.pop("page_size", 10))

        yield connect


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """TLS with a certificate of 127.0.0.1 that the client trusts, and no computer else."""
    file = str(tmp_path / "key and certificate.pem")
    options = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
        " -addext subjectAltName=IP:127.0.0.1"
        " -addext keyUsage=critical,digitalSignature,keyCertSign"
    )
    command = ["openssl", *options.split(), "-keyout", file, "-out", file]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.fixture
def answered(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Answered]:
    """Makes a client and the server that answers it, over http, https, or https by a proxy."""
    with contextlib.ExitStack() as servers:

        def serve(
            *answers: Answer, by: str = "http", **options: Any
        ) -> tuple[PublicJobsClient, RawServer]:
            tls = None if by == "http" else request.getfixturevalue("tls")
            server = servers.enter_context(RawServer(answers, by, tls))
            threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
            servers.callback(server.shutdown)
            if by != "proxy":
                return connect(server.url, **options), server
            monkeypatch.setenv("HTTPS_PROXY", server.url)
            return connect("https://127.0.0.1:1", **options), server

        yield serve
