"""Names of fields, and of columns: those of the fields, or the snake case that SQL prefers."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from tap_public_jobs.lines import closest, quoted

Naming = Literal["source", "snake_case"]

# A field without a column of its own, as a part of the column that has them all.
_PART = re.compile(r"additional(?:Fields|_fields)\.([^.]+)")


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


def fields_of(names: Iterable[str]) -> frozenset[str]:
    """Return the fields that a user names: as they are called, like their column, or as a part."""
    fields = {_PART.sub(r"\1", name) for name in names}
    return frozenset(fields | {field_of(name) for name in fields})


def wrong_names(
    names: Iterable[str], keys: Collection[str], columns: Collection[str] | None = None
) -> Iterator[str]:
    """Say what is wrong with names of fields that a user wrote.

    Args:
        names: Of fields to leave out.
        keys: The fields without which there is no record.
        columns: The fields that have a column; None if any name may be that of a field.
    """
    for name in names:
        if not fields_of([name]).isdisjoint(keys):
            yield f"must not have {' or '.join(keys)}, without which there is no record: remove it."
        elif columns and not _PART.fullmatch(name) and field_of(name) not in columns:
            meant = closest(name, {*columns}.difference(keys))
            hint = f"but {meant}" if meant else "and one without a column is additionalFields.x"
            yield f"there is no field {quoted(name)}, {hint}."


def named(schema: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
    """Rename the properties of a JSON schema; what is nested in them keeps the API's names."""
    properties = {column_of(field, naming): sub for field, sub in schema["properties"].items()}
    return {**schema, "properties": properties}
