"""Reading a response's body: within bounds of memory, and as exact JSON."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack, nullcontext
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from requests import Response

Json = Any

LARGE = 2 * 1024 * 1024
"""Bytes of memory beyond which bodies take turns."""

VERY_LARGE = 8 * 1024 * 1024
"""Bytes of a body beyond which one is read at a time, instead of `READERS`."""

LARGEST = 64 * 1024 * 1024
"""Bytes of a body after decompression."""

READERS = 3
"""Large bodies that are read at once, so that one that drips does not hold up the others."""

MOST_MEMORY = 2 * LARGEST
"""Approximate bytes of memory that a document may take. An empty object has two bytes of text, and
takes 64 of memory."""

BYTES_OF_VALUE = 200
"""Approximate bytes of memory that a JSON value takes, besides its text."""

CHUNK = 64 * 1024


class BodyError(Exception):
    """A body cannot be read within bounds of memory and time."""


class Body(NamedTuple):
    """A body that was read."""

    document: dict[str, Json] | None
    """The JSON object; None if the body is something else."""
    size: int
    """Bytes."""
    is_large: bool
    """Whether it holds the turn of large bodies, until `Bodies.release`."""
    is_web_page: bool


class Bodies:
    """Reads bodies, and keeps at most one large document in memory."""

    def __init__(self) -> None:
        self._readers = threading.Semaphore(READERS)
        self._reader = threading.Lock()
        self._turn = threading.Lock()

    def read(self, response: Response) -> Body:
        """Read the body of a response that was requested with `stream=True`.

        If this body is large, waits until the large body before it is released.

        Raises:
            BodyError: It has more than `LARGEST` bytes, would take more than `MOST_MEMORY`, has no
                end, or was compressed more than once.
            requests.RequestException: It is cut off, or cannot be decompressed.
        """
        if "," in response.headers.get("Content-Encoding", ""):
            # Some kilobytes could keep the decompression busy for hours.
            msg = "the body is compressed more than once"
            raise BodyError(msg)
        chunks = response.iter_content(CHUNK)
        content = bytearray()
        try:
            with ExitStack() as places:
                for most, place in (
                    (LARGE, nullcontext()),
                    (VERY_LARGE, self._readers),
                    (LARGEST, self._reader),
                ):
                    places.enter_context(place)
                    _extend(content, chunks, most)
                    if len(content) <= most:
                        return self._parse(content)
            msg = f"the body is larger than {LARGEST >> 20} MiB"
            raise BodyError(msg)
        finally:
            content.clear()  # otherwise the traceback of an exception keeps it in memory

    def release(self, body: Body) -> None:
        """Give the turn to the next large body."""
        if body.is_large:
            self._turn.release()

    def _parse(self, content: bytearray) -> Body:
        # Text may hold these characters too; there are few of them in prose.
        values = content.count(b"{") + content.count(b"[") + content.count(b",")
        memory = len(content) + values * BYTES_OF_VALUE
        if memory > MOST_MEMORY:
            msg = f"the body has too many values for {MOST_MEMORY >> 20} MiB of memory"
            raise BodyError(msg)
        is_large = memory > LARGE
        if is_large:
            self._turn.acquire()
        document = json_object(content)
        is_web_page = content[:CHUNK].lstrip()[:1] == b"<"
        return Body(document, len(content), is_large, is_web_page)


def _extend(body: bytearray, chunks: Any, most: int) -> None:  # noqa: ANN401  # requests' iterator
    for chunk in chunks:
        body += chunk
        if len(body) > most:
            return


def json_object(body: bytes | bytearray) -> dict[str, Json] | None:
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
