"""The charts show what the warehouse holds, in words that can be read and found."""

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
from charts.history import draw_history

if TYPE_CHECKING:
    from pathlib import Path

OPEN_ROLES = [
    ("Sales", "3"),
    ("Engineering", "2"),
    ("People", "1"),
    ("Recht & Übersetzung", "1"),
    ("not given", "1"),
]

FINAL_TABLES = """
create schema analytics;
create table analytics.daily_open_jobs as
from (values
    (date '2026-11-01', 'Sales', 3), (date '2026-11-01', 'People', 1),
    (date '2026-11-02', 'Sales', 2), (date '2026-11-03', 'Sales', 5)
) as t(day, department, open_jobs);
create table analytics.publication_periods as
from (values ('Sales', 2.0), ('Sales', 10.0), ('Sales', 4.0), (null, 7.0))
as t(department, days_open_at_least);
create table analytics.job_changes as
from (values
    (timestamp '2026-11-02 04:00', 'a', 'Recruiter', 'min_salary', 50000.0, 55000.0),
    (timestamp '2026-11-03 04:00', 'b', 'Planner', 'max_salary', 80000.0, 78000.0),
    (timestamp '2026-11-03 04:00', 'c', 'Nobody', 'min_salary', null, 1.0),
    (timestamp '2026-11-03 04:00', 'd', 'Nobody', 'years_experience', 1.0, 2.0)
) as t(changed_by, job_key, job_title, field, old_number, new_number);
"""


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


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The file of a warehouse in which dbt has built its tables."""
    file = tmp_path / "built.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(FINAL_TABLES)
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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_chart_says_what_the_tables_hold(built: Path, tmp_path: Path, theme: str) -> None:
    draw_history(built, tmp_path)

    assert texts(tmp_path / f"open-over-time-{theme}.svg") == [
        "0",
        "5",
        "Open roles over time",
        "4 on 2026-11-01, 5 on 2026-11-03",
    ]
    assert texts(tmp_path / f"days-open-{theme}.svg") == [
        "not given",
        "Sales",
        "7",
        "4",
        "How long roles are open, by department",
        "Median of days, at least, of 4 openings; open roles count with the days so far",
    ]
    assert texts(tmp_path / f"pay-changes-{theme}.svg") == [
        "03 Nov, upper end",
        "02 Nov, lower end",
        "-2.5 %",
        "Planner",
        "+10.0 %",
        "Recruiter",
        "Pay changes",
        "The latest changes of an end of a salary range, in percent",
    ]


@pytest.mark.parametrize(("arguments", "charts"), [([], 4), (["built.duckdb"], 6)])
def test_the_command_says_what_it_wrote(
    database: Path,
    built: Path,
    arguments: list[str],
    charts: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without an argument the demo's charts, with one those of what happened in a warehouse."""
    folder = built.parent
    (folder / "docs").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(command, "REPOSITORY", folder)
    monkeypatch.setattr(command, "DATABASE", database)

    command.main(*arguments)

    written = sorted(capsys.readouterr().out.split())
    assert written == sorted(f"docs/{file.name}" for file in (folder / "docs").iterdir())
    assert len(written) == charts


def test_without_the_demo_the_command_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)

    with pytest.raises(SystemExit, match="Run `uv run public-jobs-sandbox demo` first"):
        command.main()


def test_without_a_build_the_command_names_it(tmp_path: Path) -> None:
    file = tmp_path / "empty.duckdb"
    duckdb.connect(str(file)).close()

    with pytest.raises(SystemExit, match="dbt-duckdb:build"):
        command.main(str(file))
