"""The command: settings, one line for what its user can mend, a graceful stop."""

from __future__ import annotations

import contextlib
import hmac
import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import requests
from webhook.command import COMMAND, PREFIX, ended, run, served
from webhook.served import NOTED, NOTIFICATION, TOKEN, post

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_ends_what_it_has_begun(
    tmp_path: Path, stop: signal.Signals
) -> None:
    """With its settings from the environment, and its secrets from files. No line has the token."""
    secret = tmp_path / "secret"
    secret.write_text(f"{TOKEN}\nacme {TOKEN[::-1]}\n")
    settings: dict[str, Any] = {"CHANGES_URL": "sqlite:///my.db", "TOKEN_FILE": secret}
    settings |= {"TOKEN_HEADER": "X-Token", "SIGNATURE_HEADER": "X-Check"}
    sent = {"X-Token": TOKEN, "X-Check": hmac.digest(b"sesame", NOTIFICATION, "sha256").hex()}
    with served(SIGNATURE_SECRET="sesame\nacme other", **settings) as receiver:  # noqa: S106
        hook = f"http://127.0.0.1:{receiver.port}/hooks"
        assert post(hook, **(sent | {"X-Check": ""})) == (401, "Not signed with the secret")
        response = requests.post(hook, NOTIFICATION, headers=sent, timeout=60)
        with socket.create_connection(("127.0.0.1", receiver.port)) as connection:
            start = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            start += f"X-Check: {sent['X-Check']}\r\n"
            connection.sendall(f"{start}Content-Length: {len(NOTIFICATION)}\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            receiver.process.send_signal(stop)
            connection.sendall(NOTIFICATION)
            answer = connection.recv(65536)
        status = receiver.process.wait(timeout=60)
        errors = receiver.stderr.read()

    assert (response.status_code, response.headers["Connection"]) == (200, "close")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert status in {0, -signal.SIGTERM}
    assert errors.count('INFO POST: 200 {"publicIds":1}\n') == 2
    assert TOKEN not in errors
    assert "Traceback" not in errors
    assert sorted(it.position for it in ChangeLog("sqlite:///my.db").positions().values()) == [0, 2]


def test_nothing_that_was_answered_is_lost() -> None:
    """Although the receiver is killed in the middle of many notifications."""
    answered: list[str] = []
    many = threading.Event()

    def send(sender: int) -> None:
        with contextlib.suppress(requests.ConnectionError):
            for number in count(sender, 16):
                if post(hook, f'{{"publicId": "{number}"}}') == NOTED:
                    answered.append(str(number))
                if len(answered) >= 200:
                    many.set()

    with ThreadPoolExecutor(16) as pool, served(TOKEN=TOKEN) as receiver:
        hook = f"http://127.0.0.1:{receiver.port}/hooks/{TOKEN}"
        for sender in range(16):
            pool.submit(send, sender)
        assert many.wait(60)

    assert {*answered} <= {*ChangeLog("sqlite:///changes.db").read().public_ids}


def test_headers_without_an_end_are_refused() -> None:
    """They would fill the memory, and a sender needs no token for them."""
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 16_384) for number in range(1_000))
    with (
        served(TOKEN=TOKEN) as receiver,
        socket.create_connection(("127.0.0.1", receiver.port)) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.sendall(b"POST /hooks HTTP/1.1\r\n" + headers)


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more"),
        ({"TOKEN_FILE": "no"}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN_FILE is not a file that can be"),
        ({"TOKEN_FILE": sys.executable}, "", "is not a file that can be read"),  # not UTF-8
        ({"TOKEN": TOKEN, "SIGNATURE_SECRET": "s"}, "", "set both PUBLIC_JOBS_WEBHOOK_SIGNATURE_"),
        ({"TOKEN": TOKEN}, "--signature-header X", "set both PUBLIC_JOBS_WEBHOOK_SIGNATURE_HEAD"),
        (
            {"TOKEN": f"acme {TOKEN}", "SIGNATURE_SECRET": "s", "SIGNATURE_HEADER": "X"},
            "",
            "with the same organisations as PUBLIC_JOBS_WEBHOOK_TOKEN, or neither",
        ),
        ({"TOKEN": TOKEN, "CHANGES_URL": "x.db"}, "", "changes_url must be sqlite:///path/to/"),
        ({"TOKEN": TOKEN}, "--changes-url sqlite:///no/no.db", "the folder of the file"),
    ],
)
def test_a_wrong_setting_is_one_line(
    settings: dict[str, str],
    arguments: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.delattr("uvicorn.run")  # else a setting that is not refused is served for ever

    status, out, err = run(capsys, "serve", *arguments.split())

    assert (status, out) == (2, "")
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1
    assert TOKEN not in err


def test_a_taken_port_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        status, _, err = ended("serve", "--port", port, env=os.environ | {f"{PREFIX}TOKEN": TOKEN})

    assert status > 0
    assert "address already in use" in err
    assert "Traceback" not in err


def test_a_receiver_without_its_extra_names_the_remedy() -> None:
    """In a process of its own, because here the receiver is imported already."""
    code = f"import sys; sys.modules['starlette.exceptions'] = None; {COMMAND[2]}"
    status, _, err = ended("serve", code=code)

    assert (status, "Traceback" in err) == (2, False)
    assert "install tap-public-jobs[webhook]" in err
