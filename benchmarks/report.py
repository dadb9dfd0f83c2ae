"""What the benchmarks print: sections of tables and claims, in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"


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
        return f"{self.sentence.format(_number(self.at_most))} ({_number(self.measured)})."


@dataclass
class Section:
    """A heading, the paragraphs and tables under it, and the claims about them."""

    heading: str
    parts: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    def __str__(self) -> str:
        verdicts = {True: "", False: "**Falls short:** "}
        claims = "\n".join(f"- {verdicts[claim.holds]}{claim}" for claim in self.claims)
        return "\n\n".join(filter(None, [f"### {self.heading}", *self.parts, claims]))


def table(header: str, rows: Iterable[str]) -> str:
    """Write a table of lines with ` | ` between their cells; only the first column is text."""
    rule = " | ".join(["---", *["---:"] * header.count(" | ")])
    return "\n".join(f"| {line} |" for line in (header, rule, *rows))


def with_tables(file: Path, tables: str) -> str:
    """Return the text of a file with new tables between its two markers, or fail in one line."""
    block = f"{BEGIN}\n\n{tables.strip()}\n\n{END}"
    old = re.compile(f"{BEGIN}\n.*?{END}", re.DOTALL)
    text, found = old.subn(lambda _: block, file.read_text(encoding="utf-8"))
    if found != 1:
        message = f"{file.name}: There must be one line {BEGIN} and after it one line {END}."
        raise click.ClickException(message)
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.4g}"  # noqa: PLR2004  # enough digits
