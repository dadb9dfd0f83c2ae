"""The command: settings, one line for what its user can mend, a graceful stop.

Also whether a run has work to do, which a scheduler asks, and the pages on webhooks, which have
every setting, answer and limit, and none that does not exist.
"""

import contextlib
import hmac
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import requests
from webhook.conftest import NOTED, NOTIFICATION, TOKEN, connect, post

from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync import notifications
from tap_public_jobs.sync.state import Cycle, KnownJob, LastRead, SyncState
from tap_public_jobs.sync.state_json import dump
from tap_public_jobs.webhook import app, payload
from tap_public_jobs.webhook.cli import commands, main, read_state

COMMAND = "from tap_public_jobs.webhook.cli import main; main()"
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
            main(line.split())
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
    assert sorted(
        it.position for it in NotificationLog("sqlite:///my.db").positions().values()
    ) == [0, 2]


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


def test_a_misspelt_variable_is_named() -> None:
    """Without its address, the receiver would make another log, which no run reads."""
    misspelt = f"{PREFIX}CHANGS_URL"
    given = {f"{PREFIX}TOKEN": TOKEN, f"{PREFIX}SERVICE_PORT": "80", misspelt: "sqlite:///a.db"}
    status, _, err = ended("serve --port 0", env=os.environ | given)

    says = f"Error: {misspelt} has no effect: did you mean {PREFIX}CHANGES_URL?\n"
    assert (status, err) == (2, says)


STATE = SyncState(
    run_time=1_700_000_000,
    listed_at=1_700_000_000,
    jobs={"1": KnownJob("a", None, 1, 1_700_000_000, fetched_at=2)},
    forms={"job_details": "f"},
    cycle=Cycle(1_700_000_000, "changed", 1_700_000_000, has_ended=True),
    last_read=LastRead("log", 5),
)


def written(state: SyncState) -> dict[str, Any]:
    """The state as the tap writes it."""
    singer_state: dict[str, Any] = {}
    dump(state, singer_state)
    return singer_state


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (written(STATE), STATE),
        ({"singer_state": written(STATE)}, STATE),
        ({"bookmarks": {"jobs": {"sync": {"format": 1}}}}, SyncState()),
        ({"singer_state": None}, SyncState()),
        ([], SyncState()),
        (b"nonsense \xff", SyncState()),
        (b"[" * 100_000, SyncState()),
    ],
)
def test_a_state_that_cannot_be_read_is_that_of_a_first_run(content: Any, state: SyncState) -> None:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    Path("state.json").write_bytes(text)

    assert read_state("state.json") == state
    assert read_state("no.json") == SyncState()


@pytest.fixture
def states() -> str:
    """The options for two logs, each with a state that has read all of it."""
    for name in ("default", "acme"):
        log = NotificationLog(f"sqlite:///changes.db?name={name}")
        log.append({log.name: ["a"]})
        read = replace(STATE, last_read=LastRead(log.read().log_id, 1))
        Path(f"{name}.json").write_text(json.dumps(written(read)))
    return "--state default=default.json --state acme=acme.json"


def test_the_names_with_news_are_printed(states: str, run: RunCommand) -> None:
    assert run(f"news {states}") == (1, "", "")
    assert run("news --state default.json") == (1, "", "")
    url = "sqlite:///changes.db?name=acme"
    NotificationLog(url).append({"acme": [None]})
    assert run(f"news {states}") == (0, "acme\n", "")
    assert run(f"news --changes-url {url} --state acme.json") == (0, "", "")
    assert run(f"news --changes-url {url} --state default=default.json") == (1, "", "")
    # A log that is not there does not hide the news of others.
    status, out, err = run(f"news {states} --state typo=x")
    assert (status, out) == (0, "acme\n")
    assert err.startswith(
        "Error: There is no notification log with the name typo: add a line `typo <token>`"
    )
    Path("default.json").rename("day=1.json")
    assert run("news --state default=day=1.json") == (1, "", "")


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
        ({}, "news", "Missing option '--state'"),
        ({}, "news --state x=x", "There is no notification log with the name x"),
        ({}, "news --state x --changes-url sqlite:///no.db", "is no notification log in no.db"),
    ],
)
@pytest.mark.usefixtures("states")
def test_a_mistake_is_one_line_and_not_taken_for_the_absence_of_news(
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

    assert (status, out) == (2, "")
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1
    assert TOKEN not in err


@pytest.mark.parametrize("missing", ["uvicorn", "starlette.applications"])
def test_a_receiver_without_its_extra_names_the_remedy(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "tap_public_jobs.webhook.app")  # imported already

    said = f"Error: The receiver needs {missing}: install tap-public-jobs[webhook].\n"
    assert run("serve") == (2, "", said)


@pytest.mark.usefixtures("states")
def test_a_scheduler_may_start_it_often_and_without_stdin() -> None:
    """It imports nothing else that takes long."""
    slow = ("singer_sdk", "requests", "psycopg", "starlette", "uvicorn", "standardwebhooks")
    code = f"import atexit, sys; atexit.register(lambda: print(*{{*{slow}}} & {{*sys.modules}}));"
    line = "news --state acme=-"
    with Path("acme.json").open() as file:
        assert ended(line, code + COMMAND, stdin=file) == (1, "\n", "")
    assert ended(line, f"import sys; sys.stdin = None; {COMMAND}") == (0, "acme\n", "")


@pytest.mark.parametrize(
    ("error", "status", "end"),
    [(MemoryError, 2, "\nMemoryError\n"), (KeyboardInterrupt, 130, "\n")],
)
def test_what_goes_wrong_unforeseen_is_not_taken_for_the_absence_of_news(
    run: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    status: int,
    end: str,
) -> None:
    monkeypatch.setattr(NotificationLog, "positions", mock.Mock(side_effect=error))

    ended_with, out, err = run("news --state default.json")

    assert (ended_with, out) == (status, "")
    assert err.endswith(end)


WEBHOOKS = (Path(__file__).parents[2] / "docs/set-up/webhooks.md").read_text("utf-8")
SETTINGS = WEBHOOKS.partition("\n### Settings of the receiver\n")[2]
SECRETS = {"PUBLIC_JOBS_WEBHOOK_TOKEN", "PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET"}


def test_every_setting_is_in_the_table_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = commands.commands["serve"]
    rows = re.findall(r"^\| (`PUBLIC.*?) \| `?(.*?)`? \|", SETTINGS, flags=re.MULTILINE)
    listed = {(name, option) for cell, option in rows for name in re.findall(r"`(.*?)`", cell)}
    expected = {(name, "\N{EN DASH}") for name in SECRETS}
    monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", "any other variable is read first")
    for name, _ in listed - expected:
        with monkeypatch.context() as environment:
            environment.setenv(name, "8")
            values = serve.make_context("serve", []).params
        expected |= {(name, it.opts[0]) for it in serve.params if str(values[it.name]) == "8"}

    assert listed == expected
    assert {it.opts[0] for it in serve.params} < {option for _, option in listed}


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
