"""What a dbt build costs, at first and after two years."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
import duckdb
import psycopg
import yaml
from public_jobs_sandbox.postgresql import postgresql

from dev.benchmarks import years
from dev.benchmarks.bench import Bench, Claim, Section, install, table
from dev.benchmarks.process import Measured, run

REPOSITORY = Path(__file__).parents[2]
TRANSFORM = str(REPOSITORY / "pipeline" / "transform")
# How many were ever published, in the quick form and in the full one. A thirteenth is open.
JOBS = (3_900, 130_000)
# Of the night after two years. PostgreSQL keeps a copy of each text that changed.
MOST_SECONDS = {"DuckDB": 60, "PostgreSQL": 300}
MOST_MEGABYTES = 2_500

BUILD = ("build", "--exclude-resource-type", "unit_test")  # as Meltano runs it
HISTORY = """
select (select count(*) from analytics_history.publication_history)
    + (select count(*) from analytics_history.job_history)
    + (select count(*) from analytics_history.job_detail_history)
"""
WRITE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.argv[2])"
COLUMNS = "database | rows of history | seconds | CPU seconds | MB"


# The variable of a database's address, by dbt's adapter.
VARIABLES = {"duckdb": "TARGET_DUCKDB_FILEPATH", "postgres": "TARGET_POSTGRES_SQLALCHEMY_URL"}


@dataclass(frozen=True)
class EmptyDatabase:
    """An empty database, and the name of dbt's adapter."""

    name: str
    adapter: str
    place: str
    connect: Callable[[], Any]
    folder: Path

    def execute(self, statements: str) -> None:
        """Execute SQL; on DuckDB by dbt's own version, because a later one may break the file."""
        if self.adapter == "duckdb":
            python = Path(_program("dbt-duckdb")).parent / "python"
            self._run(str(python), "-c", WRITE, self.place, statements)
            return
        with self.connect() as connection:
            connection.execute(statements)

    def dbt(self, *arguments: str) -> tuple[int, Measured]:
        """Run a command of dbt, and return the rows of history after it."""
        address = f"{VARIABLES[self.adapter]}={self.place}"
        dbt = ["env", address, _program(f"dbt-{self.adapter}"), *arguments]
        folders = ["--project-dir", TRANSFORM, "--profiles-dir", TRANSFORM]
        written = ["--target-path", str(self.folder), "--log-path", str(self.folder)]
        ended = self._run(*dbt, "--target", self.adapter, *folders, *written)
        with self.connect() as connection:
            return connection.execute(HISTORY).fetchone()[0], ended

    def _run(self, *command: str) -> Measured:
        stdout, stderr = self.folder / "stdout", self.folder / "stderr"
        ended = run(command, stdout, stderr)
        if ended.status != 0:
            log = stdout.read_text("utf-8") + stderr.read_text("utf-8")
            message = f"{log}\nStatus {ended.status}: {' '.join(command)[:1_000]}"
            raise click.ClickException(message)
        return ended


def measure(bench: Bench) -> Section:
    """Build after the first sync, after two years, and after one more night."""
    jobs = JOBS[bench.full]
    explanation = (
        f"{jobs * years.OPEN:,.0f} open jobs: the first build; one with two years of history, in "
        f"which {jobs:,} jobs were open and each was edited once, that makes all tables anew "
        "(`--full-refresh`); and the one of the night after. "
        "MB are those of dbt, with DuckDB in it and without the server of PostgreSQL."
    )
    lines, section = [], Section("What a dbt build costs", [explanation])
    with _databases(bench) as databases:
        for database in databases:
            database.execute(years.raw_tables(jobs))
            first = database.dbt(*BUILD)
            database.execute(years.history(jobs))
            anew = database.dbt(*BUILD, "--full-refresh")
            database.execute(years.one_more_night())
            rows, last = database.dbt(*BUILD)
            bench.report(f"{database.name}: {last.wall:.1f} s")
            lines += [
                f"{database.name} | {count:,} | {it.wall:.1f} | {it.cpu:.1f} | {it.megabytes:.0f}"
                for count, it in (first, anew, (rows, last))
            ]
            build = f"On {database.name}, a build with {rows:,} rows of history takes at most {{}}"
            section.claims += [
                Claim(f"{build} s", last.wall, MOST_SECONDS[database.name]),
                Claim(f"{build} MB", last.megabytes, MOST_MEGABYTES),
            ]
    section.parts.append(table(COLUMNS, lines))
    return section


@contextlib.contextmanager
def _databases(bench: Bench) -> Iterator[list[EmptyDatabase]]:
    with postgresql() as uri:
        one, other = bench.new_folder(), bench.new_folder()
        url, file = uri.replace(":", "+psycopg:", 1), str(one / "warehouse.duckdb")
        read_file = partial(duckdb.connect, file, read_only=True)
        yield [
            EmptyDatabase("DuckDB", "duckdb", file, read_file, one),
            EmptyDatabase("PostgreSQL", "postgres", url, partial(psycopg.connect, uri), other),
        ]


@cache
def _program(name: str) -> str:
    """Install a plugin of meltano.yml as Meltano does, and return its command."""
    plugins = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))["plugins"]
    (plugin,) = (it for it in plugins["loaders"] + plugins["utilities"] if it["name"] == name)
    requirements = [part for it in plugin["pip_url"].split() for part in ("--with", it)]
    requirements[0] = "--from"
    overrides = ("--overrides", f"{TRANSFORM}/overrides.txt")
    options = ("--compile-bytecode", "--python", "3.11", *overrides, *requirements)
    prefix = install("tool", "run", *options, "python", "-c", "import sys; print(sys.prefix)")
    return str(Path(prefix, "bin", plugin["executable"]))
