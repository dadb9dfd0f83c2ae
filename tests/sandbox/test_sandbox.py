"""The sandbox answers as the API page says, counts as each kind of limit does, and is a command.

`openapi.json` is the API page, written down.
"""

import json
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from dotenv import dotenv_values
from e2e.pipeline import run
from jsonschema import Draft202012Validator
from public_jobs_sandbox.app import JOBS_PATH
from public_jobs_sandbox.cli import main
from public_jobs_sandbox.limits import ALGORITHMS
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.state import Sandbox

DOCUMENT = Path(__file__).with_name("openapi.json")
LIMIT, PERIOD = 4, 60.0


def test_every_response_is_documented(sandbox: Sandbox, base_url: str, tmp_path: Path) -> None:
    """Schemathesis has an environment of its own, which uv makes when the test runs."""
    command = [*uv_command(), "tool", "run", "--from", "schemathesis~=4.3", "schemathesis", "run"]
    command += [str(DOCUMENT), "--url", base_url]
    command += ["--header", f"Authorization: Bearer {sandbox.key}"]
    # The two phases that make requests up; the same ones in each run.
    command += ["--phases", "coverage,fuzzing", "--max-examples", "50", "--seed", "1"]
    command += ["--suppress-health-check", "all"]

    finished = run(*command, folder=tmp_path)

    assert "2 passed" in finished.succeeded().output
    assert {seen.status for seen in sandbox.requests} == {200, 400, 401, 404, 405}


def test_every_published_job_matches_the_document(sandbox: Sandbox) -> None:
    """Generated publicIds match no job; tests/test_streams.py compares details with these jobs."""
    document: dict[str, Any] = json.loads(DOCUMENT.read_text("utf-8"))
    validator = Draft202012Validator({**document, "$ref": "#/components/schemas/JobDetail"})

    for posting in sandbox.organisation.published():
        validator.validate(posting.job)


# Times of requests, in seconds; behind a colon, how long a rejected one has to wait.
@pytest.mark.parametrize(
    ("algorithm", "times"),
    [
        # The oldest request expires after a period.
        ("sliding_log", "0 10 20 30 59:1 60 61:9"),
        # Two bursts fit around a multiple of the period.
        ("fixed_window", "59 59 59 59 59:1 60 60 60 60 61:59"),
        # A burst, then one more every 15 s.
        ("token_bucket", "0 0 0 0 0:15 15 16:14 45 45 45:15"),
        # A burst still counts in the next window, and an idle window resets the count.
        ("sliding_counter", "59 59 59 59 59:16 60:15 75 75:15 90"),
        ("sliding_counter", "0 0 0 0 120 120 120 120"),
        # One request every 15 s, and no burst after a pause.
        ("leaky_bucket", "0 0:15 14:1 15 29:1 30 300 301:14"),
    ],
)
def test_each_algorithm_counts_in_its_own_way(algorithm: str, times: str) -> None:
    limiter = ALGORITHMS[algorithm](LIMIT, PERIOD)

    for time, _, wait in (it.partition(":") for it in times.split()):
        assert limiter.hit(float(time)) == (float(wait) if wait else None)


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
        lines = "".join(process.stdout.readline() for _ in range(2))
        exports = dotenv_values(stream=StringIO(lines))
        url = f"{exports['TAP_PUBLIC_JOBS_BASE_URL']}{JOBS_PATH}"
        headers = {"x-api-key": exports["TAP_PUBLIC_JOBS_API_KEY"]}
        answers = [requests.get(url, headers=headers, timeout=10) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0

    assert [answer.status_code for answer in answers] == [200, 503, 403]
    assert answers[2].headers["X-Reset"] == "60"
    assert answers[0].json()["total"] == 3
