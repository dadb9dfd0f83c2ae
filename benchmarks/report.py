"""What the benchmarks print: sections of tables and claims, in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"
_BLOCK = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)


@dataclass(frozen=True)
class Claim:
    """A sentence with a threshold in place of `{}`, and the figure that must not exceed it."""

    sentence: str
    measured: float
    at_most: float

    @property
    def holds(self) -> bool:
        """Whether the figure is within the threshold; NaN is not."""
        return self.measured <= self.at_most

    def __str__(self) -> str:
        verdict = "" if self.holds else "**Falls short:** "
        return f"{verdict}{self.sentence.format(_number(self.at_most))} ({_number(self.measured)})."


@dataclass
class Section:
    """A heading, the paragraphs and tables under it, and the claims about them."""

    heading: str
    parts: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether all claims do."""
        return all(claim.holds for claim in self.claims)

    def __str__(self) -> str:
        claims = "\n".join(f"- {claim}" for claim in self.claims)
        return "\n\n".join(filter(None, [f"### {self.heading}", *self.parts, claims]))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table; its first column is text, all others are numbers."""
    alignment = ["---", *["---:"] * (len(columns) - 1)]
    lines = [columns, alignment, *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


class NoMarkersError(Exception):
    """A text has no place for the tables."""


def with_tables(text: str, tables: str) -> str:
    """Return a text with new tables between its two markers.

    Raises:
        NoMarkersError: The text does not have each marker once, in order.
    """
    parts = _BLOCK.split(text)
    if len(parts) != 2 or text.count(BEGIN) + text.count(END) != 2:  # noqa: PLR2004  # before, after
        message = f"There must be one line {BEGIN} and after it one line {END}."
        raise NoMarkersError(message)
    return f"{parts[0]}{BEGIN}\n\n{tables.strip()}\n\n{END}{parts[1]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.4g}"  # noqa: PLR2004  # enough digits
