"""Columns named after fields: reversible, without collisions, the same everywhere."""

from typing import get_args

import pytest

from tap_public_jobs.records.columns import Columns
from tap_public_jobs.records.naming import Naming, column_of, field_of, named

TEXT = {"type": ["string", "null"]}


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
    schema = {"type": "object", "properties": {field: {"properties": {"cD": TEXT}}}}

    assert field_of(column, "snake_case") == field
    assert field_of(field, "source") == column_of(field, "source") == field
    assert named(schema, "snake_case") == {
        "type": "object",
        "properties": {column: {"properties": {"cD": TEXT}}},
    }
    assert named(schema, "source") == schema


def test_a_field_that_is_called_like_a_column_is_not_lost() -> None:
    def never(field: str) -> None:
        raise AssertionError(field)

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


@pytest.mark.parametrize(
    "record",
    [{"publicId": "p", "jobTitle": "t"}, {"public_id": "p", "job_title": "t"}],
    ids=get_args(Naming),
)
def test_columns_are_filled_as_the_catalog_names_them(record: dict[str, str]) -> None:
    """Also in a stream without a column for other fields, as `job_publications` is."""
    columns = Columns(dict.fromkeys(record, TEXT), lambda _: None)

    assert columns.row({"publicId": "p", "jobTitle": "t"}) == record
