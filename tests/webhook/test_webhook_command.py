"""The command: settings, one line for what its user can mend, a graceful stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from webhook.command import COMMAND, PREFIX, run
from webhook.served import TOKEN

from tap_public_jobs.changelog import ChangeLog

NOTIFICATION = b'{"publicId": "designer-paris-1a2b3c"}'


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_ends_what_it_has_begun(
    tmp_path: Path, stop: signal.Signals
) -> None:
    """With its settings from the environment, and its secrets from files."""
    secret = tmp_path / "secret"
    secret.write_text(f"{TOKEN}\n")
    settings = {
        "CHANGES_URL": "sqlite:///my.db",
        "TOKEN_FILE": str(secret),
        "PORT": "0",
        "HOST": "127.0.0.1",
    }
    with subprocess.Popen(
        [*COMMAND, "serve"],
        env=os.environ | {PREFIX + name: value for name, value in settings.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        assert process.stdout
        line = process.stderr.readline()
        found = re.fullmatch(r"Receiving at http://127\.0\.0\.1:(\d+)/hooks/<token> .*\n", line)
        assert found, line + process.stderr.read()
        address = "127.0.0.1", int(found[1])
        url = f"http://{address[0]}:{address[1]}"
        requests.post(f"{url}/hooks/{TOKEN}", NOTIFICATION, timeout=30).raise_for_status()
        with socket.create_connection(address) as connection:
            start = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            connection.sendall(f"{start}Content-Length: {len(NOTIFICATION)}\r\n\r\n".encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            process.send_signal(stop)
            connection.sendall(NOTIFICATION)
            answer = connection.recv(65536)
        code = process.wait(timeout=30)
        errors, output = process.stderr.read(), process.stdout.read()

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert code == 0
    assert [line.partition(" INFO ")[2] for line in errors.splitlines()] == [
        'POST: 200 {"publicIds":1}'
    ] * 2
    assert output == ""
    counts = ChangeLog(f"sqlite:///{tmp_path / 'my.db'}").counts()
    assert (counts.position, counts.rows, counts.unrecognised) == (2, 1, 0)


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more"),
        ({"TOKEN": "short"}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more"),
        ({"TOKEN": TOKEN + "/"}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more"),
        ({"TOKEN_FILE": "no"}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN_FILE is not a file that can be"),
        ({"TOKEN_FILE": "."}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN_FILE is not a file that can be"),
        ({"TOKEN": TOKEN, "SIGNATURE_SECRET": "s"}, "", "set both PUBLIC_JOBS_WEBHOOK_SIGNATURE_"),
        ({"TOKEN": TOKEN}, "--signature-header X", "set both PUBLIC_JOBS_WEBHOOK_SIGNATURE_HEAD"),
        ({"TOKEN": TOKEN, "PORT": "http"}, "", "Invalid value for '--port'"),
        ({"TOKEN": TOKEN}, "--port 65536", "Invalid value for '--port'"),
        ({"TOKEN": TOKEN}, "--host 192.0.2.1", "choose another --host or --port"),
        ({"TOKEN": TOKEN, "CHANGES_URL": "x.db"}, "", "changes_url must be sqlite:///path/to/"),
        ({"TOKEN": TOKEN}, "--changes-url sqlite:///no/no.db", "(No such file or directory)"),
        (
            {"TOKEN": TOKEN},
            "--changes-url postgresql://me:sesame@127.0.0.1/db",
            "set PUBLIC_JOBS_WEBHOOK_CHANGES_URL instead",
        ),
        ({"TOKEN": TOKEN}, "--token x", "No such option"),
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

    message, out, err = run(capsys, "serve", *arguments.split())

    assert isinstance(message, str)
    assert message.startswith("Error: ")
    assert words in message
    assert "\n" not in message
    assert TOKEN not in message
    assert "sesame" not in message
    assert (out, err) == ("", "")


def test_a_taken_port_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"{PREFIX}TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message, *_ = run(capsys, "serve", "--port", str(port))

    assert message == (
        f"Error: Cannot listen on 127.0.0.1:{port} (Address already in use): "
        "choose another --host or --port"
    )


def test_without_a_command_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys)

    assert status == 2
    assert all(name in out + err for name in ("serve", "log", "prune"))


def test_the_log_is_shown(log_of_four: ChangeLog, capsys: pytest.CaptureFixture[str]) -> None:
    log_of_four.keep('{"job": "a"}')
    log_of_four.keep("[5]")
    name = log_of_four.read().log
    summary = f"Jobs: 4, the last at position 4. Payloads not recognised: 2. Log: {name}.\n"

    assert run(capsys, "log") == (0, "a\nb\nc\nd\n", summary)
    assert run(capsys, "log", "--last", "2") == (0, "c\nd\n", summary)
    status, out, err = run(capsys, "log", "--unrecognised")
    assert (status, err) == (0, "")
    assert re.sub(r"(?m)^\S+ ", "", out) == '{"job": "a"}\n[5]\n'
    assert (
        re.sub(r"(?m)^\S+ ", "", run(capsys, "log", "--unrecognised", "--last", "1")[1]) == "[5]\n"
    )


def test_a_log_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    message = (
        "Error: There is no change log in changes.db. Correct changes_url, or start "
        "public-jobs-webhook with the same one first."
    )
    assert run(capsys, "log") == (message, "", "")


@pytest.mark.usefixtures("log_of_four")
def test_an_output_on_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*COMMAND, "log"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    message = "Error: The output cannot be written (No space left on device)\n"
    assert (result.returncode, result.stderr) == (1, message)


def test_the_url_may_be_the_one_of_the_tap(
    log_of_four: ChangeLog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", "sqlite:///tap.db")
    ChangeLog("sqlite:///tap.db").append(["z"])

    assert run(capsys, "log")[1] == "z\n"
    assert run(capsys, "log", "--changes-url", "sqlite:///changes.db")[1] == "a\nb\nc\nd\n"
    assert log_of_four.counts().rows == 4


def test_what_could_act_on_a_terminal_is_shown_as_json_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = ChangeLog("sqlite:///changes.db")
    log.append(["\x1b[2Jé", "a\nb", "\u202eb\x9b"])
    log.keep("\x1b]0;x\x07\r\n\u2028")

    assert run(capsys, "log")[1] == "\\u001b[2Jé\na\\nb\n\\u202eb\\u009b\n"
    out = run(capsys, "log", "--unrecognised")[1]
    assert out.partition(" ")[2] == "\\u001b]0;x\\u0007\\r\\n\\u2028\n"


def test_an_address_of_ipv6_is_shown_as_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}TOKEN", TOKEN)
    with subprocess.Popen(
        [*COMMAND, "serve", "--host", "::1", "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        line = process.stderr.readline()
        try:
            found = re.search(r"http://\[::1\]:\d+", line)
            assert found, line
            assert requests.get(f"{found[0]}/health", timeout=30).text == "OK"
        finally:
            process.terminate()
            process.stderr.read()


def test_a_receiver_without_its_extra_names_the_remedy(tmp_path: Path) -> None:
    """In a process of its own, because here the receiver is imported already."""
    code = (
        "import sys; sys.modules['starlette.exceptions'] = None; "
        "from tap_public_jobs.webhook.cli import main; main()"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--changes-url", f"sqlite:///{tmp_path}/changes.db"],
        env={"PUBLIC_JOBS_WEBHOOK_TOKEN": "t" * 32},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 1
    assert "install tap-public-jobs[webhook]" in done.stderr
    assert "Traceback" not in done.stderr
