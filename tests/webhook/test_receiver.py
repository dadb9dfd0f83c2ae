"""What the receiver answers to anybody, and what it notes."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING

import pytest
import requests
from webhook.served import NOTIFICATION, TOKEN, post, serving

from tap_public_jobs.changelog import ChangeLog, Changes
from tap_public_jobs.webhook.app import LARGEST_BODY, Signature, make_app
from tap_public_jobs.webhook.server import Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "sesame"  # noqa: S105
KEPT_ALIVE = (
    f'POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n{{"publicId": "a"}}'
).encode()


def test_a_notification_is_noted_before_it_is_answered(log: ChangeLog, hook: str) -> None:
    before = log.counts()

    answers = [post(hook), post(hook, b'[{"publicId": "b"}, {"publicId": "a"}]'), post(hook)]

    assert answers == [(200, '{"publicIds":1}'), (200, '{"publicIds":2}'), (200, '{"publicIds":1}')]
    assert log.read(before.position) == Changes(
        before.log, before.position + 4, ["b", "a", "designer-paris-1a2b3c"]
    )
    assert log.counts().unrecognised == before.unrecognised


@pytest.mark.parametrize("length", [LARGEST_BODY + 1, 20_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(
    log: ChangeLog, hook: str, length: int, *, chunked: bool
) -> None:
    before = log.counts()
    body = b" " * length

    parts = (body[at : at + 100_000] for at in range(0, len(body), 100_000))
    assert post(hook, parts if chunked else body) == (413, "More than 262144 bytes")

    assert log.counts() == before


def test_the_largest_body_is_read(log: ChangeLog, hook: str) -> None:
    body = json.dumps([{"publicId": str(number)} for number in range(10_000)]).encode()
    body += b" " * (LARGEST_BODY - len(body))
    before = log.counts()

    assert post(hook, body) == (200, '{"publicIds":10000}')

    assert log.read(before.position).public_ids == [str(number) for number in range(10_000)]


@pytest.mark.parametrize(
    "path",
    [
        "/hooks/" + TOKEN[:-1],
        "/hooks/" + TOKEN + "0",
        "/hooks/" + TOKEN.upper(),
        "/hooks/" + TOKEN + "/",
        "/hooks/x/" + TOKEN,
        "/health/" + TOKEN,
        "/hooks/%ff%fe%00",
        "/hooks/ü",
        "/hooks/",
        "/hooks",
        "/" + TOKEN,
        "/",
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "PURGE"])
def test_a_wrong_token_is_not_found(log: ChangeLog, base_url: str, path: str, method: str) -> None:
    before = log.counts()

    response = requests.request(
        method, base_url + path, data=NOTIFICATION, timeout=30, allow_redirects=False
    )

    assert (response.status_code, response.text) == (404, "Not Found")
    assert response.headers["Connection"] == "close"
    assert log.counts() == before


def test_only_post_notifies(log: ChangeLog, hook: str) -> None:
    before = log.counts()

    response = requests.put(hook, data=NOTIFICATION, timeout=30)

    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert log.counts() == before


def hexadecimal(body: bytes, key: str = SECRET) -> str:
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def base64(body: bytes) -> str:
    return b64encode(hmac.digest(SECRET.encode(), body, "sha256")).decode()


@pytest.fixture(scope="module")
def signed_hook(log: ChangeLog) -> Iterator[str]:
    app = make_app(log, TOKEN, Signature("X-Signature", SECRET))
    with serving(app) as (host, port):
        yield f"http://{host}:{port}/hooks/{TOKEN}"


@pytest.mark.parametrize(
    "signature",
    [
        hexadecimal(NOTIFICATION),
        hexadecimal(NOTIFICATION).upper(),
        "sha256=" + hexadecimal(NOTIFICATION),
        base64(NOTIFICATION),
        "sha256=" + base64(NOTIFICATION),
    ],
)
def test_a_right_signature_is_accepted(signed_hook: str, signature: str) -> None:
    assert post(signed_hook, **{"x-signature": signature}) == (200, '{"publicIds":1}')


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Signature": ""},
        {"X-Signature": "sha256="},
        {"X-Signature": "ÿ"},
        {"X-Signature": hexadecimal(NOTIFICATION)[:-1]},
        {"X-Signature": hexadecimal(NOTIFICATION, key="other")},
        {"X-Signature": hexadecimal(NOTIFICATION + b" ")},
        {"X-Signature": base64(NOTIFICATION).lower()},
        {"X-Other": hexadecimal(NOTIFICATION)},
    ],
)
def test_any_other_signature_is_refused(
    log: ChangeLog, signed_hook: str, headers: dict[str, str]
) -> None:
    before = log.counts()

    assert post(signed_hook, **headers) == (401, "Not signed with the secret")

    assert log.counts() == before


def test_a_signature_does_not_show_its_secret() -> None:
    assert repr(Signature("X-Signature", SECRET)) == "Signature(header='X-Signature')"


def talk(address: tuple[str, int], sent: bytes) -> bytes:
    """Send something, and read until the other side closes."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(sent)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


@pytest.mark.usefixtures("short_linger")
@pytest.mark.parametrize("headers", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_a_slow_body_is_not_waited_for(log: ChangeLog, headers: bytes) -> None:
    before = log.counts()
    start = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\n".encode()
    app = make_app(log, TOKEN)
    app._patience = 0.1

    with serving(app) as address:
        answer = talk(address, start + headers + b"\r\n\r\n")
        after = log.counts()
        app._patience = 60
        again = post(f"http://{address[0]}:{address[1]}/hooks/{TOKEN}")

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert after == before
    assert again == (200, '{"publicIds":1}')


def is_cut(connection: socket.socket, sent: bytes) -> bool:
    """Send something, and return whether the other side closes, or resets what came too late."""
    try:
        connection.sendall(sent)
        return connection.recv(65536) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("before", [b"", KEPT_ALIVE])
@pytest.mark.parametrize("sent", [b"P", b"POST /hooks/", b"POST / HTTP/1.1\r\nHost: x\r\nX: "])
def test_headers_that_do_not_come_are_not_waited_for(
    log: ChangeLog, before: bytes, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on a new connection nor on one that has been used."""
    short, long = (partial(monkeypatch.setattr, Protocol, "patience", it) for it in (0.2, 60))
    long()
    with serving(make_app(log, TOKEN)) as address:
        if not before:
            short()  # from the connection on; else from the start of the second headers on
        with socket.create_connection(address, timeout=30) as connection:
            if before:
                connection.sendall(before)
                answer = b""
                while not answer.endswith(b"}"):
                    answer += connection.recv(65536)
                short()
            assert is_cut(connection, sent)
        long()
        assert post(f"http://{address[0]}:{address[1]}/hooks/{TOKEN}")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\0" * 1000,
        b"nonsense\r\n\r\n",
        b"POST /hooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /hooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /hooks/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
        # One byte too many, and none after it: else the connection is reset, and the answer lost.
        pytest.param(b"GET /".ljust(2**16 + 1, b"x"), id="no end"),
    ],
)
def test_what_is_not_http_is_refused(address: tuple[str, int], hook: str, sent: bytes) -> None:
    assert talk(address, sent).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert post(hook) == (200, '{"publicIds":1}')


def test_a_sender_that_leaves_is_no_fault(
    log: ChangeLog, address: tuple[str, int], hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = log.counts()
    caplog.set_level(logging.INFO)
    start = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{"
    with socket.create_connection(address) as connection:
        connection.sendall(start.encode())

    while "POST: 400 The sender left" not in caplog.messages:
        assert post(hook, b"[]") == (202, '{"publicIds":0}')

    assert log.counts().position == before.position
    assert all(record.exc_info is None for record in caplog.records)


def test_the_token_and_payloads_are_never_logged(
    base_url: str, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    post(hook)
    post(hook, b'{"unrecognised": "designer-paris"}')
    post(hook, b"designer-paris")
    post(f"{hook}0")
    requests.get(f"{base_url}/health", timeout=30)

    ours = [record.getMessage() for record in caplog.records if "urllib3" not in record.name]
    assert [line for line in ours if line.startswith(("POST", "GET"))] == [
        'POST: 200 {"publicIds":1}',
        'POST: 202 {"publicIds":0}',
        'POST: 202 {"publicIds":0}',
        "POST: 404 Not Found",
        "GET: 200 OK",
    ]
    assert TOKEN not in "".join(ours)
    assert "designer" not in "".join(ours)


def test_what_goes_wrong_unforeseen_is_answered_and_not_fatal(
    log: ChangeLog, hook: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(log, "append_to", fail)
        answer = post(hook)

    assert answer == (500, "Internal Server Error")
    assert post(hook) == (200, '{"publicIds":1}')
    assert TOKEN not in caplog.text
