"""Charts show what the final tables hold, in words that can be read and found."""

from __future__ import annotations

import html
import re
from pathlib import Path

import duckdb
import pytest

from charts import __main__ as command
from charts.history import draw

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
    (timestamp '2026-11-02 04:00', 'a', 'Recruiter', 'min_salary', 50000.0, 55000.0, null, null),
    (timestamp '2026-11-03 04:00', 'b', 'Planner', 'max_salary', 80000.0, 78000.0, 'EUR', 'EUR'),
    (timestamp '2026-11-03 04:00', 'c', 'Nobody', 'min_salary', null, 1.0, null, null),
    (timestamp '2026-11-03 04:00', 'd', 'Nobody', 'years_experience', 1.0, 2.0, null, null),
    (timestamp '2026-11-03 04:00', 'e', 'Nobody', 'max_salary', 400.0, 60000.0, 'EUR', 'JPY')
) as t(
    changed_by, job_key, job_title, field, old_number, new_number, old_currency, new_currency
);
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
    draw(warehouse, tmp_path)

    assert texts(tmp_path / f"open-over-time-{theme}.svg") == [
        "01 Nov",
        "02 Nov",
        "03 Nov",
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


def test_the_command_draws_beside_the_warehouse_and_says_what(
    warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And draws the same files again."""
    command.main(warehouse)

    written = sorted(tmp_path.glob("*.svg"))
    assert sorted(capsys.readouterr().out.splitlines()) == [str(file) for file in written]
    first = [file.read_bytes() for file in written]
    command.main(warehouse)
    assert [file.read_bytes() for file in written] == first


def test_a_new_warehouse_has_the_charts_of_what_is_there(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the first build there is no change of pay, and in an empty list no job."""
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("delete from analytics.job_changes")
    command.main(warehouse)
    *files, line = capsys.readouterr().out.splitlines()
    assert {Path(file).stem.rpartition("-")[0] for file in files} == {
        "open-over-time",
        "days-open",
    }
    assert line == "There are no pay changes yet."

    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("delete from analytics.publication_periods")
        connection.execute("delete from analytics.daily_open_jobs")
    command.main(warehouse)
    assert capsys.readouterr().out == "There is no job in the tables of dbt yet.\n"


def test_without_a_build_the_command_names_it(tmp_path: Path) -> None:
    file = tmp_path / "empty.duckdb"
    duckdb.connect(str(file)).close()

    with pytest.raises(SystemExit, match="dbt-duckdb:build"):
        command.main(file)
