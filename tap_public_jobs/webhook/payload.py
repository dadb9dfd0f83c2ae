"""Finds publicIds in a payload whose format is not documented (API page, "Events")."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

# Text that a URL and a database can carry, and that was not damaged on its way.
USABLE = re.compile("[^\0\ud800-\udfff\ufffd]{1,500}")


class Payload(NamedTuple):
    """What the receiver needs of a payload.

    Attributes:
        keys: At the top level. They help to find out why there is no publicId.
    """

    public_ids: list[str]
    keys: list[str]


def read_payload(body: bytes) -> Payload:
    """Find every text under a key `publicId`, at any depth.

    Args:
        body: JSON, or the fields of a form, whose values may be JSON. Anything else has none.
    """
    try:
        value = _json(body)
    except (ValueError, RecursionError):
        fields = parse_qsl(body.decode(errors="replace").strip())
        return Payload(_public_ids([_nested(*it) for it in fields]), [name for name, _ in fields])
    return Payload(_public_ids(value), [*value] if isinstance(value, dict) else [])


def _public_ids(value: Any) -> list[str]:  # noqa: ANN401  # JSON
    found: dict[str, None] = {}
    values = [value]
    for inner in values:  # grows while it is read
        if isinstance(inner, dict):
            public_id = inner.get("publicId")
            if isinstance(public_id, str) and USABLE.fullmatch(public_id):
                found[public_id] = None
            values += inner.values()
        elif isinstance(inner, list):
            values += inner
    return [*found]


def _json(text: str | bytes) -> Any:  # noqa: ANN401
    # Numbers do not matter here, and Python refuses the longest integers.
    return json.loads(text, parse_int=float)


def _nested(name: str, value: str) -> Any:  # noqa: ANN401
    """Read `publicId`, `job.publicId`, `job[publicId]`, or a field whose value is JSON."""
    if re.fullmatch(r"(.*[.\[])?publicId\]?", name, re.DOTALL):
        return {"publicId": value}
    try:
        return _json(value)
    except (ValueError, RecursionError):
        return None
