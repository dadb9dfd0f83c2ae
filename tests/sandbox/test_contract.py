"""The served sandbox matches the API page, written down in `openapi.json`."""

import json
from pathlib import Path
from typing import Any

import requests
from e2e.pipeline import run
from jsonschema import Draft202012Validator
from public_jobs_sandbox.app import JOBS_PATH
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.state import Sandbox

DOCUMENT = Path(__file__).with_name("openapi.json")


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


def test_every_published_job_matches_the_document(sandbox: Sandbox, base_url: str) -> None:
    """Generated publicIds match no job, so this test requests the real ones."""
    document: dict[str, Any] = json.loads(DOCUMENT.read_text("utf-8"))
    validator = Draft202012Validator({**document, "$ref": "#/components/schemas/JobDetail"})

    for posting in sandbox.organisation.published():
        url = f"{base_url}{JOBS_PATH}/{posting.job['publicId']}"
        validator.validate(requests.get(url, headers={"x-api-key": sandbox.key}, timeout=10).json())

    assert [seen.status for seen in sandbox.requests] == [200] * 25
