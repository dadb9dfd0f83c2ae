"""Reading a response's body: within bounds of size, and as exact JSON."""

import codecs
import io
import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from email.message import Message

from requests import Response

from tap_public_jobs.api.deadline import CHUNK
from tap_public_jobs.api.models import Json

# Bytes of a body after decompression: a hundred times a large posting.
LARGEST = 8 * 1024 * 1024

# Values of a body, counted by the characters that can begin one, because a value can take fifty
# times the memory of its text. Prose of the largest size has fewer commas.
MOST_VALUES = 200_000

# Levels of arrays and objects, because the tap, the SDK and every target walk JSON by recursion.
# What is nested more deeply becomes text, so that one value of one job makes no page unreadable.
DEEPEST = 100

# Digits of an integer; Python refuses to convert more of them to an `int`.
MOST_DIGITS = 4300

# One thread parses all larger bodies, because parsing can take fifty times the memory of a body,
# and each thread would keep that. To hand over a smaller one takes longer than to parse it.
SMALL = 64 * 1024
_PARSER = ThreadPoolExecutor(1)


class BodyError(Exception):
    """A body cannot be read within its bounds."""


def read_object(response: Response) -> dict[str, Json] | None:
    """Read the JSON object of a response that was requested with `stream=True`.

    Args:
        response: Compressed with gzip or deflate, or not at all.

    Returns:
        The object; None if the body is something else.

    Raises:
        BodyError: It is too large, or has too many values.
        zlib.error: It cannot be decompressed.
        urllib3.exceptions.HTTPError: It is cut off or late.
    """
    # A body in another encoding is not JSON.
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    decoder = _Decoder() if encoding in {"gzip", "x-gzip", "deflate"} else None
    body = io.BytesIO()
    received = 0
    # `read1` returns what has arrived; other methods wait for more, up to the timeout each time.
    # The body is decompressed here, because urllib3 would read on until it has output.
    while chunk := response.raw.read1(CHUNK, decode_content=False):
        received += len(chunk)
        rest = LARGEST + 1 - body.tell()  # a kilobyte can decompress to a megabyte
        body.write(decoder.decompress(chunk, rest) if decoder else chunk)
        if max(received, body.tell()) > LARGEST:
            msg = f"the body is larger than {LARGEST >> 20} MiB"
            raise BodyError(msg)
    head = Message()
    head["Content-Type"] = response.headers.get("Content-Type", "")
    charset = head.get_content_charset("utf-8")
    content = body.getvalue()
    if len(content) <= SMALL:
        return json_object(content, charset)
    return _PARSER.submit(json_object, content, charset).result()


class _Decoder:
    """Decompresses gzip or deflate within bounds; gzip may have several members (RFC 1952)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
        self._is_first = True

    def decompress(self, data: bytes, most: int) -> bytes:
        """Return what the next part of a body becomes, or its first `most` bytes."""
        found = b""
        while data and len(found) < most:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
                self._is_first = False
            try:
                found += self._member.decompress(data, most - len(found))
            except zlib.error:
                if self._is_first:
                    raise
                break  # what follows a member and is none is padding
            data = self._member.unused_data
        return found


def json_object(body: bytes, charset: str = "utf-8") -> dict[str, Json] | None:
    """Parse a JSON object, with numbers as `int` or `Decimal`; None if it is anything else.

    Args:
        body: In any encoding of Unicode, or in `charset`.
        charset: As the response declares it.
    """
    brackets = body.count(b"[") + body.count(b"{")
    if brackets + body.count(b",") > MOST_VALUES:
        msg = f"the body may have more than {MOST_VALUES:,} values"
        raise BodyError(msg)
    try:
        document = json.loads(
            _decoded(body, charset),
            parse_float=_decimal,
            parse_int=lambda text: (int if len(text) <= MOST_DIGITS else Decimal)(text),
            strict=False,  # a raw control character is kept, and does not cost the response
            parse_constant=str,  # NaN is not JSON: text fits no column of numbers, but is kept
        )
        if not isinstance(document, dict):
            return None
        return _flat(document) if brackets > DEEPEST else document
    except (ValueError, RecursionError):
        return None


def _decoded(body: bytes, charset: str) -> str:
    """Decode a body.

    JSON is in UTF-8 (RFC 8259, section 8.1), and what is valid UTF-8 is hardly ever anything else,
    whatever a server declares for all that it sends.
    An invalid byte becomes half a surrogate pair, which `records` replaces with a warning, so that
    it costs one value and not the response.
    """
    unicode = json.detect_encoding(body)
    if not unicode.startswith("utf-8"):
        return body.decode(unicode, "surrogatepass")
    with suppress(UnicodeDecodeError):
        return body.decode(unicode)
    # What servers call ISO-8859-1 is windows-1252 (WHATWG Encoding, 4.2): the same but for control
    # characters, in whose place it has quotes, dashes and the euro sign.
    with suppress(LookupError):
        charset = "cp1252" if codecs.lookup(charset).name == "iso8859-1" else charset
    with suppress(LookupError, UnicodeError):
        # Others than those that extend ASCII have no use here, and to decode one can take hours.
        if b'{"a": 1}'.decode(charset).encode(charset) == b'{"a": 1}':
            return body.decode(charset, "surrogateescape")
    return body.decode(unicode, "surrogateescape")


def _flat(value: Json, levels: int = DEEPEST) -> Json:
    """Replace what is nested more deeply than `levels` by its JSON text."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return json.dumps(value, default=str)
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        value[key] = _flat(child, levels - 1)
    return value


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond any number; text is not lost
        return text
