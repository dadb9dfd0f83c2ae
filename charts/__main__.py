"""The command `python -m charts`: draw the README's charts again.

`python -m charts output/warehouse.duckdb` draws what happened over time, from the tables that dbt
has built in a warehouse.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from charts.draw import draw
from charts.history import draw_history

REPOSITORY = Path(__file__).parents[1]
DATABASE = Path("output", "demo.duckdb")
DOCS = Path("docs")


def main(warehouse: str | None = None) -> None:
    """Read the warehouse of the demo, or the one that is named, and write into `docs/`."""
    try:
        if warehouse:
            remedy = "Run `meltano run tap-public-jobs target-duckdb dbt-duckdb:build` first."
            files = draw_history(Path(warehouse), REPOSITORY / DOCS)
        else:
            remedy = f"Run `uv run public-jobs-sandbox demo` first. It makes {DATABASE}."
            files = draw(REPOSITORY / DATABASE, REPOSITORY / DOCS)
    except duckdb.Error as error:
        sys.exit(f"{error}\n{remedy}")
    for file in files:
        print(file.relative_to(REPOSITORY))  # noqa: T201  # what a command says


if __name__ == "__main__":
    main(*sys.argv[1:])
