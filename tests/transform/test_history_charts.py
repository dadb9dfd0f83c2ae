"""The charts of what happened show what the final tables hold."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import duckdb
import pytest

from charts import __main__ as command
from charts.history import draw_history

if TYPE_CHECKING:
    from pathlib import Path

TABLES = """
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
def warehouse(tmp_path: Path) -> Path:
    file = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(TABLES)
    return file


def texts(file: Path) -> list[str]:
    """What a chart says, in the order of the file."""
    found = re.findall(r"<text[^>]*>(.*?)</text>", file.read_text(encoding="utf-8"))
    return [html.unescape(text) for text in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_chart_says_what_the_tables_hold(warehouse: Path, tmp_path: Path, theme: str) -> None:
    draw_history(warehouse, tmp_path)

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


def test_the_command_draws_a_warehouse_that_is_named(
    warehouse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)

    command.main(str(warehouse))

    written = sorted(capsys.readouterr().out.split())
    assert written == sorted(f"docs/{file.name}" for file in (tmp_path / "docs").iterdir())
    assert len(written) == 6


def test_without_a_build_the_command_names_it(tmp_path: Path) -> None:
    file = tmp_path / "empty.duckdb"
    duckdb.connect(str(file)).close()

    with pytest.raises(SystemExit, match="dbt-duckdb:build"):
        command.main(str(file))
