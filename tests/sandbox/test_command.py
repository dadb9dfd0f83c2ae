"""The command serves until it is stopped, and reports errors in one line."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest
import requests
from click.testing import CliRunner
from public_jobs_sandbox.cli import main

JOBS = "/api/public/v1/jobs"
COMMAND = [sys.executable, "-c", "from public_jobs_sandbox.cli import main; main()", "serve"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_its_settings_and_serves_until_it_is_stopped(stop: signal.Signals) -> None:
    with subprocess.Popen(
        [*COMMAND, "--port", "0", "--jobs", "3", "--limit", "2", "--fault", "http_503:2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        exports = dict(
            process.stdout.readline().removeprefix("export ").strip().split("=", 1)
            for _ in range(2)
        )
        answers = [
            requests.get(
                exports["TAP_PUBLIC_JOBS_BASE_URL"] + JOBS,
                headers={"x-api-key": exports["TAP_PUBLIC_JOBS_API_KEY"]},
                timeout=10,
            )
            for _ in range(3)
        ]
        process.send_signal(stop)
        code = process.wait(timeout=10)
        errors = process.stderr.read()

    assert [answer.status_code for answer in answers] == [200, 503, 429]
    assert answers[0].json()["total"] == 3
    assert code == 0
    assert errors == "Serving 3 published jobs until Ctrl-C.\n"


def test_a_taken_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "--port", str(port)])

    assert result.exit_code == 1
    assert result.output == f"Error: Cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("earthquake:3", "unknown fault 'earthquake'; use one of: reset"),
        ("reset", "'reset' does not say how often; use reset:10"),
        ("reset:0", "'reset:0' does not say how often; use reset:10"),
    ],
)
def test_an_invalid_fault_is_reported(fault: str, words: str) -> None:
    result = CliRunner().invoke(main, ["serve", "--fault", fault])

    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--webhook-url", "localhost/x"], "webhook_url must begin with http:// or https://"),
        (["--webhook-payload", "xml"], "'xml' is not one of 'flat', 'nested', 'batch', 'job'"),
    ],
)
def test_an_invalid_webhook_option_is_reported(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["serve", *arguments])

    assert result.exit_code == 2
    assert words in result.output
