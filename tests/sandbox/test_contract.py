"""The served sandbox matches the API page, written down in `openapi.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import schemathesis

if TYPE_CHECKING:
    from sandbox.conftest import Api

DOCUMENT = Path(__file__).with_name("openapi.json")
SCHEMA = schemathesis.openapi.from_dict(json.loads(DOCUMENT.read_text("utf-8")))


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_every_response_is_documented(case: schemathesis.Case[Any], api: Api) -> None:
    case.call_and_validate(
        base_url=api.base_url, headers={"Authorization": f"Bearer {api.sandbox.key}"}
    )


def test_every_published_job_matches_the_document(api: Api) -> None:
    """Generated publicIds match no job, so this test requests the real ones."""
    operation = SCHEMA["/api/public/v1/jobs/{publicId}"]["GET"]

    for public_id in api.sandbox.organisation.postings:
        operation.validate_response(api.get(f"/api/public/v1/jobs/{public_id}"))

    assert {seen.status for seen in api.sandbox.requests} == {200, 404}
