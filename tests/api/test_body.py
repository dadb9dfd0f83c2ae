"""Bodies: how much of them is read, and what their JSON becomes."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from api.raw_server import answering, raw_server, response

from tap_public_jobs.api import body, client
from tap_public_jobs.api.body import LARGE, LARGEST, BodyError, json_object, read_body
from tap_public_jobs.api.models import JobRef
from tap_public_jobs.errors import RetriesExhaustedError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from api.conftest import Connect
    from api.raw_server import Answer

MIB = 1024 * 1024
JOB = JobRef("id-1", "job-1")
DETAIL = b'{"id": "id-1", "roleOverview": "%s"}'


class Chunks:
    """As much of a response as `read_body` uses."""

    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def iter_content(self, _: int) -> Iterator[bytes]:
        return self._chunks


def read(chunks: Iterator[bytes]) -> bytes:
    response: Any = Chunks(chunks)
    return read_body(response)


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE, LARGEST])
def test_a_body_is_read_whole(size: int) -> None:
    content = bytes(size)
    pieces = (content[start : start + 100_000] for start in range(0, size, 100_000))

    assert read(pieces) == content


def test_a_body_beyond_the_bound_is_not_read_further() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += MIB
            yield bytes(MIB)

    with pytest.raises(BodyError, match="larger than 64 MiB"):
        read(endless())
    assert taken == LARGEST + MIB


def test_large_bodies_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones go past them."""
    is_waiting = threading.Event()
    order: list[str] = []

    class Lock:
        """A lock that says so when a second thread wants it."""

        def __init__(self) -> None:
            self._lock = threading.Lock()

        def __enter__(self) -> None:
            if self._lock.locked():
                is_waiting.set()
            self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    monkeypatch.setattr(body, "_one_large_body", Lock())

    def second() -> Iterator[bytes]:
        yield bytes(LARGE + 1)
        order.append("second goes on")

    with ThreadPoolExecutor(1) as thread:

        def first() -> Iterator[bytes]:
            yield bytes(LARGE + 1)
            thread.submit(read, second())
            assert is_waiting.wait(10)
            order.append(f"a small one: {read(iter([b'small'])).decode()}")
            yield b"!"
            order.append("first ends")

        read(first())

    assert order == ["a small one: small", "first ends", "second goes on"]


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("size", [10, LARGE + 10, 5 * LARGE])
@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
def test_encoded_bodies_of_any_size_arrive_whole(
    connect: Connect, size: int, encoding: str
) -> None:
    content = DETAIL % (b"x" * size)
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "identity": bytes,
        "gzip": gzip.compress,
        "deflate": zlib.compress,
    }
    encoded = encoders[encoding](content)
    answer = response(encoded, "200 OK", f"Content-Encoding: {encoding}")
    with raw_server(answering(answer)) as server:
        detail = connect(server.url).detail(JOB)

    assert detail.size == len(content)
    assert len(detail.document["roleOverview"]) == size


@pytest.mark.usefixtures("no_waiting")
def test_a_body_that_is_compressed_more_than_once_is_not_decompressed(connect: Connect) -> None:
    """Nine kilobytes could keep a processor busy for hours."""
    twice = gzip.compress(gzip.compress(DETAIL % b"x"))
    answer = response(twice, "200 OK", "Content-Encoding: gzip", "Content-Encoding: gzip")
    with (
        raw_server(answering(answer)) as server,
        pytest.raises(RetriesExhaustedError, match="the body is compressed more than once"),
    ):
        connect(server.url).detail(JOB)


# Bodies that are made to exhaust the memory, on sixteen connections at once.


PIECE = b"%x\r\n%s\r\n" % (MIB, bytes(MIB))


def _endless_chunks(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(PIECE)


def _endless_without_length(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(PIECE)


BOMB = response(gzip.compress(bytes(16 * MIB)) * 384, "200 OK", "Content-Encoding: gzip")
"""Six megabytes that become six gigabytes."""


@pytest.mark.parametrize(
    "attack",
    [_endless_chunks, _endless_without_length, answering(BOMB)],
    ids=["endless chunks", "no length and no end", "gzip bomb"],
)
def test_bodies_without_bounds_are_faults_and_fill_no_memory(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, attack: Answer
) -> None:
    """Neither while they are read, nor in the errors that they become.

    A quarter of the bound, to be quick: beyond it is one body, and one `LARGE` for each other.
    """
    monkeypatch.setattr(client, "MAX_TRIES", 1)
    monkeypatch.setattr(body, "LARGEST", 16 * MIB)

    with raw_server(attack) as server, ThreadPoolExecutor(16) as threads:
        api = connect(server.url, timeout=60.0)

        def fetch(number: int) -> RetriesExhaustedError:
            with pytest.raises(RetriesExhaustedError) as caught:
                api.detail(JobRef(f"id-{number}", f"job-{number}"))
            return caught.value

        tracemalloc.start()
        try:
            errors = list(threads.map(fetch, range(16)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert {str(error).rpartition(": ")[2] for error in errors} == {
        "the body is larger than 16 MiB"
    }
    assert len(server.heads) == 16
    assert peak < (16 + 16 * 2) * MIB, peak


def test_a_large_body_that_is_no_job_is_not_kept_in_its_error(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_TRIES", 1)
    answer = response(b'{"x": "%s"}' % bytes(16 * MIB).replace(b"\0", b"x"))
    with raw_server(answering(answer)) as server:
        api = connect(server.url)
        tracemalloc.start()
        try:
            with pytest.raises(RetriesExhaustedError) as caught:
                api.detail(JOB)
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert "not the JSON that was asked for" in str(caught.value)
    assert size < MIB


# JSON.


@pytest.mark.parametrize(
    ("content", "document"),
    [
        (b'{"a": 72000.10}', {"a": Decimal("72000.10")}),
        (b'{"a": 0.1, "b": -0, "c": 1E3}', {"a": Decimal("0.1"), "b": 0, "c": Decimal("1E3")}),
        (b'{"a": 12345678901234567890123}', {"a": 12345678901234567890123}),
        (b'{"a": 1e9999999999999999999}', {"a": "1e9999999999999999999"}),
        (b'{"a": %s}' % (b"7" * 5000), {"a": Decimal("7" * 5000)}),
        (b'{"a": NaN, "b": -Infinity}', {"a": "NaN", "b": "-Infinity"}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('{"a": "ä"}'.encode("utf-16"), {"a": "ä"}),
        (b'{"a": "x\xffy", "b": "ok"}', {"a": "x\ufffdy", "b": "ok"}),
        (b'{"a": "\\ud800"}', {"a": "\ud800"}),
        (b' {"a": {"b": [1, null, true]}}\n', {"a": {"b": [1, None, True]}}),
        (b"{}", {}),
    ],
)
def test_json_keeps_every_value(content: bytes, document: dict[str, Any]) -> None:
    parsed = json_object(content)

    assert parsed == document
    assert repr(parsed) == repr(document)  # 0.10 is not 0.1, nor 1 True


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" ",
        b"null",
        b"[1, 2]",
        b'"text"',
        b"{",
        b'{"a": 1',
        b'{"a": 1} {"b": 2}',
        b"<html></html>",
        b"\x00\x00\x00",
        b"\xff\xfe",
        b'{"a":' * 100_000,
    ],
)
def test_anything_else_is_no_object(content: bytes) -> None:
    assert json_object(content) is None
