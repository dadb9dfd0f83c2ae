"""The part of the README that the benchmarks write."""

from __future__ import annotations

import re

BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"
_BLOCK = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


class NoMarkersError(Exception):
    """A text has no place for the tables."""


def with_tables(text: str, tables: str) -> str:
    """Return a text with other tables between its two markers.

    Args:
        text: Such as the README.
        tables: Markdown.

    Raises:
        NoMarkersError: The markers are not there, once each and in order.
    """
    parts = _BLOCK.split(text)
    if len(parts) != 2 or text.count(BEGIN) + text.count(END) != 2:  # noqa: PLR2004  # before, after
        message = f"There must be one line {BEGIN} and after it one line {END}."
        raise NoMarkersError(message)
    return f"{parts[0]}{BEGIN}\n\n{tables.strip()}\n\n{END}{parts[1]}"
