"""publicIds are found wherever a payload has them."""

from __future__ import annotations

import gzip
import json

import pytest

from tap_public_jobs.webhook.payload import LARGEST_BODY, read_payload

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
        ('{"publicid": "a", "PublicID": "b", "public_id": "c", "PUBLIC-ID": "d"}', [*"abcd"]),
        ('{"publicIds": "a", "notpublicId": "b", "public": "c"}', []),
        ("[" * 500 + '{"publicId": "a"}' + "]" * 500, ["a"]),
        # The fields of a form.
        ("event=updated&publicId=a%2Fb+c&publicId=5\n", ["a/b c", "5"]),
        ("job[publicId]=a&job.publicId=b&job[public_id]=c", ["a", "b", "c"]),
        ("payload=%7B%22publicId%22%3A%22a%22%7D", ["a"]),
        ("publicId=&mypublicId=a&publicIds=b&publicId%00=c", []),
        ("payload=" + "[" * 100_000, []),
        # Anything else.
        ("{'publicId': 'a'}", []),
        ("[" * 100_000, []),
    ],
)
def test_every_text_under_the_key_is_found(body: str, found: list[str]) -> None:
    assert read_payload(body.encode()).public_ids == found


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_may_have_any_encoding_of_unicode(encoding: str) -> None:
    assert read_payload(JOB.encode(encoding)) == (["a"], "JSON", json.loads(JOB))


def test_gzip_is_read_up_to_a_limit() -> None:
    """Few bytes can become very many."""
    largest = JOB.encode().ljust(LARGEST_BODY)

    assert read_payload(gzip.compress(largest)).public_ids == ["a"]
    assert read_payload(gzip.compress(b" " + largest)).public_ids == ["a"]  # a space is cut off
    assert read_payload(gzip.compress(largest.rjust(2 * LARGEST_BODY))).public_ids == []
    assert read_payload(gzip.compress(largest)[:-9]).public_ids == ["a"]
