"""Bodies: how much of them is read, how long that may take, and what their JSON becomes."""

import gzip
import socket
import tracemalloc
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import chain, repeat
from typing import Any

import pytest
from raw_server import JOB, Answer, Answered, response

from tap_public_jobs.errors import RequestError
from tap_public_jobs.limit import body, transport
from tap_public_jobs.limit.body import LARGEST, json_object
from tap_public_jobs.sync.source import JobRef

ONCE = 1  # tries
MIB = 1024 * 1024
DETAIL = b'{"id": "id-1", "x": "%s"}'
LARGEST_TEXT = b"x" * (LARGEST - len(DETAIL) + 2)


# Size.


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "x-gzip": gzip.compress,
}


def _encoded(encoding: str, content: bytes) -> bytes:
    return response(content, "200 OK", f"Content-Encoding: {encoding}")


@pytest.mark.parametrize("text", [b"x", LARGEST_TEXT], ids=["small", "the largest"])
@pytest.mark.parametrize("encoding", ["identity", "gzip", "GZIP", "x-gzip", "deflate"])
def test_bodies_arrive_whole(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, text: bytes, encoding: str
) -> None:
    """Whatever else requests offers where more decoders are installed."""
    monkeypatch.setattr("requests.utils.DEFAULT_ACCEPT_ENCODING", "gzip, deflate, br, zstd")
    encoded = ENCODERS[encoding.lower()](DETAIL % text)
    api, server = answered(_encoded(encoding, encoded))

    assert api.detail(JOB, ONCE) == {"id": "id-1", "x": text.decode()}
    assert "Accept-Encoding: gzip\r\n" in server.heads[0]


NOT_JSON = "the response is not the expected JSON"

UNREADABLE = {
    "too large": (response(DETAIL % (LARGEST_TEXT + b"x")), "the body is larger than 8 MiB"),
    "more than gzip": (
        _encoded("gzip", gzip.compress(b"{}") + bytes(LARGEST)),
        "the body is larger than 8 MiB",
    ),
    "no gzip": (_encoded("gzip", b"plain"), "Error -3 while decompressing data"),
    "br": (_encoded("br", b"x"), NOT_JSON),
    "too deep": (response(b'{"id": "id-1", "x": %s1%s}' % (b"[" * 100, b"]" * 100)), NOT_JSON),
    "twice": (_encoded("gzip, gzip", gzip.compress(gzip.compress(b"{}"))), NOT_JSON),
}


@pytest.mark.parametrize(("answer", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_body_that_cannot_be_read_is_refused(
    answered: Answered, answer: bytes, said: str
) -> None:
    api, server = answered(answer)

    with pytest.raises(RequestError, match=said):
        api.detail(JOB, ONCE)
    assert server.targets == ["/jobs/job-1"]


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PIECE = b"%x\r\n%s\r\n" % (MIB, bytes(MIB))


def endless(head: bytes, piece: bytes) -> Answer:
    """Repeat a piece of a body for ever."""

    def answer(connection: socket.socket, _: str) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)

    return answer


# Less than the bound below, which becomes 64 times as much.
BOMB = _encoded("gzip", gzip.compress(bytes(64 * MIB)))

NO_JOB = response({"x": "x" * (MIB - 100)})


@pytest.mark.parametrize(
    "attack",
    [
        endless(CHUNKED, PIECE),
        endless(HEAD + b"\r\n", PIECE),
        endless(HEAD.replace(b"200 OK", b"302 Found\r\nLocation: /") + b"\r\n", PIECE),
        *(BOMB, NO_JOB),
    ],
    ids=["endless chunks", "no length and no end", "redirect", "bomb", "no job"],
)
def test_bodies_that_are_made_to_fill_the_memory_are_faults_and_do_not(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, attack: Answer
) -> None:
    """Neither while they are read on sixteen connections, nor in the errors that they become."""
    monkeypatch.setattr(body, "LARGEST", MIB)
    said = r"body is larger|not the expected|302 Found"
    api, server = answered(attack, timeout=60.0)

    def fetch(number: int) -> RequestError:
        with pytest.raises(RequestError, match=said) as caught:
            api.detail(JobRef(f"id-{number}", f"job-{number}"), ONCE)
        return caught.value

    with ThreadPoolExecutor(16) as threads:
        tracemalloc.start()
        try:
            errors = list(threads.map(fetch, range(32)))
            size, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert len(errors) == len(server.heads) == 32
    assert peak < 16 * 2.2 * MIB
    assert size < 2 * MIB


# Time.


# Bodies in which no part is late, and which do not end: the head, and what is repeated.
DRIPS = {
    "length": (HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
    "no length": (HEAD + b"\r\n", b" "),
    "chunks": (CHUNKED, b"1\r\n \r\n"),
    "compressed": (HEAD + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"")),
}


@pytest.mark.parametrize(("head", "drop"), DRIPS.values(), ids=DRIPS)
@pytest.mark.parametrize("by", ["http", "https", "proxy"])
def test_a_body_that_drips_ends_at_the_deadline(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, head: bytes, drop: bytes, by: str
) -> None:
    """The read timeout alone would wait for each byte anew."""
    monkeypatch.setattr(transport, "DEADLINE", 0.001)
    api, server = answered(endless(head, drop), by=by)

    with pytest.raises(RequestError, match=r": the body took too long in total, after 1 tries$"):
        api.detail(JOB, ONCE)
    assert server.targets[-1] == "/jobs/job-1"


@pytest.mark.parametrize("seconds", [69.9, 70.1])
def test_a_body_may_take_ten_times_the_read_timeout(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    times = chain([0.0], repeat(seconds))  # when the tap begins to read, and later
    monkeypatch.setattr(body, "monotonic", lambda: next(times))
    api, _ = answered(response({"id": "id-1"}), timeout=7.0)

    if seconds < 70:
        assert api.detail(JOB, ONCE) == {"id": "id-1"}
    else:
        with pytest.raises(RequestError, match="the body took too long in total"):
            api.detail(JOB, ONCE)


# JSON.


@pytest.mark.parametrize(
    ("content", "document"),
    [
        (b'{"a": 0.10, "b": -0, "c": 1E3}', {"a": Decimal("0.10"), "b": 0, "c": Decimal("1E3")}),
        (b'{"a": 12345678901234567890123}', {"a": 12345678901234567890123}),
        (b'{"a": 1e9999999999999999999}', {"a": "1e9999999999999999999"}),
        (b'{"a": %s}' % (b"7" * 5000), {"a": Decimal("7" * 5000)}),
        (b'{"a": NaN, "b": -Infinity}', {"a": "NaN", "b": "-Infinity"}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('{"a": "ä"}'.encode("utf-16"), {"a": "ä"}),
        # Half a surrogate pair, of which the records warn.
        (b'{"a": "x\xffy", "b": "ok"}', {"a": "x\udcffy", "b": "ok"}),
        (b' {"a": {"b": [1, null, true]}}\n', {"a": {"b": [1, None, True]}}),
    ],
)
def test_json_keeps_every_value(content: bytes, document: dict[str, Any]) -> None:
    parsed = json_object(content)

    assert parsed == document
    assert repr(parsed) == repr(document)  # 0.10 is not 0.1, nor 1 True


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"null", b"[1, 2]", b'{"a": 1', b'{"a": 1} {"b": 2}', b"<html></html>"),
        *(b"\xff\xfe", b'{"a":' * 40_000),
    ],
)
def test_anything_else_is_no_object(content: bytes) -> None:
    assert json_object(content) is None


LATIN = '{"id": "id-1", "x": "Zürich, 5 €"}'


@pytest.mark.parametrize(
    ("content", "declared", "text"),
    [
        (LATIN.encode("cp1252"), "application/json; charset=Windows-1252", "Zürich, 5 €"),
        (LATIN.encode("iso-8859-15"), 'text/plain;charset="iso-8859-15"', "Zürich, 5 €"),
        (LATIN.encode(), "application/json; charset=iso-8859-15", "Zürich, 5 €"),  # it is not
        (LATIN.replace("€", "x").encode("latin-1"), "application/json", "Z\udcfcrich, 5 x"),
    ],
)
def test_a_body_that_is_no_utf_8_is_read_in_the_charset_that_its_head_declares(
    answered: Answered, content: bytes, declared: str, text: str
) -> None:
    """Without one, an invalid byte costs one value, and not the response."""
    api, _ = answered(response(content, "200 OK", f"Content-Type: {declared}"))

    assert api.detail(JOB) == {"id": "id-1", "x": text}


def test_a_body_in_a_charset_that_does_not_exist_is_no_object() -> None:
    assert json_object(LATIN.encode("cp1252"), "klingon") is None
