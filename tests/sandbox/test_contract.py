"""The served sandbox matches its OpenAPI document, whatever the request."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import hypothesis
import requests
import schemathesis
from public_jobs_sandbox import openapi
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, make_jobs, summary

if TYPE_CHECKING:
    from sandbox.conftest import Api

SCHEMA = schemathesis.openapi.from_dict(openapi.load())


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=100,
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
        operation.validate_response(api.detail(public_id))

    assert {seen.status for seen in api.sandbox.requests} == {200, 404}


def test_the_document_is_public_and_outside_the_api(api: Api) -> None:
    response = requests.get(f"{api.base_url}/openapi.json", timeout=10)

    assert response.status_code == 200
    assert response.json() == openapi.load() | {"servers": [{"url": "/"}]}
    assert sorted(response.json()["paths"]) == [
        "/api/public/v1/jobs",
        "/api/public/v1/jobs/{publicId}",
    ]
    assert api.sandbox.requests == []


def test_the_document_describes_every_field_but_the_undocumented_ones() -> None:
    (job,) = make_jobs(1)
    schemas = openapi.load()["components"]["schemas"]
    in_summary, only_in_detail = (
        schemas[name]["properties"].keys() for name in ("JobSummary", "JobDetail")
    )

    assert in_summary == summary(job).keys()
    assert only_in_detail == job.keys() - summary(job).keys() - set(UNDOCUMENTED_FIELDS)
    assert schemas["JobSummary"]["required"] == list(in_summary)


def test_the_document_never_promises_null() -> None:
    """The tap accepts null in every field; the API does not document that it occurs."""
    assert "'null'" not in str(openapi.load())


def test_the_sandbox_reads_the_schema_files_and_no_code_of_the_tap() -> None:
    loaded = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys, public_jobs_sandbox.cli; print(*sys.modules)",
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()

    of_the_tap = {name for name in loaded if name.partition(".")[0] == "tap_public_jobs"}
    assert of_the_tap == {"tap_public_jobs", "tap_public_jobs.schemas"}
