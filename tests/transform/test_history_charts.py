"""The charts on the pages are of what the real tap, target and dbt make of thirteen weeks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from transform.weeks import DOCS, draw_weeks

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.e2e


def texts(file: Path) -> list[str]:
    return re.findall(r"<text.*>(.+)</text>", file.read_text(encoding="utf-8"))


def test_the_charts_of_the_pages_are_of_these_weeks(tmp_path: Path) -> None:
    """Other versions of matplotlib draw a little differently, and say the same."""
    drawn = draw_weeks(tmp_path)

    assert {file.name for file in drawn} == {file.name for file in DOCS.glob("*.svg")}
    for file in drawn:
        assert len(texts(file)) > 5
        assert texts(file) == texts(DOCS / file.name)
