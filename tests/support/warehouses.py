"""The two warehouses: real targets load them, and real dbt builds in them."""

from __future__ import annotations

import json
import os
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
from e2e.pipeline import environment, installed, load, program, written
from e2e.targets import MELTANOLABS_IMPORTS
from support.plugins import REPOSITORY, plugin

if TYPE_CHECKING:
    from pathlib import Path

    from forked import Program

TRANSFORM = REPOSITORY / "transform"

WITHOUT_TESTS = ("--exclude-resource-type", "test", "unit_test")
HISTORY_ALONE = ("--select", "path:models/staging", "path:snapshots", *WITHOUT_TESTS)

Row = dict[str, Any]


# What each command imports once for all runs.
IMPORTS = {
    "target-duckdb": (),  # DuckDB starts threads
    "target-postgres": MELTANOLABS_IMPORTS,
    "dbt": ("dbt.cli.main",),
}


def command(kind: str, name: str) -> Path:
    """Install a plugin as Meltano would, or with another dbt; returns the path of its command."""
    settings = plugin(kind, name)
    executable: str = settings["executable"]
    package, *others = settings["pip_url"].split()
    if executable == "dbt":
        package = os.environ.get("DBT_CORE", package)
    return installed(" ".join([package, *others])) / executable


def imported(kind: str, name: str) -> Program:
    """The command of a plugin."""
    path = command(kind, name)
    return program(path, *IMPORTS[path.name])


def run_target(
    name: str, folder: Path, config: dict[str, Any], messages: str, *, dies: bool
) -> Any:
    target = imported("loaders", name)
    if dies:
        file = written(folder / "target.json", config | {"batch_size_rows": 3})
        ended = target.run(["--config", file], environment(PGTZ="UTC"), text=messages)
        assert ended.returncode != 0
        return None
    return json.loads(load(target, config, messages, folder).splitlines()[-1])


def run_dbt(
    name: str, folder: Path, project: Path, arguments: tuple[str, ...], **variables: str
) -> tuple[int, str]:
    target = plugin("utilities", name)["config"]["target"]
    result = imported("utilities", name).run(
        ["--no-use-colors", *arguments, "--target", target],
        environment(
            DBT_PROFILES_DIR=str(TRANSFORM),
            DBT_TARGET_PATH=str(folder / "dbt"),
            DBT_LOG_PATH=str(folder / "dbt"),
            # Nothing that dbt writes depends on where it runs.
            TZ="America/New_York",
            PGTZ="America/New_York",
            **variables,
        ),
        folder=project,
    )
    return result.returncode, result.stdout + result.stderr


@dataclass
class Builds(ABC):
    """What both have in common.

    Attributes:
        folder: For the files of target and dbt.
        project: What dbt builds.
    """

    folder: Path
    project: Path = field(default=TRANSFORM, kw_only=True)

    @abstractmethod
    def load(self, messages: str, schema: str = "public_jobs", *, dies: bool = False) -> Any:
        """Run the target, with small batches if it dies; returns the last state."""

    @abstractmethod
    def rows(self, table: str) -> list[Row]:
        """All rows of a table."""

    @abstractmethod
    def dbt(self, *arguments: str) -> tuple[int, str]:
        """Run dbt; returns its status and what it prints."""

    def build(self, *arguments: str) -> str:
        """Run `dbt build`, which must end well; returns what it prints."""
        production = () if "unit_test" in arguments else ("--exclude-resource-type", "unit_test")
        status, output = self.dbt("build", *arguments, *production)
        assert status == 0, output
        return output

    def listed_at(self, *arguments: str) -> str:
        """Run `dbt source freshness`; returns the time that it finds too long ago."""
        status, output = self.dbt("source", "freshness", *arguments)
        assert "ERROR STALE" in output
        assert status == 1
        results = json.loads((self.folder / "dbt" / "sources.json").read_text("utf-8"))["results"]
        (publications,) = results  # the only source that has freshness
        found: str = publications["max_loaded_at"]
        return found


@dataclass
class DuckDB(Builds):
    """A file."""

    @property
    def file(self) -> str:
        return str(self.folder / "warehouse.duckdb")

    def load(self, messages: str, schema: str = "public_jobs", *, dies: bool = False) -> Any:
        config = {"filepath": self.file, "default_target_schema": schema}
        return run_target("target-duckdb", self.folder, config, messages, dies=dies)

    def dbt(self, *arguments: str) -> tuple[int, str]:
        variables = {"TARGET_DUCKDB_FILEPATH": self.file}
        return run_dbt("dbt-duckdb", self.folder, self.project, arguments, **variables)

    def run(self, statement: str) -> None:
        # By the DuckDB of target and dbt: it may not read what a newer one has written.
        python = command("utilities", "dbt-duckdb").parent / "python"
        code = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.argv[2])"
        subprocess.run([python, "-c", code, self.file, statement], check=True)

    def rows(self, table: str) -> list[Row]:
        with duckdb.connect(self.file, read_only=True) as connection:
            result = connection.execute(f"select * from {table}")  # noqa: S608
            names = [column[0] for column in result.description or ()]
            return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


@dataclass
class Postgres(Builds):
    """A database of a server."""

    address: str

    @property
    def url(self) -> str:
        return self.address.replace(":", "+psycopg:", 1)

    def load(self, messages: str, schema: str = "public_jobs", *, dies: bool = False) -> Any:
        config = {
            "sqlalchemy_url": self.url,
            "default_target_schema": schema,
            "hard_delete": True,
            "activate_version": True,
        }
        return run_target("target-postgres", self.folder, config, messages, dies=dies)

    def dbt(self, *arguments: str) -> tuple[int, str]:
        variables = {"TARGET_POSTGRES_SQLALCHEMY_URL": self.url}
        return run_dbt("dbt-postgres", self.folder, self.project, arguments, **variables)

    def run(self, statement: str) -> None:
        with psycopg.connect(self.address) as connection:
            connection.execute(statement.encode())

    def rows(self, table: str) -> list[Row]:
        with psycopg.connect(self.address, row_factory=psycopg.rows.dict_row) as connection:
            return connection.execute(f"select * from {table}".encode()).fetchall()  # noqa: S608


Warehouse = DuckDB | Postgres
