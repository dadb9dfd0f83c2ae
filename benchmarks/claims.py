"""Sentences of the README that have a number in them, and whether they hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A figure that may not exceed a threshold.

    Attributes:
        sentence: What is claimed; `{}` stands for the threshold, where it has to be told.
        measured: The figure.
        at_most: The threshold.
    """

    sentence: str
    measured: float
    at_most: float

    @property
    def holds(self) -> bool:
        """Whether the figure keeps to the threshold; one that is no number does not."""
        return self.measured <= self.at_most

    def __str__(self) -> str:
        verdict = "" if self.holds else "**Falls short:** "
        return f"{verdict}{self.sentence.format(_number(self.at_most))} ({_number(self.measured)})."


def _number(value: float) -> str:
    if value >= 10:  # noqa: PLR2004  # no threshold has digits that would tell them apart
        return f"{value:,.0f}"
    return f"{value:.4g}"
