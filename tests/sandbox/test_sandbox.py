"""The command `public-jobs-sandbox serve`."""

import signal
import subprocess
import sys

import requests
from click.testing import CliRunner
from public_jobs_sandbox.app import JOBS_PATH
from public_jobs_sandbox.cli import main


def test_a_rejection_that_is_no_status_is_refused() -> None:
    result = CliRunner().invoke(main, ["serve", "--reject-with", "403X"])

    assert result.exit_code == 2
    assert "'403X' is not a status, such as 503, alone or with a header" in result.stderr


def test_the_command_serves_until_ctrl_c() -> None:
    code = "from public_jobs_sandbox.cli import main; main()"
    options = ["--port", "0", "--jobs", "3", "--limit", "2", "--fault", "http_503", "2"]
    options += ["--reject-with", "403 X-Reset: {}"]
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
                exports["TAP_PUBLIC_JOBS_BASE_URL"] + JOBS_PATH,
                headers={"x-api-key": exports["TAP_PUBLIC_JOBS_API_KEY"]},
                timeout=10,
            )
            for _ in range(3)
        ]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0

    assert [answer.status_code for answer in answers] == [200, 503, 403]
    assert answers[2].headers["X-Reset"] == "60"
    assert answers[0].json()["total"] == 3
