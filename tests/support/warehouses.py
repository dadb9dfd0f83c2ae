"""The two warehouses: real targets load them, and real dbt builds in them."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from e2e.pipeline import REPOSITORY, environment, installed, plugin, program, variables
from e2e.stores import Database
from e2e.targets import DUCKDB, DUCKDB_FILE, Target, meltanolabs

TRANSFORM = REPOSITORY / "transform"

WITHOUT_TESTS = ("--exclude-resource-type", "test", "unit_test")
HISTORY_ALONE = ("--select", "path:models/staging", "path:snapshots", *WITHOUT_TESTS)

Row = dict[str, Any]


def dbt_command(name: str) -> Path:
    """Install dbt as Meltano would, or another version of it; returns the path of its command."""
    core, *others = plugin("utilities", name)["pip_url"].split()
    return installed(" ".join([os.environ.get("DBT_CORE", core), *others])) / "dbt"


def run_dbt(
    run: Callable[..., subprocess.CompletedProcess[str]],
    folder: Path,
    project: Path,
    *arguments: str | Path,
    **variables: str,
) -> tuple[int, str]:
    """Run dbt, with its files in a folder; returns its status and what it prints."""
    zone = "America/New_York"  # nothing that dbt writes depends on where it runs
    files = str(folder / "dbt")
    shell = {"DBT_TARGET_PATH": files, "DBT_LOG_PATH": files, "TZ": zone, "PGTZ": zone}
    shell |= {"DBT_PROFILES_DIR": str(TRANSFORM)} | variables
    result = run(["--no-use-colors", *arguments], environment(**shell), folder=project)
    return result.returncode, result.stdout + result.stderr


@dataclass
class Builds:
    """What both have in common.

    Attributes:
        folder: For the files of target and dbt.
        address: Of a database.
        project: What dbt builds.
        target: What loads it.
        utility: The plugin that builds in it.
    """

    folder: Path
    address: str = ""
    project: Path = field(default=TRANSFORM, kw_only=True)
    target: Target = field(kw_only=True)
    utility: ClassVar[str]

    def load(self, messages: str, schema: str = "public_jobs", *, dies: bool = False) -> Any:
        """Run the target, with small batches if it dies; returns the last state."""
        into = (self.folder, self.address)
        if dies:
            ended = self.target.run(
                messages, *into, default_target_schema=schema, batch_size_rows=3
            )
            assert ended.returncode != 0
            return None
        return self.target.load(messages, *into, default_target_schema=schema)[-1]

    def rows(self, table: str) -> list[Row]:
        """All rows of a table."""
        store = self.target.store(self.folder, self.address)
        assert isinstance(store, Database)
        return store.fetch(f"select * from {table}")  # noqa: S608

    @property
    def variables(self) -> dict[str, str]:
        """The variables from which dbt takes the address of the database, as the loader does."""
        return variables(self.target.executable, self.target.settings(self.folder, self.address))

    def dbt(self, *arguments: str) -> tuple[int, str]:
        """Run dbt; returns its status and what it prints."""
        dbt = program(dbt_command(self.utility), "dbt.cli.main")
        output = plugin("utilities", self.utility)["config"]["target"]
        options = (*arguments, "--target", output)
        return run_dbt(dbt.run, self.folder, self.project, *options, **self.variables)

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
        return str(publications["max_loaded_at"])


@dataclass
class DuckDB(Builds):
    """A file."""

    target: Target = field(default=DUCKDB, kw_only=True)
    utility = "dbt-duckdb"

    @property
    def file(self) -> Path:
        return self.folder / DUCKDB_FILE

    def run(self, statement: str) -> None:
        # By the DuckDB of target and dbt: it may not read what a newer one has written.
        python = dbt_command(self.utility).with_name("python")
        code = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.argv[2])"
        subprocess.run([python, "-c", code, self.file, statement], check=True)


@dataclass
class Postgres(Builds):
    """A database of a server."""

    target: Target = field(default=meltanolabs("hard", "public_jobs"), kw_only=True)
    utility = "dbt-postgres"

    def run(self, statement: str) -> None:
        with psycopg.connect(self.address) as connection:
            connection.execute(statement.encode())


Warehouse = DuckDB | Postgres
