"""The tap and a real target, run by real Meltano or joined by a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from public_jobs_sandbox.meltano import uv_command

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox

JSON_COLUMNS = {"additional_fields", "knockout_questions"}

Row = dict[str, Any]
Settings = dict[str, Any]


def exact(json_text: str | bytes) -> Any:
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

    def types(self, table: str) -> dict[str, str]:
        """The type of each column."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            columns = connection.execute(f"describe public_jobs.{table}").fetchall()
        return {column[0]: column[1] for column in columns}


@dataclass
class Run:
    """What came of one command."""

    status: int
    output: str


def environment(**variables: str) -> dict[str, str]:
    """Variables without any that this shell may have for the tap, a target or Meltano."""
    private = ("TAP_", "TARGET_", "MELTANO_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return inherited | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"} | variables


def variables(plugin: str, settings: Settings) -> dict[str, str]:
    """The variables from which Meltano takes the settings of a plugin."""
    return {
        f"{plugin}_{name}".replace("-", "_").upper(): value
        if isinstance(value, str)
        else json.dumps(value)
        for name, value in settings.items()
    }


@dataclass
class Project:
    """Where the project is."""

    folder: Path

    def environment(self, **variables: str) -> dict[str, str]:
        return environment(**variables)

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
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Run(result.returncode, result.stdout)


@cache
def installed(requirement: str) -> Path:
    """Install a target in an environment of its own; returns the folder of its commands."""
    # Some targets need drivers that have no wheels for newer Pythons.
    tool = [*uv_command(), "tool", "run", "--python", "3.11", "--from", requirement]
    script = "import sys; print(sys.prefix)"
    prefix = subprocess.check_output([*tool, "python", "-c", script], text=True)
    return Path(prefix.strip()) / "bin"


@dataclass
class Pipe:
    """`tap-public-jobs | target`; the last state that the target lets through is the next run's.

    Attributes:
        folder: Where settings and state are kept.
        requirement: What to install, as pip names it.
        executable: The target's command.
    """

    folder: Path
    requirement: str
    executable: str

    def run(self, tap: Settings, target: Settings) -> Run:
        log, state = self.folder / "log.txt", self.folder / "state.json"
        source = [sys.executable, "-m", "tap_public_jobs", "--config", self._file("tap", tap)]
        if state.exists():
            source += ["--state", str(state)]
        with (
            log.open("w", encoding="utf-8") as errors,
            subprocess.Popen(
                source, stdout=subprocess.PIPE, stderr=errors, env=environment()
            ) as extractor,
        ):
            loader = subprocess.run(
                [
                    installed(self.requirement) / self.executable,
                    "--config",
                    self._file("target", target),
                ],
                stdin=extractor.stdout,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(),
                text=True,
                check=False,
            )
        if states := loader.stdout.splitlines():
            state.write_text(states[-1], "utf-8")
        return Run(extractor.returncode or loader.returncode, log.read_text("utf-8"))

    def _file(self, name: str, settings: Settings) -> str:
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(settings), "utf-8")
        return str(file)
