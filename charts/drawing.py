"""What all charts share: horizontal bars, for a light page and for a dark one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

WIDTH = 7.6  # inches of 72 points: about as wide as a README
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


def chart(
    title: str, subtitle: str, rows: Sequence[str], theme: Theme, footer: float = FOOTER
) -> tuple[Figure, Axes]:
    """Prepare a chart of horizontal bars, whose values are written beside them."""
    height = HEADER + ROW * len(rows) + footer
    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.01, 1 - 0.24 / height, title, color=theme.text, size=13, weight="bold")
    figure.text(0.01, 1 - 0.48 / height, subtitle, color=theme.muted)
    axes = figure.add_axes((0.21, footer / height, 0.69, ROW * len(rows) / height))
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
