"""The fields of the API, for peers that want them declared.

They are named where the project names them: in the sandbox, and in the tap's schema files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from public_jobs_sandbox.postings import make_jobs, summary

SCHEMAS = Path(__file__).parents[1] / "tap_public_jobs" / "schemas"
TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}


def schemas() -> dict[str, Any]:
    """Return a JSON schema for the summaries and one for the details, by stream."""
    (job,) = make_jobs(1)
    return {"jobs": _schema("jobs", summary(job)), "job_details": _schema("job_details", job)}


def _schema(stream: str, answered: dict[str, Any]) -> dict[str, Any]:
    """Describe what the API answers: as the tap declares it, or else by the type of its value."""
    text = (SCHEMAS / f"{stream}.json").read_text(encoding="utf-8")
    declared = json.loads(text)["properties"]
    return {
        "type": "object",
        "additionalProperties": True,
        "properties": {
            name: declared.get(name) or {"type": [TYPES[type(value)], "null"]}
            for name, value in answered.items()
        },
    }
