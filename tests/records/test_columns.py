"""Fields find their columns, and none is lost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tap_public_jobs.records.columns import Columns

NULLABLE: dict[str, dict[str, Any]] = {
    name: {"type": [name, "null"]}
    for name in ("string", "number", "integer", "boolean", "array", "object")
}


def row(properties: dict[str, dict[str, Any]], document: dict[str, Any]) -> dict[str, Any]:
    return Columns(properties, lambda _: None).row(document)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", ""),
        ("number", 5),
        ("number", Decimal("62500.50")),
        ("number", Decimal("1E+400")),
        ("integer", 10**30),
        ("boolean", False),
        ("array", []),
        ("object", {}),
    ],
)
def test_a_value_that_fits_is_kept_as_it_is(kind: str, value: object) -> None:
    record = row(NULLABLE, {kind: value})

    assert record[kind] is value
    assert record["additionalFields"] is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", 5),
        ("number", "5+"),
        ("number", True),
        ("integer", Decimal("5.0")),
        ("integer", False),
        ("boolean", "yes"),
        ("boolean", 1),
        ("array", {}),
        ("object", []),
    ],
)
def test_a_value_that_does_not_fit_is_kept_apart(kind: str, value: object) -> None:
    record = row(NULLABLE, {kind: value})

    assert record[kind] is None
    assert record["additionalFields"] == {kind: value}
    assert type(record["additionalFields"][kind]) is type(value)


def test_columns_without_a_value_are_null() -> None:
    """So that a target forgets what it has of a field that the API no longer sends."""
    assert row(NULLABLE, {"string": "x", "number": None}) == {
        "string": "x",
        "number": None,
        "integer": None,
        "boolean": None,
        "array": None,
        "object": None,
        "additionalFields": None,
    }


def test_undeclared_fields_are_kept_unchanged() -> None:
    extras = {"skills": ["SQL", None, {"level": Decimal("1.50")}], "remote": None}

    assert row(NULLABLE, extras)["additionalFields"] == extras


def test_a_field_that_has_the_name_of_the_column_for_others_is_one_of_them() -> None:
    properties = NULLABLE | {"additionalFields": {"type": ["object", "null"]}}

    record = row(properties, {"additionalFields": {"a": 1}})

    assert record["additionalFields"] == {"additionalFields": {"a": 1}}


def test_a_column_declared_without_null_is_left_out_when_it_has_no_value() -> None:
    properties = {"level": {"type": "string"}}

    assert row(properties, {}) == {"additionalFields": None}
    assert row(properties, {"level": None}) == {"additionalFields": None}
    assert row(properties, {"level": 5}) == {"additionalFields": {"level": 5}}


QUESTIONS = {
    "type": ["array", "null"],
    "items": {
        "type": ["object", "null"],
        "additionalProperties": True,
        "properties": {"required": {"type": ["boolean", "null"]}},
    },
}


@pytest.mark.parametrize(
    ("questions", "fits"),
    [
        ([], True),
        ([{"required": True, "weight": 3}, {}, None], True),
        ([{"required": "yes"}], False),
        (["?"], False),
        ("?", False),
    ],
)
def test_nested_values_are_judged_whole(questions: object, fits: bool) -> None:
    record = row({"q": QUESTIONS}, {"q": questions})

    assert record["q"] == (questions if fits else None)
    assert record["additionalFields"] == (None if fits else {"q": questions})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "format": "date-time"}, "2026-11-21T10:00:00+02:00", "tomorrow"),
        ({"type": "string", "format": "date"}, "2026-11-21", "2026-13-21"),
        ({"type": "string", "format": "time"}, "10:00:00", "noon"),
        ({"type": "string", "format": "date"}, "2026-11-21", "P1D/9999-12-31"),
        ({"type": "string", "enum": ["a", "b"]}, "a", "c"),
        ({"type": "string", "maxLength": 3}, "abc", "abcd"),
        ({"anyOf": [{"type": "number"}, {"type": "boolean"}]}, Decimal("1.5"), "1.5"),
        ({"type": "object", "additionalProperties": False, "properties": {}}, {}, {"a": 1}),
    ],
)
def test_whatever_a_user_declares_is_kept_to(
    schema: dict[str, Any], good: object, bad: object
) -> None:
    assert row({"x": schema}, {"x": good}) == {"x": good, "additionalFields": None}
    assert row({"x": schema}, {"x": bad})["additionalFields"] == {"x": bad}


def test_a_column_without_a_type_takes_anything() -> None:
    assert row({"x": {}}, {"x": [1, "a"]}) == {"x": [1, "a"], "additionalFields": None}


def test_misfits_are_told_once_a_field() -> None:
    told: list[str] = []
    columns = Columns(NULLABLE, told.append)

    for value in ("5+", "many", 5):
        columns.row({"number": value, "string": value})

    assert told == ["number", "string"]


def test_a_key_known_from_elsewhere_stands_in_for_one_that_is_missing() -> None:
    columns = Columns({"id": {"type": "string"}}, lambda _: None)

    assert columns.row({}, id="a") == {"id": "a", "additionalFields": None}
    assert columns.row({"id": ""}, id="a") == {"id": "a", "additionalFields": None}
    assert columns.row({"id": 7}, id="a") == {"id": "a", "additionalFields": {"id": 7}}
    assert columns.row({"id": "b"}, id="a") == {"id": "b", "additionalFields": None}


def test_the_flag_of_published_jobs_is_not_taken_from_the_api() -> None:
    columns = Columns({"isPublished": {"type": ["boolean", "null"]}}, lambda _: None)

    assert columns.row({"isPublished": False}, isPublished=True) == {
        "isPublished": True,
        "additionalFields": {"isPublished": False},
    }
