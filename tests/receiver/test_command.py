"""The command: settings, one line for what its user can mend, a graceful stop.

Also the page on webhooks, which has every setting, answer and limit, and none that does not exist.
"""

import contextlib
import hmac
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import requests
from public_jobs_receiver import app, payload
from public_jobs_receiver.cli import VARIABLES, commands
from receiver.conftest import NOTED, NOTIFICATION, TOKEN, connect, post

from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync import notifications

COMMAND = "from public_jobs_receiver.cli import commands; commands()"
PREFIX = "PUBLIC_JOBS_WEBHOOK_"


@contextlib.contextmanager
def served(**settings: Any) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the receiver in a process of its own, and kill it at the end; yield its URL and it."""
    command = [sys.executable, "-c", COMMAND, "serve", "--port", "0"]
    variables = os.environ | {PREFIX + name: str(value) for name, value in settings.items()}
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if found := re.search(r"running on (http://\S+:\d+)", line):
                break
        else:
            pytest.fail("it has ended")
        try:
            yield found[1], process
        finally:
            process.kill()


def ended(line: str, code: str = COMMAND, **options: Any) -> tuple[int, str, str]:
    """Run the command in a process of its own to its end: status, stdout, stderr."""
    command = [sys.executable, "-c", code, *line.split()]
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return result.returncode, result.stdout, result.stderr


RunCommand = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Runs the command to its end: status, stdout, stderr."""

    def run(line: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            commands(line.split())
        return end.value.code, *capsys.readouterr()

    return run


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
    with served(SIGNATURE_SECRET="sesame\nacme other", **settings) as (url, process):  # noqa: S106
        hook = f"{url}/hooks"
        assert post(hook, **(sent | {"X-Check": ""})) == (401, "Not signed with the secret")
        response = requests.post(hook, NOTIFICATION, headers=sent, timeout=60)
        with connect(url) as connection:
            start = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            start += f"X-Check: {sent['X-Check']}\r\n"
            connection.sendall(f"{start}Content-Length: {len(NOTIFICATION)}\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            process.send_signal(stop)
            connection.sendall(NOTIFICATION)
            answer = connection.recv(65536)
        _, errors = process.communicate(timeout=60)

    assert (response.status_code, response.headers["Connection"]) == (200, "close")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert process.returncode in {0, -signal.SIGTERM}
    assert errors.count('INFO POST: 200 {"publicIds":1}\n') == 2
    assert TOKEN not in errors
    assert "Traceback" not in errors
    logs = [NotificationLog(f"sqlite:///my.db?name={name}") for name in ("default", "acme")]
    assert [it.read().position for it in logs] == [2, 0]


def test_nothing_that_was_answered_is_lost() -> None:
    """Although the receiver is killed in the middle of many notifications."""
    answered: list[str] = []

    def send(sender: int) -> None:
        with contextlib.suppress(requests.RequestException):  # killed at any point
            for number in count(sender, 16):
                if post(f"{url}/hooks/{TOKEN}", f'{{"publicId": "{number}"}}') == NOTED:
                    answered.append(str(number))
                if len(answered) >= 200:
                    process.kill()

    with served(TOKEN=TOKEN) as (url, process), ThreadPoolExecutor(16) as pool:
        list(pool.map(send, range(16)))

    assert len(answered) >= 200
    assert {*answered} <= {*NotificationLog("sqlite:///changes.db").read().public_ids}


def test_headers_without_an_end_are_refused() -> None:
    """They would fill the memory, and a sender needs no token for them."""
    headers = b"".join(b"X-%d: %s\r\n" % (number, b"x" * 16_384) for number in range(1_000))
    refused = pytest.raises(ConnectionError)
    with served(TOKEN=TOKEN) as (url, _), connect(url) as connection, refused:
        connection.sendall(b"POST /hooks HTTP/1.1\r\n" + headers)


def test_a_taken_port_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        line = f"serve --port {taken.getsockname()[1]}"
        status, _, err = ended(line, env=os.environ | {f"{PREFIX}TOKEN": TOKEN})

    assert status > 0
    assert "address already in use" in err
    assert "Traceback" not in err


def test_variables_that_nothing_reads_are_named(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With a misspelt address, another log is written; a Service of Kubernetes sets the others."""
    caplog.set_level(logging.INFO)
    given = {"TOKEN": TOKEN, "CHANGS_URL": "sqlite:///a.db", "PORT": "tcp://10.0.0.7:8080"}
    for name, value in given.items():
        monkeypatch.setenv(PREFIX + name, value)

    with mock.patch("uvicorn.run") as serving:
        assert run("serve") == (0, "", "")

    assert {it: serving.call_args[1][it] for it in ("host", "port")} == {
        "host": "127.0.0.1",
        "port": 8080,
    }
    unknown = f"{PREFIX}CHANGS_URL, {PREFIX}PORT"
    assert caplog.messages == [f"These variables have no effect: {unknown}"]


SIGNED = {"TOKEN": f"acme {TOKEN}", "SIGNATURE_SECRET": "s", "SIGNATURE_HEADER": "X"}


@pytest.mark.parametrize(
    ("settings", "line", "words"),
    [
        ({}, "serve", "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more"),
        ({"TOKEN_FILE": "no"}, "serve", "PUBLIC_JOBS_WEBHOOK_TOKEN_FILE is not a file that can be"),
        ({"TOKEN_FILE": sys.executable}, "serve", "is not a file that can be read"),  # not UTF-8
        ({"TOKEN": TOKEN, "SIGNATURE_SECRET": "s"}, "serve", f"set both {PREFIX}SIGNATURE_HEADER"),
        ({"TOKEN": TOKEN}, "serve --signature-header X", f"set both {PREFIX}SIGNATURE_HEADER"),
        (SIGNED, "serve", f"with the same organisations as {PREFIX}TOKEN, or neither"),
        ({"TOKEN": TOKEN, "CHANGES_URL": "x.db"}, "serve", "changes_url must be sqlite:///path"),
        ({"TOKEN": TOKEN}, "serve --changes-url sqlite:///no/no.db", "the folder of the file"),
    ],
)
def test_a_mistake_is_one_line(
    run: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    line: str,
    words: str,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.delattr("uvicorn.run")  # else a setting that is not refused is served for ever

    status, out, err = run(line)

    assert (status, out) == (1, "")
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1
    assert TOKEN not in err


WEBHOOKS = (Path(__file__).parents[2] / "docs/set-up/webhooks.md").read_text("utf-8")
SETTINGS = WEBHOOKS.partition("\n### Settings of the receiver\n")[2]
SECRETS = {"PUBLIC_JOBS_WEBHOOK_TOKEN", "PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET"}


def test_every_setting_is_in_the_table_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = commands.commands["serve"]
    rows = re.findall(r"^\| ([`\N{EN DASH}].*?) \| `?(.*?)`? \|", SETTINGS, flags=re.MULTILINE)
    listed = {(name, option) for cell, option in rows for name in re.findall(r"`(.*?)`", cell)}
    expected = {(name, "\N{EN DASH}") for name in SECRETS}
    monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", "any other variable is read first")
    for name, _ in listed - expected:
        with monkeypatch.context() as environment:
            environment.setenv(name, "8")
            values = serve.make_context("serve", []).params
        expected |= {(name, it.opts[0]) for it in serve.params if str(values[it.name]) == "8"}

    assert listed == expected
    options = {option for _, option in rows}
    assert options == {it.opts[0] for it in serve.params} | {"\N{EN DASH}"}
    named = {*re.findall(rf"`({PREFIX}\w+)`", SETTINGS)}
    assert named == VARIABLES


def test_every_command_and_option_of_the_page_exists() -> None:
    parameters = [it for command in commands.commands.values() for it in command.params]
    known = {option for it in parameters for option in it.opts}
    used = re.findall(r"public-jobs-webhook (\w+)([^\n`]*)", WEBHOOKS)

    assert {name for name, _ in used} == set(commands.commands)
    for _, line in used:
        arguments = line.partition("||")[0].partition("#")[0]
        assert set(re.findall(r" (--[a-z-]+)", arguments)) <= known


def test_the_limits_are_those_of_the_code() -> None:
    for words in (
        f"the last {notifications.KEPT:,} notifications",
        f"longer than {app.BODY_PATIENCE} seconds",
        f"larger than {payload.LARGEST_BODY // 1024} KiB",
        f"beyond {app.MOST_NAMED:,} in one payload",
    ):
        assert words in WEBHOOKS
