"""publicIds are found wherever a payload has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_public_jobs.webhook.payload import public_ids

IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "job", ""]), inner),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"publicId": "a"}', ["a"]),
        ('{"event": "x", "data": {"job": {"publicId": "a", "id": "b"}}}', ["a"]),
        ('[{"publicId": "a"}, [[{"publicId": "b"}]]]', ["a", "b"]),
        ('{"publicId": "a", "publicId": "b"}', ["a", "b"]),
        ('{"publicId": "a", "x": NaN, "y": -Infinity, "z": 1e999}', ["a"]),
        ('{"publicId": "a", "x": ' + "9" * 5000 + "}", ["a"]),
        ('{"publicId": {"publicId": "a"}}', ["a"]),
        (r'{"public\u0049d": "a\u00fc\ud834\udd1e"}', ["aü𝄞"]),
        ('{"publicId": "' + "a" * 500 + '"}', ["a" * 500]),
        ('{"publicId": ""}', []),
        ('{"publicId": "' + "a" * 501 + '"}', []),
        (r'{"publicId": "\ud800"}', []),
        (r'{"publicId": "a\u0000"}', []),
        ('{"publicId": null}', []),
        ('{"publicId": 5}', []),
        ('{"publicId": ["a"]}', []),
        ('{"publicid": "a", "PublicId": "a", "public_id": "a"}', []),
        ('{"x": "{\\"publicId\\": \\"a\\"}"}', []),
        ('["publicId", "a"]', []),
        ('"publicId"', []),
        ("null", []),
        ("[" * 500 + '{"publicId": "a"}' + "]" * 500, ["a"]),
    ],
)
def test_every_text_under_the_key_is_found(text: str, found: list[str]) -> None:
    assert public_ids(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("publicId=a", ["a"]),
        ("event=updated&publicId=a%2Fb+c&publicId=d\n", ["a/b c", "d"]),
        ("job[publicId]=a&job.publicId=b", ["a", "b"]),
        ("payload=%7B%22publicId%22%3A%22a%22%7D", ["a"]),
        ("publicId=&mypublicId=a&publicIds=b&publicId%00=c", []),
        ("publicId=%FF", []),
        ("publicId=" + "a" * 501, []),
        ("x=1&" * 1000 + "publicId=a", []),
        ("payload=" + "[" * 100_000, []),
    ],
)
def test_the_fields_of_a_form_are_searched(text: str, found: list[str]) -> None:
    assert public_ids(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"publicId": "a"} x',
        "{'publicId': 'a'}",
        "<job><publicId>a</publicId></job>",
        "\0",
        "[" * 100_000,
        '{"a":' * 50_000,
        "[" * 9_000 + "]" * 9_000,
    ],
)
def test_anything_else_has_none(text: str) -> None:
    assert public_ids(text) == []


@given(IDS, st.lists(st.sampled_from(["object", "array"])), VALUES)
def test_it_is_found_in_anything(public_id: str, around: list[str], other: object) -> None:
    payload: object = {"other": other, "publicId": public_id}
    for kind in around:
        payload = {"data": payload, "job": other} if kind == "object" else [other, payload]

    assert public_ids(json.dumps(payload)) == [public_id]
