"""The documented fields of jobs, from the tap's schema files (*Resources and their fields*).

The files are read as data; no code of the tap is imported.
"""

import json
from importlib import resources
from typing import Any, Literal

Schema = dict[str, Any]


def documented(stream: Literal["jobs", "job_details"]) -> dict[str, Schema]:
    """Return the JSON schema of each field of a summary or a detail, by name.

    The schema files accept null everywhere, so that the tap loses no value.
    The sandbox always answers with a value, so null is removed here.
    """
    file = resources.files("tap_public_jobs.schemas").joinpath(f"{stream}.json")
    properties = json.loads(file.read_text("utf-8"))["properties"]
    # The tap adds this column; the API has no such field.
    del properties["additionalFields"]
    return {name: _answered(schema) for name, schema in properties.items()}


def _answered(schema: Schema) -> Schema:
    """Return a schema without null, and with every property of an object required."""
    answered = dict(schema)
    if isinstance(schema["type"], list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        answered["type"] = kinds if len(kinds) > 1 else kinds[0]
    if "items" in schema:
        answered["items"] = _answered(schema["items"])
    if "properties" in schema:
        properties = {name: _answered(value) for name, value in schema["properties"].items()}
        answered |= {"properties": properties, "required": list(properties)}
    return answered
