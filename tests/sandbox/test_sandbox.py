"""The command `public-jobs-sandbox serve`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import requests
from click.testing import CliRunner
from public_jobs_sandbox.cli import main
from sandbox.conftest import JOBS


def test_the_command_serves_until_ctrl_c() -> None:
    code = "from public_jobs_sandbox.cli import main; main()"
    options = ["--port", "0", "--jobs", "3", "--limit", "2", "--fault", "http_503", "2"]
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
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
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0

    assert [answer.status_code for answer in answers] == [200, 503, 429]
    assert answers[0].json()["total"] == 3


def test_a_taken_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "--port", str(port)])

    assert result.exit_code == 1
    assert result.output.startswith(f"Error: Cannot listen on port {port}: ")
    assert result.output.count("\n") == 1
