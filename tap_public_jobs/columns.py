"""Sorts what the API answers into the columns that the schema declares, and loses none of it."""

from __future__ import annotations

import copy
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs.naming import Naming, column_of, field_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Json = Any

OTHERS = "additionalFields"
"""The column for all that has no column of its own."""

PUBLISHED = "isPublished"
"""The column for whether the job is published; the API does not send it."""

# As `connection.json_object` reads them.
_TYPES: dict[str, set[type]] = {
    "string": {str},
    "number": {int, Decimal},
    "integer": {int},
    "boolean": {bool},
    "array": {list},
    "object": {dict},
    "null": {type(None)},
}

_SIMPLE_KEYWORDS = {
    "type",
    "items",
    "properties",
    "additionalProperties",
    "title",
    "description",
    "$comment",
}


class Columns:
    """The columns of one stream.

    Args:
        properties: The `properties` of the stream's effective JSON schema.
        on_misfit: Called with the name of a field the first time that a value of it does not fit
            its declared type.
        naming: How the columns are named after the API's fields. One that has a field's own name
            is for that field under any naming.

    Attributes:
        flag: The column for whether the job is published, if there is one.
    """

    def __init__(
        self,
        properties: Mapping[str, dict[str, Json]],
        on_misfit: Callable[[str], None],
        naming: Naming = "source",
    ) -> None:
        for name in get_args(Naming):  # a catalog may be older than the setting
            if column_of(OTHERS, name) in properties:
                naming = name
        self._others = column_of(OTHERS, naming)
        self._fits = {
            column: _test(schema)
            for column, schema in properties.items()
            if column not in {OTHERS, self._others}
        }
        self._field = {column: field_of(column, naming) for column in self._fits}
        self._column = {column: column for column in self._fits}
        self._column |= {field: column for column, field in self._field.items()}
        self.flag = self._column.get(PUBLISHED)
        # A user's own column may be declared without null; it is left out where it has no value.
        self._never_null = [name for name, fits in self._fits.items() if not fits(None)]
        self._on_misfit = on_misfit
        self._misfits: set[str] = set()

    def row(self, document: Mapping[str, Json], **known: Json) -> dict[str, Json]:
        """Arrange one JSON object of the API as a record.

        Args:
            document: The object, numbers as `int` or `Decimal`.
            known: Fields whose value is known from elsewhere, should the object not have it.

        Returns:
            Every declared column, null where the object has no value that fits, and under
            `additionalFields` all other fields as they came, or null if there are none.
        """
        row: dict[str, Json] = dict.fromkeys(self._fits)
        others: dict[str, Json] = {}
        for field, value in document.items():
            column = self._column.get(field)
            # One field may be named as another's column is, or like that which is not the API's.
            own = column and self._field[column]
            if column is None or column == self.flag or (field != own and own in document):
                others[field] = value
            elif self._fits[column](value):
                row[column] = value
            elif value is not None:
                others[field] = value
                self._note_misfit(field)
        row[self._others] = others or None
        for field, value in known.items():
            if (column := self._column.get(field)) is not None:
                row[column] = row[column] or value
        for name in self._never_null:
            if row[name] is None:
                del row[name]
        return row

    def _note_misfit(self, name: str) -> None:
        if name not in self._misfits:
            self._misfits.add(name)
            self._on_misfit(name)


def _test(schema: dict[str, Json]) -> Callable[[Json], bool]:
    """Compile a JSON schema into a test of values.

    The keywords of this project's own schemas are tested by hand, fifty times faster than by the
    general validator, which serves whatever else a user declares.
    """
    if not schema.keys() <= _SIMPLE_KEYWORDS or schema.get("additionalProperties") is False:
        validator = DEFAULT_JSONSCHEMA_VALIDATOR(schema, format_checker=_formats())

        def is_valid(value: Json) -> bool:
            try:
                return bool(validator.is_valid(value))
            except (ArithmeticError, TypeError):  # multipleOf, of a decimal
                return False

        return is_valid
    declared = schema.get("type", list(_TYPES))
    names = [declared] if isinstance(declared, str) else declared
    types = frozenset[type]().union(*(_TYPES[name] for name in names))
    items = _test(schema["items"]) if "items" in schema else None
    properties = {name: _test(sub) for name, sub in schema.get("properties", {}).items()}
    if items is None and not properties:
        return lambda value: type(value) in types

    def fits(value: Json) -> bool:
        if type(value) not in types:
            return False
        if isinstance(value, list) and items:
            return all(map(items, value))
        if isinstance(value, dict):
            return all(test(value[name]) for name, test in properties.items() if name in value)
        return True

    return fits


@cache
def _formats() -> Any:  # noqa: ANN401  # jsonschema is the SDK's dependency, not ours
    """The formats that targets turn into column types, tested by reading the value."""
    import pendulum  # noqa: PLC0415  # loads slowly, and few users declare such a column

    formats = copy.deepcopy(DEFAULT_JSONSCHEMA_VALIDATOR.FORMAT_CHECKER)
    kinds = {"date-time": {"DateTime", "Date"}, "date": {"Date"}, "time": {"Time"}}

    def reads_as(names: set[str]) -> Callable[[Json], bool]:
        return lambda value: (
            not isinstance(value, str) or type(pendulum.parse(value, exact=True)).__name__ in names
        )

    for name, names in kinds.items():
        # pendulum fails on some intervals with what is not its own error.
        formats.checks(name, raises=(AttributeError, TypeError, ValueError))(reads_as(names))
    return formats
