"""Reading a response's body: within bounds of memory, and as exact JSON."""

from __future__ import annotations

import json
import threading
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from requests import Response

LARGEST = 64 * 1024 * 1024
"""Bytes of a body after decompression."""

LARGE = 1024 * 1024
"""Bytes beyond which bodies are read one at a time, so that few of them are in memory at once."""

CHUNK = 64 * 1024

_one_large_body = threading.Lock()


class BodyError(Exception):
    """A body cannot be read within bounds of memory and time."""


def read_body(response: Response) -> bytes:
    """Read the body of a response that was requested with `stream=True`.

    Raises:
        BodyError: It is larger than `LARGEST`, has no end, or was compressed more than once.
        requests.RequestException: It is cut off, or cannot be decompressed.
    """
    if "," in response.headers.get("Content-Encoding", ""):
        # Some kilobytes could keep the decompression busy for hours.
        msg = "the body is compressed more than once"
        raise BodyError(msg)
    chunks = response.iter_content(CHUNK)
    body = bytearray()
    try:
        _extend(body, chunks, LARGE)
        if len(body) > LARGE:
            with _one_large_body:
                _extend(body, chunks, LARGEST)
                if len(body) > LARGEST:
                    msg = f"the body is larger than {LARGEST // LARGE} MiB"
                    raise BodyError(msg)
        return bytes(body)
    finally:
        body.clear()  # else the traceback of an exception would keep it in memory


def _extend(body: bytearray, chunks: Any, most: int) -> None:  # noqa: ANN401  # requests' iterator
    for chunk in chunks:
        body += chunk
        if len(body) > most:
            return


def json_object(body: bytes) -> dict[str, Any] | None:
    """Parse a JSON object, numbers as `int` or `Decimal`; None if the body is no JSON object.

    An invalid byte becomes U+FFFD, so that it costs one value and not the response.
    """
    try:
        document = json.loads(
            body.decode(json.detect_encoding(body), errors="replace"),
            parse_float=_decimal,
            parse_int=_integer,
            strict=False,  # a raw control character costs one value too
            parse_constant=str,  # NaN is not JSON; text fits no number column, but is not lost
        )
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond any number; text is not lost
        return text


def _integer(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts to an int
        return Decimal(text)
