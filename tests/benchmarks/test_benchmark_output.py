"""What the benchmarks print, and what they make of a claim that does not hold."""

from __future__ import annotations

import math

import pytest

from benchmarks.claims import Claim
from benchmarks.imports import import_times
from benchmarks.readme import BEGIN, END, NoMarkersError, with_tables
from benchmarks.section import Section
from benchmarks.table import Table

FASTER = "3,000 jobs take at most {} of the time"
IMPORTS = """\
import time: self [us] | cumulative | imported package
import time:       100 |        100 | site
a line of the log
import time:        10 |         10 |       urllib3
import time:        20 |         30 |     requests
import time:         5 |          5 |       sqlalchemy
import time:        40 |         75 |   singer_sdk
import time:         7 |          7 |   difflib
import time:         3 |         85 | tap_public_jobs.tap
"""


def section_with(claim: Claim) -> Section:
    return Section("Speed", ["Some words.", Table(("client", "s"), [("ours", "1.0")])], [claim])


def test_a_table_is_markdown_with_numbers_to_the_right() -> None:
    table = Table(("client", "s"))
    table.add("ours", "1.0")

    assert str(table) == "| client | s |\n| --- | ---: |\n| ours | 1.0 |"


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="3 cells under 2 columns"):
        Table(("client", "s")).add("ours", "1.0", "2.0")


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (0.7, "3,000 jobs take at most 0.7 of the time (0.7)."),
        (0.7004, "**Falls short:** 3,000 jobs take at most 0.7 of the time (0.7004)."),
        (1191.667, "**Falls short:** 3,000 jobs take at most 0.7 of the time (1,192)."),
        (math.nan, "**Falls short:** 3,000 jobs take at most 0.7 of the time (nan)."),
    ],
)
def test_a_claim_tells_its_threshold_and_its_figure(measured: float, text: str) -> None:
    assert str(Claim(FASTER, measured, at_most=0.7)) == text


def test_a_section_ends_with_its_claims() -> None:
    section = section_with(Claim("None is lost", 0, at_most=0))

    assert str(section) == (
        "### Speed\n\nSome words.\n\n| client | s |\n| --- | ---: |\n| ours | 1.0 |\n\n"
        "- None is lost (0)."
    )


def test_imports_are_owed_to_the_package_that_needed_them_first() -> None:
    assert import_times(IMPORTS) == {
        "requests": 30,
        "singer_sdk": 45,
        "tap_public_jobs": 3,
        "": 107,
    }


def test_only_what_is_between_the_markers_is_replaced() -> None:
    text = f"before\n{BEGIN}\nold\n\nolder\n{END}\nafter\n"

    new = with_tables(text, "| new |\n")

    assert new == f"before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"
    assert with_tables(new, "| new |") == new


@pytest.mark.parametrize(
    "text",
    ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", 2 * f"{BEGIN}\n{END}\n", f"{BEGIN}\n{BEGIN}\n{END}\n"],
    ids=["neither", "no end", "end first", "twice", "two begins"],
)
def test_a_text_without_its_two_markers_is_refused(text: str) -> None:
    with pytest.raises(NoMarkersError, match="benchmarks: begin"):
        with_tables(text, "| new |")
