"""Charts of what happened over time, from the final tables that dbt builds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from charts.drawing import BAR, chart, save, write

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from charts.drawing import Theme

OPEN_ON_DAYS = """
    select day, cast(sum(open_jobs) as int) from analytics.daily_open_jobs
    group by day order by day
"""

# Open roles count with the days so far; without them, long openings would be missing.
DAYS_OPEN = """
    select coalesce(department, 'not given') as department, count(*), median(days_open_at_least)
    from analytics.publication_periods
    group by 1 order by 3 desc, 1
"""

# In percent, because amounts in different currencies do not compare: neither does one in two.
PAY_CHANGES = """
    select
        changed_by, job_title, case field when 'min_salary' then 'lower' else 'upper' end,
        100 * (new_number / old_number - 1)
    from analytics.job_changes
    where field in ('min_salary', 'max_salary') and old_number > 0 and new_number > 0
        and old_currency is not distinct from new_currency
    order by changed_by desc, job_key, field
    limit 12
"""

DATES = 6
"""The most dates to write below a chart."""
LONGEST_TITLE = 40
"""In characters: half as wide as a chart."""


class Day(NamedTuple):
    """How many roles were open on a day."""

    day: dt.date
    open_roles: int


class Department(NamedTuple):
    """How long the roles of a department are open, or were."""

    name: str
    periods: int
    median_days: float


class PayChange(NamedTuple):
    """By how much one end of a salary range changed."""

    changed_by: dt.datetime
    job_title: str
    end: str
    percent: float


def draw(database: Path, folder: Path) -> list[Path]:
    """Draw each chart in each theme.

    Args:
        database: A DuckDB file in which dbt has built the final tables.
        folder: Where the SVG files go.

    Returns:
        The files, the same bytes for the same data and the same matplotlib. A chart of which
        there is nothing yet has none.
    """
    with duckdb.connect(str(database), read_only=True) as connection:
        days = [Day(*row) for row in connection.sql(OPEN_ON_DAYS).fetchall()]
        departments = [Department(*row) for row in connection.sql(DAYS_OPEN).fetchall()]
        changes = [PayChange(*row) for row in connection.sql(PAY_CHANGES).fetchall()]
    charts: dict[str, Callable[[Theme], Figure]] = {}
    if days:
        charts["open-over-time"] = lambda theme: _draw_days(days, theme)
        charts["days-open"] = lambda theme: _draw_departments(departments, theme)
    if changes:
        charts["pay-changes"] = lambda theme: _draw_changes(changes, theme)
    return save(charts, folder)


def _draw_days(days: Sequence[Day], theme: Theme) -> Figure:
    first, last = days[0], days[-1]
    figure, axes = chart(
        "Open roles over time",
        f"{first.open_roles:,} on {first.day}, {last.open_roles:,} on {last.day}",
        [""] * 6,  # as high as six bars
        theme,
        footer=0.35,
    )
    # Each day lasts until the next one, and so does the last.
    places = [(day.day - first.day).days for day in days] + [(last.day - first.day).days + 1]
    heights = [day.open_roles for day in days] + [last.open_roles]
    axes.fill_between(places, heights, step="post", color=theme.bar, alpha=0.4, linewidth=0)
    axes.step(places, heights, where="post", color=theme.mark)
    axes.set_ylim(0, 1.1 * max(heights))
    axes.set_yticks([0, max(heights)], ["0", f"{max(heights):,}"], color=theme.text)
    axes.set_xlim(0, places[-1])
    step = -(-len(days) // DATES)
    dates = [f"{day.day:%d %b}" for day in days[::step]]
    axes.xaxis.set_visible(True)
    axes.tick_params(axis="x", pad=8)
    axes.set_xticks(places[:-1:step], dates, color=theme.text)
    return figure


def _draw_departments(departments: Sequence[Department], theme: Theme) -> Figure:
    periods = sum(department.periods for department in departments)
    figure, axes = chart(
        "How long roles are open, by department",
        f"Median of days, at least, of {periods:,} openings; open roles count with the days so far",
        [department.name for department in departments],
        theme,
    )
    for row, department in enumerate(departments):
        axes.barh(row, department.median_days, height=BAR, color=theme.bar)
        write(axes, (department.median_days, row), "left", theme)
    return figure


def _draw_changes(changes: Sequence[PayChange], theme: Theme) -> Figure:
    figure, axes = chart(
        "Pay changes",
        "The latest changes of an end of a salary range, in percent",
        [f"{change.changed_by:%d %b}, {change.end} end" for change in changes],
        theme,
    )
    widest = max(abs(change.percent) for change in changes)
    axes.set_xlim(-1.3 * widest, 1.3 * widest)
    axes.axvline(0, color=theme.muted, linewidth=1)
    for row, change in enumerate(changes):
        axes.barh(row, change.percent, height=BAR, color=theme.bar)
        is_raise = change.percent > 0
        write(axes, (change.percent, row), "left" if is_raise else "right", theme, "{:+.1f} %")
        axes.annotate(
            textwrap.shorten(change.job_title, LONGEST_TITLE, placeholder="…"),
            (0, row),
            fontsize=8,
            xytext=(-6 if is_raise else 6, 0),
            textcoords="offset points",
            horizontalalignment="right" if is_raise else "left",
            verticalalignment="center_baseline",
            color=theme.muted,
        )
    return figure
