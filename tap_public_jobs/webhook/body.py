"""Turns the bytes that a sender sends into text, whatever they are."""

from __future__ import annotations

import gzip
import io
import json
import zlib

from tap_public_jobs.changelog.tables import LONGEST_PAYLOAD

MOST_UNPACKED = 1024 * 1024
"""Bytes that a packed body may have when it is unpacked."""

_GZIP = b"\x1f\x8b"


class TooLargeError(Exception):
    """A packed body is larger than it may be."""


def text_of(body: bytes) -> str:
    """Unpack and decode a body.

    No header is needed: gzip, UTF-8, UTF-16 and UTF-32 show in the first bytes. A byte that is not
    text becomes a lone surrogate, so that the rest can still be read.

    Raises:
        TooLargeError: It is larger when it is unpacked than `MOST_UNPACKED`.
    """
    unpacked = _unpack(body) if body.startswith(_GZIP) else body
    encoding = json.detect_encoding(unpacked)
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
    return unpacked.decode(encoding, errors)


def storable(text: str) -> str:
    """Escape what no database accepts: NUL, and bytes that were not text.

    Escapes only the part that is kept: escapes take four times the space, and much longer to write.
    """
    beginning = text[:LONGEST_PAYLOAD]
    escaped = beginning.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return escaped.replace("\0", r"\x00")


def _unpack(body: bytes) -> bytes:
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(body)).read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error):
        return body  # it only looked like gzip
    if len(unpacked) > MOST_UNPACKED:
        raise TooLargeError
    return unpacked
