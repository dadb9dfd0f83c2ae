"""Puts the fields of a response into the columns that the schema declares, and loses none."""

from collections.abc import Callable, Mapping
from datetime import datetime, time
from functools import cache
from typing import Any

from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs.lines import quoted
from tap_public_jobs.records.naming import column_of, field_of
from tap_public_jobs.records.storable import json_text, storable

Json = Any

# The column for every field without its own column.
OTHERS = "additionalFields"

# An array. Its column as text holds nothing but JSON arrays, so that SQL can always parse it.
QUESTIONS = "knockoutQuestions"

# Never JSON text of something nested, which would be the key of no job.
KEYS = ("id", "publicId")

# The largest integer that a double holds exactly; in most warehouses, a column of numbers is one.
# Apache Arrow, which writes Parquet, refuses a larger one.
LARGEST_EXACT = 2**53


class Columns:
    """The columns of one stream, named as the fields are, or in snake case.

    A column with the exact name of a field holds that field in either case.

    Args:
        properties: The `properties` of the stream's effective JSON schema.
        on_warning: Called with a sentence the first time that a value of a field does not fit its
            column, or cannot be stored as it is.

    Attributes:
        properties: Of the schema.
        undeclared: The fields that were seen and have no column.
    """

    def __init__(
        self, properties: Mapping[str, dict[str, Json]], on_warning: Callable[[str], None]
    ) -> None:
        self.properties = properties
        # A catalog may be older than the setting, so its own names decide.
        self._others = OTHERS if OTHERS in properties else column_of(OTHERS, "snake_case")
        self._fits = {
            column: _test(schema) for column, schema in properties.items() if column != self._others
        }
        self._others_are_text = not _test(properties.get(self._others, {}))({})
        fields = {column: field_of(column) for column in self._fits}
        self._field = {it: it if field in fields else field for it, field in fields.items()}
        self._column = {field: column for column, field in self._field.items()}
        self._column |= {column: column for column in self._fits}
        # A user may declare a column without null, which then is left out of a row without a value.
        self._never_null = {name for name, fits in self._fits.items() if not fits(None)}
        self._on_warning = on_warning
        self._warned: set[str] = set()
        self.undeclared: set[str] = set()

    def row(self, document: Mapping[str, Json], **defaults: Json) -> dict[str, Json]:
        """Arrange one JSON object of the API as a record.

        Args:
            document: The object, numbers as `int` or `Decimal`.
            defaults: Values for fields that the object may lack.

        Returns:
            Every declared column, null where the object has no value that fits, and under
            `additionalFields` all other fields, or null if there are none. A nested value is JSON
            text in a column of text, and stays as it is in one of arrays or objects.
        """
        row: dict[str, Json] = dict.fromkeys(self._fits)
        others: dict[str, Json] = {}
        for name, original in document.items():
            field, value = storable(name), storable(original)
            if (field, value) != (name, original):
                what = "holds a value that some warehouses cannot store and is replaced"
                self._warn(field, document, what)
            column = self._column.get(field)
            # A field may be named like the column of another one, which comes first.
            own = column and self._field[column]
            if column is None or (field != own and own in document):
                others[field] = value
                self.undeclared.add(field)
            elif value is not None:
                row[column] = self._held(column, value)
                if row[column] is None:
                    others[field] = value
                    what = "does not fit its type and is kept in additionalFields"
                    self._warn(field, document, what)
        if self._others in self.properties:
            held = json_text(others) if self._others_are_text else others
            row[self._others] = held if others else None
        for field, value in defaults.items():
            if (column := self._column.get(field)) is not None:
                row[column] = row[column] or storable(value)
        return {k: it for k, it in row.items() if it is not None or k not in self._never_null}

    def _held(self, column: str, value: Json) -> Json:
        """Return what a column holds of a value: the value, its JSON text, or null."""
        fits, field = self._fits[column], self._field[column]
        if field == QUESTIONS and not isinstance(value, list):
            return None
        if isinstance(value, list | dict) and not fits(value) and field not in KEYS:
            value = json_text(value)
        return value if fits(value) else None

    def _warn(self, field: str, document: Mapping[str, Json], what: str) -> None:
        if field not in self._warned:
            self._warned.add(field)
            job = quoted(document.get("publicId"))
            self._on_warning(f"{quoted(field)} of the job {job} {what}.")


def _test(schema: dict[str, Json]) -> Callable[[Json], bool]:
    """Return a test of values against a JSON schema, which must be a valid one."""
    validator = DEFAULT_JSONSCHEMA_VALIDATOR(schema, format_checker=_formats())
    is_double = validator.is_valid(0.5) and not validator.is_valid("")

    def fits(value: Json) -> bool:
        if is_double and isinstance(value, int) and abs(value) > LARGEST_EXACT:
            return False
        try:
            return bool(validator.is_valid(value))
        except TypeError:  # multipleOf, of a decimal
            return False

    return fits


@cache
def _formats() -> Any:  # noqa: ANN401  # jsonschema is the SDK's dependency, not ours
    """Return tests of the formats that targets turn into column types.

    Of these, jsonschema itself tests only dates.
    """
    formats: Any = type(DEFAULT_JSONSCHEMA_VALIDATOR.FORMAT_CHECKER)()
    for name, read in {"date-time": datetime.fromisoformat, "time": time.fromisoformat}.items():
        formats.checks(name, ValueError)(lambda it, read=read: not isinstance(it, str) or read(it))
    return formats
