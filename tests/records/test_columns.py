"""Fields find their columns under either naming, and none is lost.

Values that would stop a warehouse are replaced; all others stay as they are.
"""

from decimal import Decimal
from typing import Any

import pytest

from tap_public_jobs.singer.columns import Columns
from tap_public_jobs.singer.naming import column_of, field_of, named
from tap_public_jobs.singer.storable import storable

Schemas = dict[str, dict[str, Any]]

KEYS = ("id", "publicId")

TEXT: dict[str, Any] = {"type": ["string", "null"]}
OTHERS: Schemas = {"additionalFields": {"type": ["object", "null"]}}
NULLABLE: Schemas = {
    name: {"type": [name, "null"]}
    for name in ("string", "number", "integer", "boolean", "array", "object")
}


def never(warning: str) -> None:
    raise AssertionError(warning)


def row(properties: Schemas, document: dict[str, Any]) -> dict[str, Any]:
    """The record of a document, with the column for fields that have none of their own."""
    return Columns(properties | OTHERS, lambda _: None).row(document)


def test_values_that_fit_are_kept_as_they_are_and_others_too() -> None:
    """And columns without one are null: a target forgets what the API no longer sends."""
    columns = Columns(NULLABLE | {"other": TEXT} | OTHERS, never)
    fields = {"string": "", "number": Decimal("62500.50"), "integer": 2**63 - 1, "boolean": False}
    fields |= {"array": [], "object": {}}
    others = {"remote": None, "skills": ["SQL", {"n": Decimal("1.50")}]}

    record = columns.row(fields | others)

    assert repr(record) == repr(fields | {"other": None, "additionalFields": others})
    assert columns.undeclared == {"remote", "skills"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ([True, None, "ü 😀", 'a "b"\n'], '[true,null,"ü 😀","a \\"b\\"\\n"]'),
        (
            {"b": [{"z": Decimal("62500.50"), "y": Decimal("1E-7")}], "a": 10**30},
            '{"a":"1000000000000000000000000000000","b":[{"y":1E-7,"z":62500.50}]}',
        ),
        (["\0", Decimal("1E+400")], '["\ufffd","1E+400"]'),
    ],
)
def test_in_a_column_of_text_a_nested_value_is_compact_json_with_sorted_keys(
    value: object, text: str
) -> None:
    assert row({"x": TEXT}, {"x": value}) == {"x": text, "additionalFields": None}
    others = {"additional_fields": TEXT}
    record = Columns(others, lambda _: None).row({"x": value})
    assert record == {"additional_fields": f'{{"x":{text}}}'}


def test_text_of_a_nested_value_fits_its_column_as_any_text_does() -> None:
    """And a column that takes the value itself keeps it."""
    short = {"x": TEXT | {"maxLength": 5}}

    assert row(short, {"x": [12]}) == {"x": "[12]", "additionalFields": None}
    assert row(short, {"x": [1234]}) == {"x": None, "additionalFields": {"x": [1234]}}
    assert row({"x": {"type": ["array", "string"]}}, {"x": [1]})["x"] == [1]


@pytest.mark.parametrize("value", ["none", "[]", {"id": "q"}, 5])
def test_a_column_of_arrays_as_text_holds_nothing_else(value: object) -> None:
    columns = Columns({"x": TEXT} | OTHERS, lambda _: None, arrays=["x"])

    assert columns.row({"x": value}) == {"x": None, "additionalFields": {"x": value}}
    assert columns.row({"x": [5]}) == {"x": "[5]", "additionalFields": None}


def test_a_column_that_is_not_declared_or_never_null_is_left_out() -> None:
    """The column for others may be deselected, or absent from a catalog."""
    columns = Columns({"string": NULLABLE["string"]}, lambda _: None)
    assert columns.row({"string": 7, "remote": True}) == {"string": None}
    assert columns.undeclared == {"remote"}

    level, none = {"level": {"type": "string"}}, {"additionalFields": None}
    assert row(level, {}) == row(level, {"level": None}) == none
    assert row(level, {"level": 5}) == {"additionalFields": {"level": 5}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string"}, "", 5),
        ({"type": "number"}, 0, "5+"),
        ({"type": "number"}, Decimal("1E-300"), "1E-300"),
        ({"type": "number"}, 1, True),
        ({"type": "number"}, -(2**53), -(2**53) - 1),
        ({"type": "number", "minimum": 1}, 2**53, 2**53 + 1),
        ({"type": "integer"}, 0, False),
        ({"type": "boolean"}, True, 1),
        ({"type": "array"}, [], {}),
        ({"type": "object"}, {}, []),
        ({"type": "string", "enum": ["a", "b"]}, "a", "c"),
        ({"type": "string", "maxLength": 3}, "abc", "abcd"),
        ({"anyOf": [{"type": "number"}, {"type": "boolean"}]}, Decimal("1.5"), "1.5"),
        ({"type": "array", "items": {"type": "string"}}, ["a"], ["a", 1]),
        ({"type": "object", "additionalProperties": False, "properties": {}}, {}, {"a": 1}),
        ({"not": {"type": "string"}}, [1, "a"], "a"),
        ({"type": "number", "multipleOf": 0.5}, 6, Decimal("1.25")),
    ],
)
def test_whatever_a_user_declares_is_kept_to(
    schema: dict[str, Any], good: object, bad: object
) -> None:
    assert row({"x": schema}, {"x": good}) == {"x": good, "additionalFields": None}
    assert repr(row({"x": schema}, {"x": bad})["additionalFields"]) == repr({"x": bad})


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2026-11-21", "20261121 2026-W47-6 2026-325 0000-01-01 2026-02-30 P1D/9999-12-31"),
        (
            "time",
            "10:00:00 23:59:59.5",
            "100000 T10:00:00 10:00 24:00:00 noon 10:00:00Z 10:00:00+02:00",
        ),
        (
            "date-time",
            "2026-11-21T10:00:00+02:00 2026-11-21T10:00:00.123456Z 0001-01-01T00:00:00Z",
            (
                "2026-W47-6 20261121T100000Z 2026-11-21_10:00:00Z 2026-11-21t10:00:00z tomorrow "
                "2026-11-21T10:00:00 2026-11-21T10:00Z 2026-11-21T10:00:00,5Z 2026-11-21 "
                "2026-11-21T24:00:00Z 2026-11-21T10:00:60Z 2026-11-21T10:00:00+16:00 "
                "2026-11-21T10:00:00+15:60 "
                "0001-01-01T00:00:00+10:00 9999-12-31T23:59:59-10:00 ٢٠٢٦-11-21T10:00:00Z"
            ),
        ),
        ("uuid", "12345678-1234-1234-1234-123456789abc", "12345678"),
        ("ipv4", "192.0.2.1", "192.0.2"),
    ],
)
def test_a_format_that_targets_turn_into_a_column_type_is_kept_to(
    name: str, good: str, bad: str
) -> None:
    """Such as the times of RFC 3339: any other text would stop a target in every run."""
    schema = {"x": {"type": ["string", "null"], "format": name}}

    for text in good.split(" "):
        assert row(schema, {"x": text}) == {"x": text, "additionalFields": None}
    for text in [*bad.split(" "), "2026-11-21 10:00:00Z", f"{good}\n"]:
        assert row(schema, {"x": text}) == {"x": None, "additionalFields": {"x": text}}


def test_what_a_nested_column_does_not_declare_is_not_lost() -> None:
    """Flattening, and targets such as BigQuery's, write declared properties alone."""
    salary: Any = {"type": ["object", "null"], "properties": {"min": {"type": "number"}}}
    steps: Any = {"type": "array", "items": {"type": "object", "properties": {"pay": salary}}}
    schemas: Schemas = {"salary": salary, "steps": steps, "open": {"type": "object"}}
    document = {
        "salary": {"min": 1, "period": "year", "bonus": None},
        "steps": [{"pay": {"min": 2}}, {"pay": {"min": 3, "period": "day"}, "name": "b"}, {}],
        "open": {"any": {"thing": 1}},
    }
    columns = Columns(schemas | OTHERS, never)

    assert columns.row(document) == {
        "salary": {"min": 1},
        "steps": [{"pay": {"min": 2}}, {"pay": {"min": 3}}, {}],
        "open": {"any": {"thing": 1}},
        "additionalFields": {
            "salary": {"period": "year", "bonus": None},
            "steps": [{}, {"pay": {"period": "day"}, "name": "b"}, {}],
        },
    }
    named = {"salary.period", "salary.bonus", "steps.pay.period", "steps.name"}
    assert columns.undeclared == named
    whole = {"salary": {"min": "negotiable", "period": "year"}}
    expected = {"salary": None, "steps": None, "open": None, "additionalFields": whole}
    assert Columns(schemas | OTHERS, lambda _: None).row(whole) == {
        name: value for name, value in expected.items() if value or name == "salary"
    }


def test_a_value_that_does_not_fit_is_warned_of_once_per_field() -> None:
    warnings: list[str] = []
    columns = Columns(NULLABLE | OTHERS, warnings.append, keys=KEYS)

    for value in ("5+", "many", 5):
        columns.row({"number": value, "string": value, "publicId": f"job-{value}"})

    assert warnings == [
        "'number' of 'job-5+' does not fit its type and is kept in additionalFields.",
        "'string' of 'job-5' does not fit its type and is kept in additionalFields.",
    ]


@pytest.mark.parametrize(
    ("document", "record"),
    [
        ({"string": "a\0b"}, {"string": "a\ufffdb"}),
        ({"string": "Z\udcfcrich"}, {"string": "Z\ufffdrich"}),  # from a byte that is not UTF-8
        ({"object": {"a": ["\ud800"]}}, {"object": {"a": ["\ufffd"]}}),
        ({"re\0mote": True}, {"additionalFields": {"re\ufffdmote": True}}),
        ({"remote": {"\udc00": 1}}, {"additionalFields": {"remote": {"\ufffd": 1}}}),
        ({"number": Decimal("1E+400")}, {"additionalFields": {"number": "1E+400"}}),
        ({"integer": 2**63}, {"additionalFields": {"integer": str(2**63)}}),
    ],
)
def test_what_some_warehouses_cannot_store_is_replaced_with_a_warning(
    document: dict[str, Any], record: dict[str, Any]
) -> None:
    warnings: list[str] = []
    columns = Columns(NULLABLE | OTHERS, warnings.append, keys=KEYS)

    columns.row(document | {"publicId": "x"})
    row = columns.row(document)

    assert row == dict.fromkeys([*NULLABLE, *OTHERS]) | record
    (field,) = document
    (warning,) = warnings
    name = field.replace("\0", "\ufffd")
    said = "holds a value that some warehouses cannot store and is replaced."
    assert warning == f"{name!r} of 'x' {said}"


@pytest.mark.parametrize(
    ("document", "record"),
    [
        ({}, {"id": "a"}),
        ({"id": None}, {"id": "a"}),
        ({"id": ""}, {"id": "a"}),
        ({"id": 7}, {"id": "a", "additionalFields": {"id": 7}}),
        ({"id": [7]}, {"id": "a", "additionalFields": {"id": [7]}}),
        ({"id": "b"}, {"id": "b"}),
    ],
)
def test_a_key_known_from_elsewhere_replaces_one_that_is_missing(
    document: dict[str, Any], record: dict[str, Any]
) -> None:
    columns = Columns({"id": {"type": "string"}} | OTHERS, lambda _: None)

    assert columns.row(document, id="a", publicId="p") == {"additionalFields": None} | record


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("jobTitle", "job_title"),
        ("yearsExperience", "years_experience"),
        ("jobURL", "job_u_r_l"),
        ("address2", "address2"),
    ],
)
def test_columns_in_snake_case_are_reversible_and_nested_names_stay(
    field: str, column: str
) -> None:
    nested = {"properties": {"cD": TEXT}}
    schema = {"type": "object", "properties": {field: nested}}

    assert field_of(column) == field_of(field) == column_of(field, "source") == field
    assert named(schema, "snake_case") == {"type": "object", "properties": {column: nested}}
    assert named(schema, "source") == schema


def test_a_field_that_is_called_like_a_column_is_not_lost() -> None:
    columns = Columns({"job_title": TEXT, "additional_fields": {}}, never)

    both = {"additionalFields": 1, "additional_fields": 2}
    for document, title, others in (
        ({"jobTitle": "a"}, "a", None),
        ({"job_title": "b"}, "b", None),
        ({"jobTitle": "a", "job_title": "b"}, "a", {"job_title": "b"}),
        ({"job_title": "b", "jobTitle": None}, None, {"job_title": "b"}),
        (both, None, both),
    ):
        assert columns.row(document) == {"job_title": title, "additional_fields": others}


def test_of_two_columns_for_a_field_the_one_with_its_name_has_it() -> None:
    for names in (("job_title", "jobTitle"), ("jobTitle", "job_title")):
        columns = Columns(dict.fromkeys(names, TEXT), never)

        assert columns.row({"jobTitle": "a"}) == {"jobTitle": "a", "job_title": None}
        both = {"jobTitle": "a", "job_title": "b"}
        assert columns.row(both) == both


REPLACEABLE = [
    pytest.param("a\0b", "a\ufffdb", id="NUL"),
    pytest.param("\ud800", "\ufffd", id="first half of a surrogate pair"),
    pytest.param("x\udfff\0", "x\ufffd\ufffd", id="each character"),
    pytest.param(2**63, "9223372036854775808", id="integer beyond 64 bits"),
    pytest.param(-(2**63) - 1, "-9223372036854775809", id="negative integer beyond 64 bits"),
    pytest.param(Decimal("1E+22"), "1E+22", id="decimal beyond 64 bits"),
    pytest.param(Decimal(f"{2**63}.5"), "9223372036854775808.5", id="fraction beyond 64 bits"),
    pytest.param(Decimal("-1E+999999999999"), "-1E+999999999999", id="decimal beyond a double"),
    pytest.param(Decimal("1E-309"), "1E-309", id="decimal too small for a double"),
    pytest.param(Decimal("1" * 5000), "1" * 5000, id="integer that Python does not convert"),
    pytest.param(Decimal("0." + "1" * 4301), "0." + "1" * 4301, id="fraction of 4,301 digits"),
    pytest.param(Decimal("12." + "1" * 4299), "12." + "1" * 4299, id="4,301 digits in all"),
    pytest.param(Decimal("0E+4301"), "0E+4301", id="zero that would be written with many zeros"),
]

UNCHANGED = [
    None,
    True,
    "ü 😀 \u2028 \ufffd \x01",
    0,
    -(2**63),
    2**63 - 1,
    Decimal(2**63 - 1),
    Decimal("62500.50"),
    Decimal("0E+400"),
    Decimal("1E-308"),
    Decimal("0." + "1" * 4300),
    [1, [None, {"a": Decimal("1.0")}]],
]


@pytest.mark.parametrize(("value", "replaced"), REPLACEABLE)
def test_what_cannot_be_stored_is_replaced_at_any_depth(value: object, replaced: object) -> None:
    assert storable(value) == replaced
    assert storable([1, [value]]) == [1, [replaced]]
    document = {"a": {"b": [value]}, "c": "d", "\0": 1}
    assert storable(document) == {"a": {"b": [replaced]}, "c": "d", "\ufffd": 1}
    assert "\0" in document  # the original stays as it is


@pytest.mark.parametrize("value", UNCHANGED, ids=lambda value: repr(value)[:30])
def test_any_other_value_is_unchanged(value: object) -> None:
    assert repr(storable(value)) == repr(value)
    assert repr(storable({"a": [value]})) == repr({"a": [value]})
