"""What the benchmarks print: sections of tables and claims, in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

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


def table(header: str, rows: Iterable[Sequence[object]]) -> str:
    """Write a table; its header is as in Markdown, and only its first column is text."""
    columns = header.split(" | ")
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def with_tables(file: Path, tables: str) -> str:
    """Return the text of a file with new tables between its two markers.

    Raises:
        ClickException: The file does not have each marker once, in order.
    """
    text = file.read_text(encoding="utf-8")
    parts = _BLOCK.split(text)
    if len(parts) != 2 or text.count(BEGIN) + text.count(END) != 2:  # noqa: PLR2004  # before, after
        message = f"{file.name}: There must be one line {BEGIN} and after it one line {END}."
        raise click.ClickException(message)
    return f"{parts[0]}{BEGIN}\n\n{tables.strip()}\n\n{END}{parts[1]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.4g}"  # noqa: PLR2004  # enough digits
