"""Questions in SQL and their answers, printed as text."""

import datetime as dt
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

FALLBACK_WIDTH = 100
FEWEST_CHARACTERS = 8


class Question(NamedTuple):
    """A question that an analyst asks, in words and in SQL."""

    words: str
    sql: str


def answer(database: Path, questions: Sequence[Question], *, first: int = 1) -> None:
    """Ask a DuckDB file, and print each question and its answer.

    Args:
        database: A warehouse.
        questions: What to ask.
        first: The number of the first question.
    """
    import duckdb  # noqa: PLC0415  # slow to import, and only the demo needs it

    width = shutil.get_terminal_size((FALLBACK_WIDTH, 24)).columns
    with duckdb.connect(str(database), read_only=True) as connection:
        for number, question in enumerate(questions, start=first):
            result = connection.execute(question.sql)
            names = [column[0] for column in result.description or ()]
            click.echo(f"\n{number}. {question.words}\n\n{indented(question.sql)}\n")
            for line in _table(names, result.fetchall(), width - 3):
                click.echo(f"   {line}")


def indented(sql: str) -> str:
    """Return SQL as the demo prints it."""
    return textwrap.indent(textwrap.dedent(sql).strip(), "     ")


def _table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Iterator[str]:
    """Align rows in columns, numbers to the right, and cut the last column at `width`."""
    cells = [list(names), *(list(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths[-1] = max(FEWEST_CHARACTERS, min(widths[-1], width - sum(widths[:-1]) - 2 * len(names)))
    cells.insert(1, ["-" * width for width in widths])
    is_number = [isinstance(value, int | float) for value in rows[0]]
    for row in cells:
        columns = zip(row, widths, is_number, strict=True)
        aligned = (
            _cut(cell, width).rjust(width) if right else _cut(cell, width).ljust(width)
            for cell, width, right in columns
        )
        yield "  ".join(aligned).rstrip()


def _cell(value: object) -> str:
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(str(value).split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
