"""Column names: those of the API's fields, or the snake case that SQL prefers."""

import re
from collections.abc import Mapping
from typing import Any, Literal

Naming = Literal["source", "snake_case"]


def column_of(field: str, naming: Naming) -> str:
    """Name the column of a field: `jobTitle`, or `job_title` under `snake_case`.

    No two fields in camel case get the same column, and `field_of` inverts it.
    """
    if naming == "source":
        return field
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", field)


def field_of(column: str) -> str:
    """Return the field in camel case of a column in snake case; other names stay as they are."""
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), column)


def named(schema: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
    """Rename the properties of a JSON schema; what is nested in them keeps the API's names."""
    properties = {column_of(field, naming): sub for field, sub in schema["properties"].items()}
    return {**schema, "properties": properties}
