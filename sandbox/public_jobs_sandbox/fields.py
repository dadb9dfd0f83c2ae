"""The documented fields of jobs, from the tap's schema files (*Resources and their fields*).

The files are read as data; no code of the tap is imported.
"""

import json
from importlib import resources
from typing import Any, Literal

Schema = dict[str, Any]

_QUESTION: dict[str, Schema] = {
    "id": {"type": "string", "description": "Identifier of the question."},
    "question": {"type": "string", "description": "Text of the question."},
    "required": {"type": "boolean", "description": "Whether an answer is required."},
    "type": {"type": "string", "description": "`boolean`; other values are not documented."},
}

KNOCKOUT_QUESTIONS: Schema = {
    "type": "array",
    "description": "Screening questions whose answer can rule out an applicant.",
    "items": {"type": "object", "required": list(_QUESTION), "properties": _QUESTION},
}
"""The schema files declare text: the tap writes this field as JSON text."""


def documented(stream: Literal["jobs", "job_details"]) -> dict[str, Schema]:
    """Return the JSON schema of each field of a summary or a detail, by name.

    The schema files accept null everywhere, so that the tap loses no value.
    The sandbox always answers with a value, so null is removed here.
    """
    file = resources.files("tap_public_jobs.schemas").joinpath(f"{stream}.json")
    properties = json.loads(file.read_text("utf-8"))["properties"]
    # The tap adds this column; the API has no such field.
    del properties["additionalFields"]
    return {
        name: KNOCKOUT_QUESTIONS if name == "knockoutQuestions" else _answered(schema)
        for name, schema in properties.items()
    }


def _answered(schema: Schema) -> Schema:
    """Return a schema without null."""
    if isinstance(schema["type"], str):
        return schema
    (kind,) = set(schema["type"]) - {"null"}
    return schema | {"type": kind}
