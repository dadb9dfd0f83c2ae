"""The command: settings, one line for what its user can mend, a graceful stop, retention."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import requests
from webhook.served import TOKEN

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.cli import main

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-c", "from tap_public_jobs.webhook.cli import main; main()"]
PREFIX = "PUBLIC_JOBS_WEBHOOK_"
NOTIFICATION = b'{"publicId": "designer-paris-1a2b3c"}'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder of its own, and no settings but those of the test."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith((PREFIX, "TAP_PUBLIC_JOBS_")):
            monkeypatch.delenv(name)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int | str | None, str, str]:
    """Run the command to its end: status or last words, stdout, stderr."""
    status: int | str | None = 0
    try:
        main(arguments)
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()


def place(log: ChangeLog, position: Any, others: dict[str, object] | None = None) -> Any:
    """A state of the tap that has read up to a position."""
    sync = {
        "format": 2,
        "log": [log.read().log, position],
        "listedAt": 1_700_000_000_000,
        "run": None,
        "jobs": {"1": ["a", 1, None, "f3", 2]},
    }
    return {"bookmarks": {"jobs": {"sync": sync | (others or {})}}}


@pytest.fixture
def log() -> ChangeLog:
    log = ChangeLog("sqlite:///changes.db")
    log.append(["a", "b", "c", "d"])
    return log


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
        ({}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be 32 or more"),
        ({"TOKEN": "short"}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be 32 or more"),
        ({"TOKEN": TOKEN + "/"}, "", "PUBLIC_JOBS_WEBHOOK_TOKEN must be 32 or more"),
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


def test_without_a_command_it_tells_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys)

    assert status == 2
    assert all(name in out + err for name in ("serve", "log", "prune"))


def test_the_log_is_shown(log: ChangeLog, capsys: pytest.CaptureFixture[str]) -> None:
    log.keep('{"job": "a"}')
    log.keep("[5]")
    summary = f"4 jobs, the last at position 4; 2 payloads not recognised. Log {log.read().log}.\n"

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


def test_the_url_may_be_the_one_of_the_tap(
    log: ChangeLog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", "sqlite:///tap.db")
    ChangeLog("sqlite:///tap.db").append(["z"])

    assert run(capsys, "log")[1] == "z\n"
    assert run(capsys, "log", "--changes-url", "sqlite:///changes.db")[1] == "a\nb\nc\nd\n"
    assert log.counts().rows == 4


def test_what_every_state_has_read_is_removed(
    log: ChangeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(place(log, 3, {"run": [1, 2]})))
    (tmp_path / "two.json").write_text(json.dumps({"singer_state": place(log, 2)}))

    result = run(capsys, "prune", "--state", "one.json", "--state", "two.json")

    assert result == (0, "2 rows removed, up to position 2.\n", "")
    assert log.read().public_ids == ["c", "d"]


def test_a_state_may_come_through_a_pipe(log: ChangeLog) -> None:
    result = subprocess.run(
        [*COMMAND, "prune", "--state", "-"],
        input=json.dumps(place(log, 4)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "4 rows removed, up to position 4.\n")
    assert log.read().public_ids == []


@pytest.mark.parametrize(
    "state",
    [
        "",
        "nonsense",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        '{"bookmarks": {"jobs": {"sync": null}}}',
        '{"singer_state": null}',
        {"format": 1},
        {"log": None},
        {"log": ["another", 3]},
        -1,
        5,
        "4",
        True,
        4.0,
        None,
    ],
)
def test_nothing_is_removed_for_a_state_that_has_not_read_it(
    log: ChangeLog,
    state: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = json.dumps(place(log, 3))
    wrong = state
    if isinstance(state, dict):
        wrong = json.dumps(place(log, 3, state))
    elif state == "4" or not isinstance(state, str):
        wrong = json.dumps(place(log, state))
    (tmp_path / "right.json").write_text(right)
    (tmp_path / "wrong.json").write_text(wrong)

    message, *_ = run(capsys, "prune", "--state", "right.json", "--state", "wrong.json")

    assert message == (
        "Error: Nothing was removed: --state wrong.json has no place in this change log. Give the "
        "state of a run with this changes_url, and first run those that have not read it."
    )
    assert log.read().public_ids == ["a", "b", "c", "d"]


def test_each_name_is_pruned_to_its_own_place(
    log: ChangeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acme = ChangeLog("sqlite:///changes.db?name=acme")
    acme.append(["x", "y"])
    (tmp_path / "acme.json").write_text(json.dumps(place(acme, 1)))
    (tmp_path / "default.json").write_text(json.dumps(place(log, 3)))

    result = run(capsys, "prune", "--state", "acme=acme.json", "--state", "default.json")

    said = "1 rows removed, up to position 1.\n3 rows removed, up to position 3.\n"
    assert result == (0, said, "")
    assert (acme.read().public_ids, log.read().public_ids) == (["y"], ["d"])


def test_age_and_number_are_pruned_in_all_logs(
    log: ChangeLog, capsys: pytest.CaptureFixture[str]
) -> None:
    acme = ChangeLog("sqlite:///changes.db?name=acme")
    acme.append(["x", "y"])
    log.keep("1")
    log.keep("2")

    assert run(capsys, "prune", "--older-than", "1")[1] == "0 rows and 0 payloads removed.\n"
    assert run(capsys, "prune", "--keep", "1")[1] == "4 rows and 1 payloads removed.\n"
    assert (acme.read().public_ids, log.read().public_ids) == (["y"], ["d"])
    assert [payload for _, payload in log.unrecognised(9)] == ["2"]
    assert run(capsys, "prune", "--older-than", "0")[1] == "2 rows and 1 payloads removed.\n"


@pytest.mark.parametrize("arguments", [[], ["--state", "no.json"]])
def test_prune_needs_to_know_what(
    log: ChangeLog, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    message, *_ = run(capsys, "prune", *arguments)

    assert isinstance(message, str)
    assert message.startswith("Error: Nothing was removed: ")
    assert "--state" in message
    assert log.counts().rows == 4


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


def test_tokens_are_read_again_after_a_signal(tmp_path: Path) -> None:
    """Without a gap; a file that cannot be used changes nothing."""
    file = tmp_path / "tokens"
    file.write_text(f"acme {TOKEN}\n")
    old, new = "x" * 32, "y" * 32

    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        env=os.environ | {f"{PREFIX}TOKEN_FILE": str(file)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        found = re.search(r"http://\S+:\d+", process.stderr.readline())
        assert found

        def reload(text: str) -> str:
            file.write_text(text)
            process.send_signal(signal.SIGHUP)
            assert process.stderr
            return process.stderr.readline().strip().partition(" ")[2].partition(" ")[2]

        def answers() -> list[int]:
            hook = f"{found[0]}/hooks"
            tokens = (TOKEN, old, new)
            statuses = [
                requests.post(f"{hook}/{it}", NOTIFICATION, timeout=30).status_code for it in tokens
            ]
            assert process.stderr
            return statuses + [0 for _ in statuses if not process.stderr.readline()]

        try:
            assert answers() == [200, 404, 404]
            said = reload(f"acme {TOKEN}\nacme {old}\nother {new}\n")
            assert said == "INFO The tokens were read again: 2 logs."
            assert ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}?name=other").read().position == 0
            assert answers() == [200, 200, 200]
            said = reload("acme short\n")
            assert said.startswith("ERROR The tokens are as they were: PUBLIC_JOBS_WEBHOOK_TOKEN ")
            assert said.endswith("(line 1 is wrong)")
            assert answers() == [200, 200, 200]
        finally:
            process.terminate()
            process.stderr.read()
    places = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}").places()
    assert {name: place.position for name, place in places.items()} == {"acme": 5, "other": 2}
