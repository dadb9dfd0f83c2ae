"""The command `python -m charts`: draw the README's charts again."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from charts.draw import draw

REPOSITORY = Path(__file__).parents[1]
DATABASE = Path("output", "demo.duckdb")
DOCS = Path("docs")


def main() -> None:
    """Read the warehouse of the demo, and write into `docs/`."""
    try:
        files = draw(REPOSITORY / DATABASE, REPOSITORY / DOCS)
    except duckdb.Error as error:
        sys.exit(f"{error}\nRun `uv run public-jobs-sandbox demo` first. It makes {DATABASE}.")
    for file in files:
        print(file.relative_to(REPOSITORY))  # noqa: T201  # what a command says


if __name__ == "__main__":
    main()
