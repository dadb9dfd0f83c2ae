"""A part of the output: what was measured, its tables, and what they let the README claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.claims import Claim
    from benchmarks.table import Table


@dataclass
class Section:
    """A heading and what stands under it.

    Attributes:
        heading: Its words.
        parts: Paragraphs and tables, in order.
        claims: What is claimed of them.
    """

    heading: str
    parts: list[str | Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    def __str__(self) -> str:
        claims = "\n".join(f"- {claim}" for claim in self.claims)
        paragraphs = [f"### {self.heading}", *map(str, self.parts), claims]
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
