"""The OpenAPI document of the sandbox."""

import json
from importlib import resources
from typing import Any

from public_jobs_sandbox.fields import documented


def load() -> dict[str, Any]:
    """Return `openapi.json`, completed with the fields of jobs from the schema files."""
    text = resources.files("public_jobs_sandbox").joinpath("openapi.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    schemas = document["components"]["schemas"]
    summary = documented("jobs")
    schemas["JobSummary"] |= {"required": list(summary), "properties": summary}
    schemas["JobDetail"]["properties"] = {
        name: schema for name, schema in documented("job_details").items() if name not in summary
    }
    return document
