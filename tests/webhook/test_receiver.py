"""What the receiver answers to anybody, and what it notes."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import requests
from webhook.served import NOTED, NOTIFICATION, TOKEN, UNNAMED, post, serving

from tap_public_jobs.webhook import app
from tap_public_jobs.webhook.app import LARGEST_BODY, Signature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tap_public_jobs.changelog import ChangeLog

SECRET = "sesame"  # noqa: S105
UNFINISHED = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode()


def connect(url: str) -> socket.socket:
    return socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=60)


def test_a_notification_is_noted_before_it_is_answered(log: ChangeLog, hook: str) -> None:
    before = log.read().position

    assert [post(hook), post(hook, b'[{"publicId": "b"}, {"publicId": "a"}]'), post(hook)] == [
        NOTED,
        (200, '{"publicIds":2}'),
        NOTED,
    ]

    assert log.read(before)[1:] == (before + 4, ["b", "a", "designer-paris-1a2b3c"])


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        (b'{"jobSlug": "designer-paris", "\\u001b[2J": {"x": 1}}', r'["jobSlug", "\u001b[2J"]'),
        (b"event=updated&id=designer-paris", '["event", "id"]'),
        (b"", "[]"),
    ],
)
def test_a_payload_without_a_public_id_is_news_and_a_warning(
    log: ChangeLog, hook: str, caplog: pytest.LogCaptureFixture, body: bytes, keys: str
) -> None:
    """Nobody knows the format: one look at the list costs less than a change that is missed."""
    before = log.read().position

    assert post(hook, body) == UNNAMED

    assert log.read(before)[1:] == (before + 1, [])
    [warning] = [it.getMessage() for it in caplog.records if it.levelno == logging.WARNING]
    assert warning == f"A notification for default names no publicId. Its keys: {keys}"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(log: ChangeLog, hook: str, *, chunked: bool) -> None:
    before = log.read()
    body = b'{"publicId": "large"}'.ljust(LARGEST_BODY + 1)

    assert post(hook, iter([body]) if chunked else body) == (413, "Content Too Large")

    assert log.read() == before


def test_the_largest_body_is_read(log: ChangeLog, hook: str) -> None:
    ids = [str(number) for number in range(10_000)]
    before = log.read().position

    body = json.dumps([{"publicId": it} for it in ids]).encode().ljust(LARGEST_BODY)
    assert post(hook, body) == (200, '{"publicIds":10000}')

    assert log.read(before).public_ids == ids


@pytest.mark.parametrize(
    "path",
    [
        "/hooks/" + TOKEN[:-1],
        "/hooks/" + TOKEN.upper(),
        "/hooks/" + TOKEN + "/",
        "/hooks/%ff%fe%00",
        "/hooks",
        "/" + TOKEN,
    ],
)
def test_a_wrong_token_is_not_found(log: ChangeLog, base_url: str, path: str) -> None:
    before = log.read()

    response = requests.post(base_url + path, NOTIFICATION, timeout=60, allow_redirects=False)

    assert (response.status_code, response.text) == (404, "Not Found")
    assert log.read() == before


def test_a_wrong_token_is_answered_before_the_body(base_url: str) -> None:
    with connect(base_url) as connection:
        connection.sendall(UNFINISHED.replace(TOKEN.encode(), b"wrong"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 Not Found\r\n")


def test_only_post_notifies(log: ChangeLog, hook: str) -> None:
    before = log.read()

    response = requests.put(hook, data=NOTIFICATION, timeout=60)

    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert log.read() == before


def hexadecimal(body: bytes, key: str = SECRET) -> str:
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def base64(body: bytes) -> str:
    return b64encode(hmac.digest(SECRET.encode(), body, "sha256")).decode()


@pytest.fixture(scope="module")
def signed_hook(log: ChangeLog) -> Iterator[str]:
    with serving(log, signature=Signature("X-Signature", SECRET)) as url:
        yield f"{url}/hooks/{TOKEN}"


@pytest.mark.parametrize(
    "signature",
    [
        hexadecimal(NOTIFICATION).upper(),
        "sha256=" + hexadecimal(NOTIFICATION),
        base64(NOTIFICATION),
        "sha256=" + base64(NOTIFICATION),
    ],
)
def test_a_right_signature_is_accepted(signed_hook: str, signature: str) -> None:
    assert post(signed_hook, **{"x-signature": signature}) == NOTED


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Signature": "sha256="},
        {"X-Signature": "ÿ"},
        {"X-Signature": hexadecimal(NOTIFICATION, key="other")},
        {"X-Signature": hexadecimal(NOTIFICATION + b" ")},
        {"X-Other": hexadecimal(NOTIFICATION)},
    ],
)
def test_any_other_signature_is_refused(
    log: ChangeLog, signed_hook: str, headers: dict[str, str]
) -> None:
    before = log.read()

    assert post(signed_hook, **headers) == (401, "Not signed with the secret")

    assert log.read() == before


def test_a_slow_body_is_not_waited_for(log: ChangeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    before = log.read()
    with serving(log) as url, connect(url) as connection:
        monkeypatch.setattr(app, "PATIENCE", 0.1)
        connection.sendall(UNFINISHED)
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert log.read() == before


def test_unfinished_bodies_of_one_sender_stop_no_other(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "PATIENCE", 600)
    other = "y" * 32
    with serving(log, f"default {TOKEN}\nother {other}") as url:
        held = [connect(url) for _ in range(300)]
        for connection in held:
            connection.sendall(UNFINISHED)
        answer = post(f"{url}/hooks/{other}")
        for connection in held:
            connection.close()

    assert answer == NOTED


def test_a_sender_that_leaves_is_no_fault(
    log: ChangeLog, base_url: str, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before = log.read().public_ids
    with connect(base_url) as connection:
        connection.sendall(UNFINISHED)

    while "POST: 400 The sender left" not in caplog.messages:
        assert post(hook, b"[]") == UNNAMED

    assert log.read().public_ids == before
    assert all(record.exc_info is None for record in caplog.records)


def test_the_token_and_payloads_are_never_logged(
    base_url: str, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    post(hook)
    post(hook, b'{"unrecognised": "designer-paris"}')
    post(f"{hook}0")
    requests.get(f"{base_url}/health", timeout=60)
    requests.request("M" * 1000, hook, timeout=60)

    # pytest listens to uvicorn's access log too; that of the command is read in its own tests.
    others = ("urllib3", "uvicorn.access")
    ours = [it.getMessage() for it in caplog.records if not it.name.startswith(others)]
    assert [line for line in ours if line.startswith(("POST", "GET", "M"))] == [
        'POST: 200 {"publicIds":1}',
        'POST: 202 {"publicIds":0}',
        "POST: 404 Not Found",
        "GET: 200 OK",
        "MMMMMMMMMM: 405 Method Not Allowed",
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
    assert post(hook) == NOTED
    assert TOKEN not in caplog.text
