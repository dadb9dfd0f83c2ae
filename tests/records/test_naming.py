"""Columns named after fields: reversible, without collisions, the same everywhere."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, get_args

import pytest
from harness import catalog_of, sync
from hypothesis import given
from hypothesis import strategies as st

from tap_public_jobs.records.columns import Columns
from tap_public_jobs.records.naming import Naming, column_of, field_of, named
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox

Config = dict[str, Any]
CAMEL_CASE = st.from_regex(r"[a-z][a-zA-Z0-9]*", fullmatch=True)
TEXT = {"type": ["string", "null"]}


def by_id(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Details arrive in any order."""
    return sorted(records, key=itemgetter("id"))


@pytest.fixture
def config(config: Config, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Settings whose runs all see the same time."""
    monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(lambda: 1_800_000_000.0))
    return config


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("id", "id"),
        ("jobTitle", "job_title"),
        ("yearsExperience", "years_experience"),
        ("jobURL", "job_u_r_l"),
        ("address2", "address2"),
    ],
)
def test_snake_case(field: str, column: str) -> None:
    assert column_of(field, "snake_case") == column
    assert field_of(column, "snake_case") == field


@given(CAMEL_CASE)
def test_the_column_leads_back_to_the_field(field: str) -> None:
    for naming in get_args(Naming):
        assert field_of(column_of(field, naming), naming) == field


def test_what_is_nested_keeps_its_names() -> None:
    schema = {"type": "object", "properties": {"aB": {"properties": {"cD": TEXT}}}}

    renamed = named(schema, "snake_case")

    assert renamed == {"type": "object", "properties": {"a_b": {"properties": {"cD": TEXT}}}}
    assert named(schema, "source") == schema


def test_a_field_that_is_called_like_a_column_is_not_lost() -> None:
    def never(field: str) -> None:
        raise AssertionError(field)

    columns = Columns({"job_title": TEXT, "additional_fields": {}}, never, "snake_case")

    assert columns.row({"jobTitle": "a"}) == {"job_title": "a", "additional_fields": None}
    assert columns.row({"job_title": "b"}) == {"job_title": "b", "additional_fields": None}
    assert columns.row({"jobTitle": "a", "job_title": "b"}) == {
        "job_title": "a",
        "additional_fields": {"job_title": "b"},
    }
    assert columns.row({"job_title": "b", "jobTitle": None}) == {
        "job_title": None,
        "additional_fields": {"job_title": "b"},
    }
    assert columns.row({"additionalFields": 1, "additional_fields": 2}) == {
        "job_title": None,
        "additional_fields": {"additionalFields": 1, "additional_fields": 2},
    }


@pytest.mark.parametrize("setting", get_args(Naming))
@pytest.mark.parametrize(
    "record",
    [{"publicId": "p", "jobTitle": "t"}, {"public_id": "p", "job_title": "t"}],
    ids=get_args(Naming),
)
def test_columns_are_filled_as_the_catalog_names_them(
    setting: Naming, record: dict[str, str]
) -> None:
    """Also in a stream without a column for other fields, as `job_publications` is."""
    columns = Columns(dict.fromkeys(record, TEXT), lambda _: None, setting)

    assert columns.row({"publicId": "p", "jobTitle": "t"}) == record


def test_the_setting_decides_where_the_catalog_has_names_of_both_kinds() -> None:
    properties = {"publicId": TEXT, "public_id": TEXT}
    source, snake = (
        Columns(properties, lambda _: None, naming) for naming in ("source", "snake_case")
    )

    assert source.row({"publicId": "p"}) == {"publicId": "p", "public_id": None}
    assert snake.row({"publicId": "p"}) == {"publicId": None, "public_id": "p"}


def test_rows_are_the_same_but_for_the_names(sandbox: Sandbox, config: Config) -> None:
    source = sync(config)
    snake = sync(config | {"column_naming": "snake_case"})

    for stream in ("jobs", "job_publications", "job_details"):
        records = by_id(source.records(stream))
        assert records
        assert by_id(snake.records(stream)) == [
            {column_of(name, "snake_case"): value for name, value in record.items()}
            for record in records
        ]
        (schema,) = snake.of("SCHEMA", stream)
        assert list(schema["schema"]["properties"]) == list(snake.records(stream)[0])
        assert schema["key_properties"] == ["id"]
    assert snake.records("job_details")[0]["public_id"] in {
        posting.job["publicId"] for posting in sandbox.organisation.published()
    }


def test_selection_goes_by_the_names_of_columns(config: Config) -> None:
    config |= {"column_naming": "snake_case"}
    catalog = catalog_of(config)
    for entry in catalog["streams"][0]["metadata"]:
        if entry["breadcrumb"] == ["properties", "job_title"]:
            entry["metadata"]["selected"] = False

    output = sync(config, catalog=catalog)

    assert not any("job_title" in record for record in output.records("jobs"))
    assert all(record["additional_fields"] is None for record in output.records("jobs"))
    assert all(record["job_title"] for record in output.records("job_details"))
