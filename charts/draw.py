"""Charts of open roles and of salaries, for a light page and for a dark one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import duckdb
import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

QUERIES = Path(__file__).parents[1] / "queries"
CURRENCY = "EUR"

WIDTH = 7.6  # inches of 72 points, which is about as wide as a README is
ROW = 0.34
BAR = 0.62  # of a row
HEADER, FOOTER = 0.65, 0.1


class Theme(NamedTuple):
    """Colours that are legible on one of GitHub's backgrounds, which show through."""

    name: str
    text: str
    muted: str
    bar: str
    mark: str


THEMES = (
    Theme("light", text="#1f2328", muted="#59636e", bar="#54aeff", mark="#0a3069"),
    Theme("dark", text="#f0f6fc", muted="#9198a1", bar="#1f6feb", mark="#cae8ff"),
)


class Department(NamedTuple):
    """How many roles a department has open."""

    name: str
    open_roles: int


class Salaries(NamedTuple):
    """What roles of one seniority pay."""

    seniority: str
    roles: int
    lowest: float
    median: float
    highest: float


def draw(database: Path, folder: Path) -> list[Path]:
    """Draw each chart in each theme.

    Args:
        database: A DuckDB file that Meltano has loaded.
        folder: Where the SVG files go.

    Returns:
        The files, the same bytes for the same data and the same matplotlib.
    """
    with duckdb.connect(str(database), read_only=True) as connection:
        departments = _departments(connection)
        salaries = _salaries(connection)
    charts = {
        "open-roles": lambda theme: _draw_departments(departments, theme),
        "salaries": lambda theme: _draw_salaries(salaries, theme),
    }
    return save(charts, folder)


def save(charts: Mapping[str, Callable[[Theme], Figure]], folder: Path) -> list[Path]:
    """Write each chart in each theme; returns the files."""
    files = []
    # Text stays text, and the same chart has the same ids.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "charts", "font.size": 10}):
        for theme in THEMES:
            for name, draw_in in charts.items():
                file = folder / f"{name}-{theme.name}.svg"
                draw_in(theme).savefig(
                    file, transparent=True, metadata={"Creator": None, "Date": None}
                )
                files.append(file)
    return files


def _departments(connection: duckdb.DuckDBPyConnection) -> list[Department]:
    answer = connection.sql((QUERIES / "open_roles.sql").read_text(encoding="utf-8"))
    totals = answer.aggregate("department, sum(open_roles)::int as open_roles")
    return [Department(*row) for row in totals.order("open_roles desc, department").fetchall()]


def _salaries(connection: duckdb.DuckDBPyConnection) -> list[Salaries]:
    answer = connection.sql((QUERIES / "salary_ranges.sql").read_text(encoding="utf-8"))
    columns = "seniority_level, roles, lowest, median, highest"
    chosen = answer.filter(f"currency = '{CURRENCY}'").order("median, seniority_level")
    return [Salaries(*row) for row in chosen.project(columns).fetchall()]


def _draw_departments(departments: Sequence[Department], theme: Theme) -> Figure:
    total = sum(department.open_roles for department in departments)
    figure, axes = chart(
        "Open roles by department",
        f"{total:,} roles in the demo's warehouse",
        [department.name for department in departments],
        theme,
    )
    for row, department in enumerate(departments):
        axes.barh(row, department.open_roles, height=BAR, color=theme.bar)
        write(axes, (department.open_roles, row), "left", theme)
    return figure


def _draw_salaries(salaries: Sequence[Salaries], theme: Theme) -> Figure:
    figure, axes = chart(
        f"What roles pay in {CURRENCY}, by seniority",
        "From the lowest to the highest end of the ranges; the line is the median of their middles",
        [f"{level.seniority} (n = {level.roles})" for level in salaries],
        theme,
    )
    for row, level in enumerate(salaries):
        width = level.highest - level.lowest
        axes.barh(row, width, left=level.lowest, height=BAR, color=theme.bar)
        axes.vlines(level.median, row - BAR / 2, row + BAR / 2, colors=theme.mark, linewidth=2.5)
        write(axes, (level.lowest, row), "right", theme)
        write(axes, (level.highest, row), "left", theme)
    highest = max((level.highest for level in salaries), default=1)
    axes.set_xlim(-0.05 * highest, highest)  # from zero, with room for the lowest value
    return figure


def chart(title: str, subtitle: str, rows: Sequence[str], theme: Theme) -> tuple[Figure, Axes]:
    """Prepare a chart of horizontal bars, whose values are written beside them."""
    height = HEADER + ROW * len(rows) + FOOTER
    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.01, 1 - 0.24 / height, title, color=theme.text, size=13, weight="bold")
    figure.text(0.01, 1 - 0.48 / height, subtitle, color=theme.muted)
    axes = figure.add_axes((0.21, FOOTER / height, 0.69, ROW * len(rows) / height))
    axes.set_yticks(range(len(rows)), rows, color=theme.text)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.xaxis.set_visible(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure, axes


def write(
    axes: Axes,
    end: tuple[float, int],
    align: Literal["left", "right"],
    theme: Theme,
    form: str = "{:,.0f}",
) -> None:
    """Write a value beside the end of the bar that it is in a row, before it or after it."""
    axes.annotate(
        form.format(end[0]),
        end,
        xytext=(4 if align == "left" else -4, 0),
        textcoords="offset points",
        horizontalalignment=align,
        verticalalignment="center_baseline",
        color=theme.text,
    )
