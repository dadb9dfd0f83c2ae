"""Whatever the encoding of a body, it is read or kept; nothing with a right token is refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import requests

from tap_public_jobs.changelog.tables import LONGEST_PAYLOAD
from tap_public_jobs.webhook.body import MOST_UNPACKED, TooLargeError, storable, text_of

if TYPE_CHECKING:
    from tap_public_jobs.changelog import ChangeLog

JOB = '{"title": "Ingénieur", "publicId": "a"}'


@pytest.mark.parametrize(
    "body",
    [
        JOB.encode(),
        JOB.encode("utf-8-sig"),
        JOB.encode("utf-16"),
        JOB.encode("utf-16-le"),
        JOB.encode("utf-16-be"),
        JOB.encode("utf-32"),
        gzip.compress(JOB.encode(), mtime=0),
        gzip.compress(JOB.encode("utf-16"), mtime=0),
        gzip.compress(JOB[:9].encode(), mtime=0) + gzip.compress(JOB[9:].encode(), mtime=0),
        JOB.encode("latin-1"),
        b'{"publicId": "b\xff", "job": {"publicId": "a"}}',
        b"publicId=a",
        b"payload=%7B%22publicId%22%3A%22a%22%7D",
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream"])
def test_a_public_id_is_found_in_any_encoding(
    log: ChangeLog, hook: str, body: bytes, content_type: str
) -> None:
    before = log.counts()

    response = requests.post(hook, body, headers={"Content-Type": content_type}, timeout=30)

    assert (response.status_code, response.text) == (200, '{"publicIds":1}')
    assert log.read(before.position).public_ids == ["a"]
    assert log.counts().unrecognised == before.unrecognised


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ('{"jobSlug": "ü"}'.encode(), '{"jobSlug": "ü"}'),
        ('\ufeff{ "publicId":\n5}'.encode(), '{ "publicId":\n5}'),
        (b'{"publicId": ""}', '{"publicId": ""}'),
        (b'{"publicId": "a"', '{"publicId": "a"'),
        (b'{"publicId": "a\xff"}', r'{"publicId": "a\xff"}'),
        (b'{"publicId": "a\xed\xa0\x80"}', r'{"publicId": "a\xed\xa0\x80"}'),
        (b"", ""),
        (b"<publicId>a</publicId>", "<publicId>a</publicId>"),
        (b"ping\0pong", r"ping\x00pong"),
        (b"\x1f\x8b no gzip", "\x1f" + r"\x8b no gzip"),
        (gzip.compress(b'"cut"', mtime=0)[:-9], None),
        (gzip.compress(b'{"packed": true}', mtime=0), '{"packed": true}'),
        (b"[" * 200_000, "[" * 16_384),
        (b"\0" * 1_000, None),
    ],
)
def test_any_other_body_is_kept(log: ChangeLog, hook: str, body: bytes, kept: str | None) -> None:
    before = log.counts()

    response = requests.post(hook, body, timeout=30)

    assert (response.status_code, response.text) == (202, '{"publicIds":0}')
    assert log.counts().position == before.position
    [(_, payload)] = log.unrecognised(1)
    assert kept is None or payload == kept
    assert "\0" not in payload


BOMB = gzip.compress(b"[" * 40_000_000, mtime=0)


def test_a_packed_body_that_is_too_large_is_refused(log: ChangeLog, hook: str) -> None:
    before = log.counts()

    response = requests.post(hook, BOMB, timeout=30)

    assert (response.status_code, response.text) == (413, "Too large when unpacked")
    assert log.counts() == before


def test_of_one_that_would_fill_the_memory_little_is_unpacked() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            text_of(BOMB)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 4 * MOST_UNPACKED


def test_the_largest_packed_body_is_read() -> None:
    text = json.dumps([{"publicId": "a"}]).ljust(MOST_UNPACKED)

    assert text_of(gzip.compress(text.encode(), mtime=0)) == text


def test_what_is_kept_can_be_encoded() -> None:
    assert storable(text_of(bytes(range(256)))).encode()


def test_no_more_is_escaped_than_is_kept() -> None:
    """A sender of bytes that are no text would else fill the memory, and stop the others."""
    assert storable(text_of(b"\xff" * MOST_UNPACKED)) == r"\xff" * LONGEST_PAYLOAD
