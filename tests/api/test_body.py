"""Bodies: how much of them is read, and what their JSON becomes."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from queue import Queue
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from api.raw_server import answering, raw_server, response

from tap_public_jobs.api import body, client
from tap_public_jobs.api.body import (
    BYTES_OF_VALUE,
    LARGE,
    LARGEST,
    MOST_MEMORY,
    READERS,
    VERY_LARGE,
    Bodies,
    Body,
    BodyError,
    json_object,
)
from tap_public_jobs.api.models import JobRef
from tap_public_jobs.errors import NotFoundError, RequestError, RetriesExhaustedError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator

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


def read(chunks: Iterable[bytes], bodies: Bodies | None = None) -> Body:
    response: Any = Chunks(iter(chunks))
    return (bodies or Bodies()).read(response)


def text_of(size: int) -> bytes:
    """A body with this many bytes."""
    return b'{"x": "%s"}' % (b"x" * (size - 9))


@pytest.mark.parametrize("size", [9, LARGE - 1, LARGE, LARGE + 1, VERY_LARGE + 1, LARGEST])
def test_a_body_is_read_whole(size: int) -> None:
    content = text_of(size)
    body = read(content[start : start + 100_000] for start in range(0, size, 100_000))

    assert body.document == {"x": "x" * (size - 9)}
    assert (body.size, body.is_large) == (size, size > LARGE - BYTES_OF_VALUE)


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


@pytest.mark.parametrize("value", [b"{}", b"[]", b"1"])
def test_a_body_of_too_many_values_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch, value: bytes
) -> None:
    """Their memory is a multiple of their text."""
    number = MOST_MEMORY // BYTES_OF_VALUE
    content = b'{"x": [%s]}' % b",".join([value] * number)
    monkeypatch.setattr(body, "json_object", pytest.fail)

    with pytest.raises(BodyError, match="too many values for 128 MiB"):
        read([content])


def test_a_small_body_of_many_values_is_large() -> None:
    number = LARGE // BYTES_OF_VALUE + 1
    content = b'{"x": [%s]}' % b",".join([b"{}"] * number)

    assert len(content) < LARGE // 50
    assert read([content]).is_large


class Turns:
    """Threads that read bodies, and what they have read so far."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.bodies = Bodies()
        self.done: Queue[tuple[str, Body]] = Queue()
        self._threads = threads

    def read(self, name: str, chunks: Iterable[bytes]) -> None:
        self._threads.submit(lambda: self.done.put((name, read(chunks, self.bodies))))

    def next(self) -> tuple[str, Body]:
        return self.done.get(timeout=30)


@pytest.fixture
def turns() -> Iterator[Turns]:
    with ThreadPoolExecutor(8) as threads:
        yield Turns(threads)


def test_a_large_body_waits_until_the_one_before_is_released(turns: Turns) -> None:
    """Small ones go past them."""
    turns.read("first", [text_of(LARGE + 1)])
    _, first = turns.next()
    turns.read("second", [text_of(LARGE + 1)])
    turns.read("small", [b"{}"])
    name, small = turns.next()
    turns.bodies.release(small)
    assert name == "small"
    assert turns.done.empty()

    turns.bodies.release(first)

    name, second = turns.next()
    assert name == "second"
    turns.bodies.release(second)


def test_large_bodies_that_drip_do_not_hold_up_the_others(turns: Turns) -> None:
    is_over = threading.Event()

    def dripping() -> Iterator[bytes]:
        yield text_of(LARGE + 1)
        assert is_over.wait(30)

    try:
        for _ in range(READERS - 1):
            turns.read("dripping", dripping())
        turns.read("quick", [text_of(LARGE + 1)])
        name, quick = turns.next()
        assert name == "quick"
        turns.bodies.release(quick)
    finally:
        is_over.set()
    for _ in range(READERS - 1):
        turns.bodies.release(turns.next()[1])


@pytest.mark.usefixtures("no_waiting")
def test_every_large_detail_that_is_not_returned_is_released(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was not would keep the next one waiting for ever."""
    monkeypatch.setattr(client, "MAX_TRIES", 2)
    large = b"x" * LARGE
    answers = [
        response(b"no JSON, " + large),
        response(b'{"x": "%s"}' % large),  # no detail
        response(b'{"id": "another", "x": "%s"}' % large),
        response(b'{"id": "id-1", "x": "%s"}' % large),
        response(b'{"id": "id-1", "x": 1}'),
    ]
    with raw_server(answering(*answers)) as server:
        api = connect(server.url)
        with pytest.raises(RetriesExhaustedError):
            api.detail(JOB)
        with pytest.raises(NotFoundError):
            api.detail(JOB)
        detail = api.detail(JOB)
        assert len(detail.document["x"]) == LARGE
        detail.release()
        assert api.detail(JOB).document["x"] == 1


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("size", [10, LARGE + 10, 3 * LARGE])
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

    One is read to the bound, a few to `VERY_LARGE`, and all others to `LARGE`.
    """
    monkeypatch.setattr(client, "MAX_TRIES", 1)
    most = 16 * MIB
    monkeypatch.setattr(body, "LARGEST", most)

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
    assert peak < most + (READERS - 1) * VERY_LARGE + 16 * (LARGE + MIB), peak


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b'{"x": "', "not the expected JSON"),
        (b'{"id": "another", "x": "', "now belongs to another job"),
    ],
)
def test_a_large_body_that_is_refused_is_not_kept_in_its_error(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, start: bytes, message: str
) -> None:
    monkeypatch.setattr(client, "MAX_TRIES", 1)
    with raw_server(answering(response(start + b"x" * 7 * MIB + b'"}'))) as server:
        api = connect(server.url)
        tracemalloc.start()
        try:
            with pytest.raises(RequestError, match=message) as caught:
                api.detail(JOB)
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert caught.value.__traceback__
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
