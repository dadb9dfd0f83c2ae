"""Reading a response's body: within bounds of size and time, and as exact JSON."""

import json
import re
import zlib
from decimal import Decimal, InvalidOperation
from time import monotonic
from typing import Any

from requests import Response

Json = Any

# Bytes of a body, as it comes and after decompression: far more than a page or an item has.
LARGEST = 8 * 1024 * 1024

# Bytes read at once.
CHUNK = 64 * 1024

# Objects and lists within each other: far more than an item has, and no recursion fails on it.
DEEPEST = 100

# Digits of an integer; Python refuses to convert more of them to an `int`.
MOST_DIGITS = 4300


class BodyError(Exception):
    """A body cannot be read within its bounds."""


def read_object(response: Response, seconds: float) -> dict[str, Json] | None:
    """Read the JSON object of a response that was requested with `stream=True`.

    Args:
        response: Compressed with gzip or deflate, or not at all.
        seconds: How long the body may take in total, however steadily it arrives.

    Returns:
        The object; None if the body is something else.

    Raises:
        BodyError: It is too large, or took too long.
        zlib.error: It cannot be decompressed.
        urllib3.exceptions.HTTPError: It is cut off or late.
    """
    ends_at = monotonic() + seconds
    body = bytearray()
    # `read1` returns what has arrived; other methods wait for more, up to the timeout each time.
    while chunk := response.raw.read1(CHUNK, decode_content=False):
        body += chunk
        if len(body) > LARGEST:
            raise BodyError(_TOO_LARGE)
        if monotonic() > ends_at:
            msg = "the body took too long in total"
            raise BodyError(msg)
    content = bytes(body)
    if response.headers.get("Content-Encoding", "").strip().lower() in {
        "gzip",
        "x-gzip",
        "deflate",
    }:
        # urllib3 would decompress without a bound: a kilobyte can become a megabyte.
        decoder = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
        content = decoder.decompress(content, LARGEST + 1)
        if len(content) > LARGEST:
            raise BodyError(_TOO_LARGE)
    charset = re.search(
        r"charset=\"?([\w.:+-]+)", response.headers.get("Content-Type", ""), re.IGNORECASE
    )
    return json_object(content, charset[1] if charset else "")


_TOO_LARGE = f"the body is larger than {LARGEST >> 20} MiB"


def json_object(body: bytes, charset: str = "") -> dict[str, Json] | None:
    """Parse a JSON object, with numbers as `int` or `Decimal`; None if it is anything else.

    Args:
        body: In an encoding of JSON, or else in the charset. If that is empty, an invalid byte
            becomes half a surrogate pair, so that it costs one value and not the response.
        charset: That the head of the response declares.
    """
    encoding = json.detect_encoding(body)
    try:
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            text = body.decode(charset or encoding, "surrogateescape")
        document = json.loads(
            text,
            parse_float=_decimal,
            parse_int=lambda text: (int if len(text) <= MOST_DIGITS else Decimal)(text),
            strict=False,  # a raw control character is kept, and does not cost the response
            parse_constant=str,  # NaN is not JSON: text fits no column of numbers, but is kept
        )
    except (LookupError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and not _is_deep(document) else None


def _is_deep(value: Json, levels: int = DEEPEST) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(item, levels - 1) for item in items)


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond any number; text is not lost
        return text
