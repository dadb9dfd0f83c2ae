"""publicIds are found wherever a payload has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_public_jobs.webhook.payload import read_payload

IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufffd"),
    min_size=1,
    max_size=20,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "job", ""]), inner),
)
JOB = '{"title": "Ingénieur", "publicId": "a"}'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"event": "x", "data": {"job": {"publicId": "a", "id": "b"}}}', ["a"]),
        ('[{"publicId": "a"}, [[{"publicId": "b"}]], {"publicId": "a"}]', ["a", "b"]),
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
        ('{"publicid": "a", "PublicId": "a", "public_id": "a"}', []),
        ("[" * 500 + '{"publicId": "a"}' + "]" * 500, ["a"]),
        # The fields of a form.
        ("event=updated&publicId=a%2Fb+c&publicId=5\n", ["a/b c", "5"]),
        ("job[publicId]=a&job.publicId=b", ["a", "b"]),
        ("payload=%7B%22publicId%22%3A%22a%22%7D", ["a"]),
        ("publicId=&mypublicId=a&publicIds=b&publicId%00=c", []),
        ("payload=" + "[" * 100_000, []),
        # Anything else.
        ("{'publicId': 'a'}", []),
        ("<job><publicId>a</publicId></job>", []),
        ("[" * 100_000, []),
    ],
)
def test_every_text_under_the_key_is_found(body: str, found: list[str]) -> None:
    assert read_payload(body.encode()).public_ids == found


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_may_have_any_encoding_of_unicode(encoding: str) -> None:
    assert read_payload(JOB.encode(encoding)) == (["a"], ["title", "publicId"])


def test_bytes_that_are_no_text_have_none() -> None:
    assert read_payload(b'{"publicId": "a\xff"}') == ([], [])


@given(IDS, st.lists(st.sampled_from(["object", "array"])), VALUES)
def test_it_is_found_in_anything(public_id: str, around: list[str], other: object) -> None:
    payload: object = {"other": other, "publicId": public_id}
    for kind in around:
        payload = {"data": payload, "job": other} if kind == "object" else [other, payload]

    assert read_payload(json.dumps(payload).encode()).public_ids == [public_id]
