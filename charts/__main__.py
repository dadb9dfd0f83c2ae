"""The command `python -m charts output/warehouse.duckdb`: draw what happened over time.

It reads the tables that dbt has built in a DuckDB file, and writes the charts beside that file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from charts.history import draw


def main(warehouse: Path) -> None:
    """Draw each chart, and print the names of the files."""
    try:
        files = draw(warehouse, warehouse.parent)
    except duckdb.Error as error:
        remedy = "Run `meltano run tap-public-jobs target-duckdb dbt-duckdb:build` first."
        sys.exit(f"{error}\n{remedy}")
    for file in files:
        print(file)  # noqa: T201  # what a command says
    if not files:
        print("There is no job in the tables of dbt yet.")  # noqa: T201
    elif not any(file.name.startswith("pay-changes") for file in files):
        print("There are no pay changes yet.")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else "output/warehouse.duckdb"))
