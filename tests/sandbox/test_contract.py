"""The served sandbox keeps to its OpenAPI document, whatever is asked."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import hypothesis
import requests
import schemathesis

if TYPE_CHECKING:
    from sandbox.conftest import Api

DOCUMENT = resources.files("public_jobs_sandbox").joinpath("openapi.json")
SCHEMA = schemathesis.openapi.from_file(DOCUMENT.read_text("utf-8"))


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_every_answer_is_a_documented_one(case: schemathesis.Case[Any], api: Api) -> None:
    case.call_and_validate(
        base_url=api.base_url, headers={"Authorization": f"Bearer {api.sandbox.key}"}
    )


def test_every_published_job_is_a_documented_one(api: Api) -> None:
    """Generated publicIds meet no job, so these are asked for by name."""
    operation = SCHEMA["/api/public/v1/jobs/{publicId}"]["GET"]

    for public_id in api.sandbox.organisation.postings:
        operation.validate_response(api.detail(public_id))

    assert {seen.status for seen in api.sandbox.requests} == {200, 404}


def test_the_document_is_public_and_outside_the_api(api: Api) -> None:
    response = requests.get(f"{api.base_url}/openapi.json", timeout=10)

    assert response.status_code == 200
    assert sorted(response.json()["paths"]) == [
        "/api/public/v1/jobs",
        "/api/public/v1/jobs/{publicId}",
    ]
    assert api.sandbox.requests == []
