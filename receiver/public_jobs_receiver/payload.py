"""Finds publicIds in a payload whose format is not documented (API page, "Events")."""

import contextlib
import json
import re
import zlib
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

# Bytes, as sent and as decompressed.
LARGEST_BODY = 256 * 1024

# Text that a URL and a database can carry, and that was not damaged on its way.
USABLE = re.compile("[^\0\ud800-\udfff\ufffd]{1,500}")

# `publicId`, `public_id`, and as a field of a form `job.publicId` or `job[publicId]`.
KEY = re.compile(r"(.*[.\[])?public[_-]?id\]?", re.IGNORECASE)

# What a body is that is neither JSON nor a form, by its first character.
UNREAD = {"<": "XML", "-": "multipart", "{": "broken JSON", "[": "broken JSON"}


class Payload(NamedTuple):
    """What the receiver needs of a payload.

    Attributes:
        kind: Its format.
        fields: At the top level.
    """

    public_ids: list[str]
    kind: str
    fields: dict[str, Any]


def read_payload(body: bytes) -> Payload:
    """Find every text under a key `publicId`, at any depth.

    Args:
        body: JSON, or the fields of a form, whose values may be JSON; may be compressed with gzip.
            Anything else has none.
    """
    with contextlib.suppress(zlib.error):  # it is not gzip
        body = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, LARGEST_BODY)
    value = _json(body)
    if value is not None:
        return Payload(_public_ids(value), "JSON", value if isinstance(value, dict) else {})
    text = body.decode(errors="replace").strip()
    fields = [] if text[:1] in UNREAD else parse_qsl(text)
    ids = _public_ids([{name: it, "": _json(it)} for name, it in fields])
    return Payload(ids, UNREAD.get(text[:1], "a form"), dict(fields))


def _public_ids(value: Any) -> list[str]:  # noqa: ANN401  # JSON
    found: dict[str, None] = {}
    values = [value]
    for inner in values:  # grows while it is read
        if isinstance(inner, dict):
            for key, it in inner.items():
                if isinstance(it, str) and KEY.fullmatch(key) and USABLE.fullmatch(it):
                    found[it] = None
            values += inner.values()
        elif isinstance(inner, list):
            values += inner
    return [*found]


def _json(text: str | bytes) -> Any:  # noqa: ANN401
    """Return the value of JSON, or None if it cannot be read."""
    try:
        # Numbers do not matter here, and Python refuses the longest integers.
        return json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return None
