"""Finds publicIds in a payload whose format is not documented (API page, "Events")."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl

USABLE = re.compile("[^\0\ud800-\udfff\ufffd]{1,500}")
"""Text that a URL and a database can carry, and that was not damaged on its way."""

_FIELD = re.compile(r"(?:.*[.\[])?publicId\]?", re.DOTALL)
"""`publicId`, `job.publicId`, `job[publicId]`."""

MOST_FIELDS = 1_000


def public_ids(text: str) -> list[str]:
    """Return every text under a key `publicId`, at any depth.

    Args:
        text: JSON, or the fields of a form, whose values may be JSON. Anything else has none.
    """
    try:
        return _in_json(text)
    except ValueError:
        return _in_form(text)


def _in_json(text: str) -> list[str]:
    found: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:
        values = (value for key, value in pairs if key == "publicId" and isinstance(value, str))
        found.extend(value for value in values if USABLE.fullmatch(value))

    try:
        # Numbers do not matter here, and Python refuses the longest integers.
        json.loads(text, object_pairs_hook=collect, parse_int=float)
    except RecursionError as error:
        msg = "nested too deeply"
        raise ValueError(msg) from error
    return found


def _in_form(text: str) -> list[str]:
    found: list[str] = []
    try:
        fields = parse_qsl(text.strip(), max_num_fields=MOST_FIELDS)
    except ValueError:
        return []
    for name, value in fields:
        if _FIELD.fullmatch(name):
            found += [value] if USABLE.fullmatch(value) else []
            continue
        try:
            found += _in_json(value)
        except ValueError:
            continue
    return found
