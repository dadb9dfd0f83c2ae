"""The served sandbox matches the API page, written down in `openapi.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import requests
import schemathesis

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox

DOCUMENT = Path(__file__).with_name("openapi.json")
SCHEMA = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_text("utf-8")))


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_every_response_is_documented(
    case: schemathesis.Case[Any], sandbox: Sandbox, base_url: str
) -> None:
    case.call_and_validate(base_url=base_url, headers={"Authorization": f"Bearer {sandbox.key}"})


def test_every_published_job_matches_the_document(sandbox: Sandbox, base_url: str) -> None:
    """Generated publicIds match no job, so this test requests the real ones."""
    operation = SCHEMA["/api/public/v1/jobs/{publicId}"]["GET"]

    for public_id in sandbox.organisation.postings:
        url = f"{base_url}/api/public/v1/jobs/{public_id}"
        operation.validate_response(
            requests.get(url, headers={"x-api-key": sandbox.key}, timeout=10)
        )

    assert {seen.status for seen in sandbox.requests} == {200, 404}
