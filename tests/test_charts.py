"""The README's charts show what the warehouse holds, in words that can be read and found."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import duckdb
import pytest
from queries.jobs import ROWS
from queries.warehouse import DuckDB

from charts import __main__ as command
from charts.draw import draw

if TYPE_CHECKING:
    from pathlib import Path

OPEN_ROLES = [
    ("Sales", "3"),
    ("Engineering", "2"),
    ("People", "1"),
    ("Recht & Übersetzung", "1"),
    ("not given", "1"),
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file of a warehouse."""
    file = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(file)) as connection:
        warehouse = DuckDB(connection)
        for table, rows in ROWS.items():
            warehouse.load(table, rows)
        warehouse.run("commit")
    return file


def texts(file: Path) -> list[str]:
    """What a chart says, in the order of the file."""
    found = re.findall(r"<text[^>]*>(.*?)</text>", file.read_text(encoding="utf-8"))
    return [html.unescape(text) for text in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_roles(database: Path, tmp_path: Path, theme: str) -> None:
    draw(database, tmp_path)

    assert texts(tmp_path / f"open-roles-{theme}.svg") == [
        *(name for name, _ in OPEN_ROLES),
        *(count for _, count in OPEN_ROLES),
        "Open roles by department",
        "8 roles in the demo's warehouse",
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_salaries_of_one_currency(database: Path, tmp_path: Path, theme: str) -> None:
    draw(database, tmp_path)

    assert texts(tmp_path / f"salaries-{theme}.svg") == [
        "senior (n = 2)",
        "50,000",
        "80,000",
        "What roles pay in EUR, by seniority",
        "From the lowest to the highest end of the ranges; the line is the median of their middles",
    ]


def test_a_chart_drawn_again_is_the_same_file(database: Path, tmp_path: Path) -> None:
    files = draw(database, tmp_path)
    first = [file.read_bytes() for file in files]

    assert [file.name for file in files] == [
        "open-roles-light.svg",
        "salaries-light.svg",
        "open-roles-dark.svg",
        "salaries-dark.svg",
    ]
    assert [file.read_bytes() for file in draw(database, tmp_path)] == first


def test_the_command_says_what_it_wrote(
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)
    monkeypatch.setattr(command, "DATABASE", database)

    command.main()

    written = sorted(capsys.readouterr().out.split())
    assert written == sorted(f"docs/{file.name}" for file in (tmp_path / "docs").iterdir())
    assert len(written) == 4


def test_without_the_demo_the_command_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)

    with pytest.raises(SystemExit, match="Run `uv run public-jobs-sandbox demo` first"):
        command.main()
