"""The session of a run: deadlines, connections, rejections and https, on real sockets."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from api.raw_server import PAGE, RawServer, answering, raw_server, response

from tap_public_jobs.api import client, transport
from tap_public_jobs.api.models import JobRef
from tap_public_jobs.api.throttle import MARGIN, MAX_REJECTIONS, Throttle
from tap_public_jobs.errors import (
    AccessError,
    NotFoundError,
    NotTheApiError,
    RateLimitedError,
    RetriesExhaustedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from api.conftest import Connect

JOB = JobRef("id-1", "job-1")
DETAIL = response({"id": "id-1"})


# How long a response may take.

HEADERS = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "headers": HEADERS + b"X-Padding: x\r\n" * 90,
    "one header": HEADERS + b"X-Padding: " + b"x" * 60_000,
    "interim responses": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
    "interim responses with headers": b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" * 1000,
    "body": HEADERS + b"Content-Length: 1000000\r\n\r\n" + b" " * 60_000,
    "body without a length": HEADERS + b"\r\n" + b" " * 60_000,
    "chunks": HEADERS + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 10_000,
    "the length of a chunk": HEADERS + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 60_000,
    "compressed": HEADERS + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"") * 3000,
}
"""Responses in which no part is late, and which do not end."""


def dripping(server: RawServer, connection: socket.socket, drops: Iterable[int]) -> None:
    """Send a byte at a time until the client has left."""
    for drop in drops:
        connection.sendall(bytes([drop]))
        if server.stopped.wait(0.002):
            return


@contextlib.contextmanager
def drip_server(drops: bytes, tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    def answer(connection: socket.socket, _: str) -> None:
        dripping(server, connection, drops)

    with raw_server(answer, tls) as server:
        yield server


@pytest.mark.parametrize("drops", DRIPS.values(), ids=DRIPS)
def test_a_response_that_drips_ends_at_the_deadline(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, drops: bytes
) -> None:
    """The read timeout alone would wait for each byte anew."""
    monkeypatch.setattr(transport, "DEADLINE", 0.01)
    monkeypatch.setattr(client, "MAX_TRIES", 1)

    with drip_server(drops) as server, pytest.raises(RetriesExhaustedError) as caught:
        connect(server.url, timeout=10).detail(JOB)

    assert "took too long in total" in str(caught.value)
    assert len(server.heads) == 1


@pytest.mark.usefixtures("no_waiting")
def test_a_response_that_dripped_is_asked_for_again_on_another_connection(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "DEADLINE", 0.01)

    def answer(connection: socket.socket, _: str) -> None:
        if len(server.heads) == 1:
            dripping(server, connection, DRIPS["body"])
        else:
            connection.sendall(DETAIL)

    with raw_server(answer) as server:
        long = partial(monkeypatch.setattr, transport, "DEADLINE", 10)
        api = connect(server.url, timeout=10, on_retry=long)
        assert api.detail(JOB).document == {"id": "id-1"}

    assert (len(server.heads), server.connections) == (2, 2)


def test_the_deadline_is_of_each_response_and_not_of_the_connection(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw_server(answering(DETAIL)) as server:
        api = connect(server.url)
        api.detail(JOB)
        real = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: real() + 10_000)
        api.detail(JOB)

    assert (len(server.heads), server.connections) == (2, 1)


# Connections, and what they carry.


def test_requests_share_a_connection(connect: Connect) -> None:
    with raw_server(answering(PAGE, DETAIL)) as server:
        api = connect(server.url)
        api.page(1)
        api.detail(JOB)
        api.detail(JOB)

    assert (len(server.heads), server.connections) == (3, 1)


@pytest.mark.usefixtures("no_waiting")
def test_a_connection_that_the_server_closed_is_opened_again(connect: Connect) -> None:
    """Also if the server did not say that it would."""

    def answer(connection: socket.socket, _: str) -> None:
        connection.sendall(DETAIL)
        connection.shutdown(socket.SHUT_RDWR)

    with raw_server(answer) as server:
        api = connect(server.url)
        details = [api.detail(JOB) for _ in range(3)]

    assert [detail.document for detail in details] == [{"id": "id-1"}] * 3
    assert server.connections == 3


@pytest.mark.parametrize("interim", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_an_interim_response_is_not_the_answer(connect: Connect, interim: str) -> None:
    """Else the answer after it would be taken for that of the next request."""
    before = f"HTTP/1.1 {interim}\r\nLink: </style.css>; rel=preload\r\n\r\n".encode()
    answers = [before * 2 + DETAIL, before + response({"id": "id-2"})]
    with raw_server(answering(*answers)) as server:
        api = connect(server.url)
        assert api.detail(JOB).document == {"id": "id-1"}
        assert api.detail(JobRef("id-2", "job-2")).document == {"id": "id-2"}

    assert server.targets == ["/jobs/job-1", "/jobs/job-2"]
    assert server.connections == 1


def test_cookies_are_not_kept(connect: Connect) -> None:
    cookie = response({"id": "id-1"}, "200 OK", "Set-Cookie: session=1; Path=/")
    with raw_server(answering(cookie)) as server:
        api = connect(server.url)
        api.detail(JOB)
        api.detail(JOB)

    assert len(server.heads) == 2
    assert not any("cookie" in head.lower() for head in server.heads)


def test_plain_http_does_not_go_through_a_proxy(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is for this computer alone; a proxy would read the key."""
    with raw_server(answering(DETAIL)) as proxy, raw_server(answering(DETAIL)) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        connect(server.url).detail(JOB)

    assert (len(server.heads), proxy.connections) == (1, 0)


# Rejections.


def rejection(*headers: str, status: str = "429 Too Many Requests") -> bytes:
    return response(b"{}", status, *headers)


@pytest.mark.parametrize(
    "answer",
    [
        rejection("Retry-After: 0"),
        rejection("Retry-After: 0", status="503 Service Unavailable"),
        rejection("Retry-After: 0", status="403 Forbidden"),
        rejection("Retry-After: soon"),
        rejection(),
    ],
)
def test_a_rejected_request_is_sent_again_and_is_no_failed_try(
    connect: Connect, answer: bytes
) -> None:
    retries: list[int] = []
    paces: list[tuple[float, float]] = []
    throttle = Throttle(1000, 0.01)
    with raw_server(answering(answer, answer, DETAIL)) as server:
        api = connect(
            server.url,
            throttle=throttle,
            on_pacing=lambda *pace: paces.append(pace),
            on_retry=lambda: retries.append(1),
        )
        assert api.detail(JOB).document == {"id": "id-1"}

    assert server.targets == ["/jobs/job-1"] * 3
    assert (throttle.requests, throttle.rejections) == (3, 2)
    assert [interval for _, interval in paces] == [pytest.approx(MARGIN * 0.01 / 999)] * 2
    assert retries == []


def test_ten_rejections_in_a_row_end_the_run_with_the_remedy(connect: Connect) -> None:
    throttle = Throttle(1000, 0.001)
    with raw_server(answering(rejection("Retry-After: 0"))) as server:
        api = connect(server.url, throttle=throttle)
        with pytest.raises(RateLimitedError, match="10 times in a row") as caught:
            api.detail(JOB)

    assert "Use one key per integration" in str(caught.value)
    assert len(server.heads) == throttle.rejections == MAX_REJECTIONS


@pytest.mark.usefixtures("no_waiting")
def test_every_attempt_frees_its_slot_whatever_becomes_of_it(connect: Connect) -> None:
    """With one slot, a request that kept it would stop the next one for ever."""
    throttle = Throttle(1, 0.001)

    def answer(connection: socket.socket, _: str) -> None:
        if len(server.heads) == 1:
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.sendall(answers.pop(0))

    answers = [
        b"not http\r\n\r\n",
        rejection("Retry-After: 0"),
        response(b"", "500 Internal Server Error"),
        response(b"x", "200 OK", "Content-Encoding: gzip"),
        DETAIL,
    ]
    with raw_server(answer) as server:
        assert connect(server.url, throttle=throttle).detail(JOB).document == {"id": "id-1"}

    assert answers == []
    assert throttle.requests == len(server.heads) == 6


def test_a_refused_request_is_no_rejection(connect: Connect) -> None:
    throttle = Throttle(1000, 0.001)
    with raw_server(answering(response(b"", "404 Not Found"), response(b"", "401 No"))) as server:
        api = connect(server.url, throttle=throttle)
        with pytest.raises(NotFoundError):
            api.detail(JOB)
        with pytest.raises(AccessError):
            api.page(1)

    assert (throttle.requests, throttle.rejections) == (2, 0)


# https.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1, with its key, that no computer trusts."""
    folder = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [  # wherever it is installed
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    return context


@pytest.fixture
def _trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate / "certificate.pem"))


@pytest.mark.usefixtures("_trusted")
def test_https_works_with_an_authority_of_your_own_and_keeps_its_connection(
    connect: Connect, tls: ssl.SSLContext
) -> None:
    with raw_server(answering(PAGE, DETAIL), tls) as server:
        api = connect(server.url)
        assert api.page(1).total == 0
        assert api.detail(JOB).document == {"id": "id-1"}

    assert (len(server.heads), server.connections) == (2, 1)


@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("part", ["headers", "body"])
def test_a_response_that_drips_over_https_ends_at_the_deadline_too(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, part: str
) -> None:
    monkeypatch.setattr(transport, "DEADLINE", 0.02)
    monkeypatch.setattr(client, "MAX_TRIES", 1)

    with drip_server(DRIPS[part], tls) as server, pytest.raises(RetriesExhaustedError) as caught:
        connect(server.url, timeout=10).detail(JOB)

    assert "took too long in total" in str(caught.value)
    assert len(server.heads) == 1


def test_a_certificate_that_is_not_trusted_is_named_at_once_and_gets_no_key(
    connect: Connect, tls: ssl.SSLContext
) -> None:
    with (
        raw_server(answering(PAGE), tls) as server,
        pytest.raises(NotTheApiError, match="its certificate is not trusted") as caught,
    ):
        connect(server.url).page(1)

    assert "set REQUESTS_CA_BUNDLE" in str(caught.value)
    assert server.heads == []


def test_a_server_without_https_is_named_at_once(connect: Connect, base_url: str) -> None:
    with pytest.raises(NotTheApiError, match=r"127\.0\.0\.1:\d+ does not speak https"):
        connect(base_url.replace("http:", "https:")).page(1)
