"""Finds publicIds in a payload whose format is not documented (API page, "Events")."""

import json
import re
from typing import Any

USABLE = re.compile(r"[^\0\ud800-\udfff]{1,1000}", re.DOTALL)
"""What a URL and a database can carry."""


def public_ids(text: str) -> list[str]:
    """Return every text under a key `publicId`, at any depth.

    Args:
        text: JSON.

    Raises:
        ValueError: It is not JSON, or nested more deeply than any notification.
    """
    found: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:
        values = (value for key, value in pairs if key == "publicId" and isinstance(value, str))
        found.extend(value for value in values if USABLE.fullmatch(value))

    try:
        # Numbers are not looked at, and Python refuses the longest whole ones.
        json.loads(text, object_pairs_hook=collect, parse_int=float)
    except RecursionError as error:
        msg = "nested too deeply"
        raise ValueError(msg) from error
    return found
