"""What the benchmarks print, and what they make of a claim that does not hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click
import pytest

from benchmarks.report import BEGIN, END, Claim, Section, table, with_tables

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_is_markdown_with_numbers_to_the_right() -> None:
    text = table("client | s", ["ours | 1"])

    assert text == "| client | s |\n| --- | ---: |\n| ours | 1 |"


@pytest.mark.parametrize(
    ("measured", "line"),
    [
        (0.7, "- 3,000 jobs take at most 0.7 of the time (0.7)."),
        (0.7004, "- **Falls short:** 3,000 jobs take at most 0.7 of the time (0.7004)."),
        (1191.667, "- **Falls short:** 3,000 jobs take at most 0.7 of the time (1,192)."),
        (math.nan, "- **Falls short:** 3,000 jobs take at most 0.7 of the time (nan)."),
    ],
)
def test_a_section_ends_with_its_claims_and_their_figures(measured: float, line: str) -> None:
    claim = Claim("3,000 jobs take at most {} of the time", measured, at_most=0.7)

    section = Section("Speed", ["Some words."], [claim])

    assert str(section) == f"### Speed\n\nSome words.\n\n{line}"


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "benchmarks.md"
    file.write_text(f"before\n{BEGIN}\nold\n\nolder\n{END}\nafter\n", encoding="utf-8")

    new = with_tables(file, "| new |\n")

    assert new == f"before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"
    file.write_text(new, encoding="utf-8")
    assert with_tables(file, "| new |") == new


@pytest.mark.parametrize(
    "text",
    ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", 2 * f"{BEGIN}\n{END}\n"],
    ids=["neither", "no end", "end first", "twice"],
)
def test_a_text_without_its_two_markers_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "benchmarks.md"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(click.ClickException, match=r"benchmarks\.md: .*benchmarks: begin"):
        with_tables(file, "| new |")
