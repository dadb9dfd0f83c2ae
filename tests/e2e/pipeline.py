"""Real Meltano with its real plugins, and the warehouse that it fills."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb

from tap_public_jobs.sandbox.demo import uv_command

if TYPE_CHECKING:
    from pathlib import Path

    from tap_public_jobs.sandbox.state import Sandbox

JSON_COLUMNS = {"additionalfields", "knockoutquestions"}

Row = dict[str, Any]


def exact(json_text: str) -> Any:
    """Read JSON without turning decimals into floats."""
    return json.loads(json_text, parse_float=Decimal)


class Warehouse:
    """A DuckDB file, and the Meltano state that belongs to it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "warehouse.duckdb"
        self.state = folder / "meltano.db"

    def rows(self, table: str) -> list[Row]:
        """Every row in the order of its id, JSON columns parsed."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            result = connection.execute(f"select * from public_jobs.{table} order by id")  # noqa: S608
            names = [column[0] for column in result.description or ()]
            rows = [dict(zip(names, values, strict=True)) for values in result.fetchall()]
        for row in rows:
            for name in JSON_COLUMNS & row.keys():
                row[name] = row[name] and exact(row[name])
        return rows


@dataclass
class Run:
    """What came of one command."""

    status: int
    output: str


@dataclass
class Project:
    """Where the project is."""

    folder: Path

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables without any that this shell may have for the tap, a target or Meltano."""
        private = ("TAP_", "TARGET_", "MELTANO_")
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(private)
        }
        return inherited | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"} | variables

    def sync(self, sandbox: Sandbox, base_url: str, warehouse: Warehouse, **variables: str) -> Run:
        """Run the pipeline into DuckDB as README.md tells its users to."""
        return self.meltano(
            "tap-public-jobs",
            "target-duckdb",
            TAP_PUBLIC_JOBS_API_KEY=sandbox.key,
            TAP_PUBLIC_JOBS_BASE_URL=base_url,
            TARGET_DUCKDB_FILEPATH=str(warehouse.file),
            MELTANO_DATABASE_URI=f"sqlite:///{warehouse.state}",
            **variables,
        )

    def meltano(self, tap: str, target: str, **variables: str) -> Run:
        """Run a tap into a target; Meltano installs what is not there yet."""
        command = [*uv_command(), "tool", "run", "--from", "meltano~=4.4", "meltano", "run"]
        if (self.folder / ".meltano" / "loaders" / target).exists():
            command.append("--no-install")
        result = subprocess.run(
            [*command, tap, target],
            cwd=self.folder,
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Run(result.returncode, result.stdout)
