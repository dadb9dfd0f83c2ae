"""Puts the fields of a response into the columns that the schema declares, and loses none."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any

from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs.lines import quoted
from tap_public_jobs.singer.naming import column_of, field_of
from tap_public_jobs.singer.storable import json_text, storable

Json = Any

# The column for every field without its own column.
OTHERS = "additionalFields"

# The largest integer that a double holds exactly; in most warehouses, a column of numbers is one.
# Apache Arrow, which writes Parquet, refuses a larger one.
LARGEST_EXACT = 2**53

# One value of each Python type that JSON is read into, but for decimals, whose types in a schema
# differ: 1.0 is an integer, and 0.5 is none.
EXAMPLES: tuple[Json, ...] = (None, "", True, 0, [], {})

# Formats that targets turn into column types, which refuse other texts: the form of a text, and
# what reads it, or fails. Times are those of RFC 3339, in capitals; `time` has no offset, which
# PostgreSQL would drop, and with which target-duckdb silently loses rows.
# Python also reads others, such as 2026-W47-6. Of these, it refuses the year 0 and a second 60, and
# PostgreSQL an offset of 16 hours.
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?"
_OFFSET = r"(Z|[+-](0\d|1[0-5]):[0-5]\d)"
FORMATS: dict[str, tuple[str, Callable[[str], object]]] = {
    "date": (_DATE, date.fromisoformat),
    "time": (_TIME, time.fromisoformat),
    # In UTC, where targets put it, it has to be in the years 1 to 9999, too.
    "date-time": (
        f"{_DATE}T{_TIME}{_OFFSET}",
        lambda text: datetime.fromisoformat(text).astimezone(UTC),
    ),
}


class Columns:
    """The columns of one stream, named as the fields are, or in snake case.

    A column with the exact name of a field holds that field in either case.

    Args:
        properties: The `properties` of the stream's effective JSON schema.
        on_warning: Called with a sentence the first time that a value of a field does not fit its
            column, or cannot be stored as it is.
        left_out: Columns that nobody gets, as the user wants it. What does not fit them goes
            nowhere else.
        keys: Fields that identify a record, and so never are JSON text of something nested. The
            last one names the record in a warning.
        arrays: Fields whose columns as text hold nothing but JSON arrays, so that SQL can always
            parse them.

    Attributes:
        properties: Of the schema.
        undeclared: The fields that were seen and have no column, and those that were seen in a
            nested value and are not declared there, such as `salary.period`.
    """

    def __init__(
        self,
        properties: Mapping[str, dict[str, Json]],
        on_warning: Callable[[str], None],
        left_out: Collection[str] = (),
        *,
        keys: Sequence[str] = ("id",),
        arrays: Collection[str] = (),
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
        self._left_out = left_out
        self._keys = keys
        self._arrays = arrays
        self._declared = dict(properties) | {column: {} for column in left_out}
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
            text in a column of text, and stays as it is in one of arrays or objects, but for what
            the column does not declare: that is under `additionalFields`, because flattening and
            BigQuery would drop it.
        """
        row: dict[str, Json] = dict.fromkeys(self._fits)
        others: dict[str, Json] = {}
        for field, value in self._storable(document).items():
            column = self._column.get(field)
            # A field may be named like the column of another one, which comes first.
            own = column and self._field[column]
            if column is None or (field != own and own in document):
                others[field] = value
                self.undeclared.add(field)
            elif value is not None:
                declared, undeclared = self._split(value, self._declared[column], field)
                row[column] = self._held(column, declared)
                if row[column] is None:
                    others[field] = value
                    what = "does not fit its type and is kept in additionalFields"
                    self._warn(field, document, what)
                elif undeclared:
                    others[field] = undeclared
        if self._others in self.properties:
            held = json_text(others) if self._others_are_text else others
            row[self._others] = held if others else None
        for field, value in defaults.items():
            if (column := self._column.get(field)) is not None:
                row[column] = row[column] or storable(value)
        return {k: it for k, it in row.items() if it is not None or k not in self._never_null}

    def _split(self, value: Json, schema: Mapping[str, Json], path: str) -> tuple[Json, Json]:
        """Split a nested value into what its schema declares, and the rest, at the same places."""
        if isinstance(value, dict) and "properties" in schema:
            declared, rest = {}, {}
            for name, item in value.items():
                if name not in schema["properties"]:
                    rest[name] = item
                    self.undeclared.add(f"{path}.{name}")
                    continue
                nested = schema["properties"][name]
                declared[name], more = self._split(item, nested, f"{path}.{name}")
                rest |= {name: more} if more else {}
            return declared, rest
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            parts = [self._split(item, schema["items"], path) for item in value]
            rests = [rest for _, rest in parts]
            return [declared for declared, _ in parts], rests if any(rests) else None
        return value, None

    def _held(self, column: str, value: Json) -> Json:
        """Return what a column holds of a value: the value, its JSON text, or null."""
        fits, field = self._fits[column], self._field[column]
        is_odd = field in self._arrays and not isinstance(value, list)
        if isinstance(value, list | dict) and not fits(value) and field not in self._keys:
            value = json_text(value)
        return value if column in self._left_out or (fits(value) and not is_odd) else None

    def _storable(self, document: Mapping[str, Json]) -> dict[str, Json]:
        """Return a document as every warehouse can store it."""
        stored: dict[str, Json] = storable(document)
        if stored != document:
            what = "holds a value that some warehouses cannot store and is replaced"
            for name, value in document.items():
                if (storable(name), storable(value)) != (name, value):
                    self._warn(storable(name), document, what)
        return stored

    def _warn(self, field: str, document: Mapping[str, Json], what: str) -> None:
        if field not in self._warned:
            self._warned.add(field)
            record = quoted(document.get(self._keys[-1]))
            self._on_warning(f"{quoted(field)} of {record} {what}.")


def _test(schema: dict[str, Json]) -> Callable[[Json], bool]:
    """Return a test of values against a JSON schema, which must be a valid one."""
    validator = DEFAULT_JSONSCHEMA_VALIDATOR(schema, format_checker=_formats())
    types = schema.get("type", [])
    # A number such as 0.5 may break another rule of the schema, such as a minimum.
    takes_numbers = "number" in types or validator.is_valid(0.5)
    is_double = takes_numbers and "string" not in types and not validator.is_valid("")
    # Most schemas say nothing but types, and the validator itself takes twenty times as long.
    says_types_alone = schema.keys() <= {"type", "description"}
    answers = {type(it): validator.is_valid(it) for it in EXAMPLES if says_types_alone}

    def fits(value: Json) -> bool:
        if is_double and isinstance(value, int) and abs(value) > LARGEST_EXACT:
            return False
        if (answer := answers.get(type(value))) is not None:
            return answer
        try:
            return bool(validator.is_valid(value))
        except TypeError:  # multipleOf, of a decimal
            return False

    return fits


@cache
def _formats() -> Any:  # noqa: ANN401  # jsonschema is the SDK's dependency, not ours
    """Return tests of formats; jsonschema itself tests others, such as `uuid`."""
    formats: Any = type(DEFAULT_JSONSCHEMA_VALIDATOR.FORMAT_CHECKER)()
    for name, (pattern, read) in FORMATS.items():

        def is_valid(value: Json, pattern: str = pattern, read: Any = read) -> bool:  # noqa: ANN401
            if not isinstance(value, str):
                return True
            return bool(re.fullmatch(pattern, value, re.ASCII) and read(value) is not None)

        formats.checks(name, (OverflowError, ValueError))(is_valid)
    return formats
