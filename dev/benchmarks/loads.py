"""What each target takes to load what the tap writes, with texts as long as real ones."""

import os
from pathlib import Path

import click
from e2e.pipeline import written
from e2e.scenario import published
from e2e.targets import TARGETS, Target
from public_jobs_sandbox.postgresql import postgresql
from public_jobs_sandbox.postings import Job

from dev.benchmarks.bench import DETAILS, JOBS, NO_LIMIT, Bench, ResumingTap, Section, serve, table
from dev.benchmarks.process import Measured, run

SIZES = (300, 3_000)
COLUMNS = "target | first load, s | CPU, s | MB | night, s | CPU, s | MB"

# Without a shell in between, whose memory and time would count.
LOAD = 'messages=$1; shift; exec "$@" < "$messages"'


def measure(bench: Bench) -> Section:
    """Load a first run, and the one of a night in which one job in a hundred was edited."""
    jobs = SIZES[bench.full]
    targets = [it for it in TARGETS if it.script is None]  # those that people use
    costs: dict[str, list[Measured]] = {target.name: [] for target in targets}
    with serve(jobs, NO_LIMIT) as world, postgresql() as database:
        folders = {target.name: bench.new_folder() for target in targets}
        tap = ResumingTap(bench, world, column_naming="snake_case", detail_refresh="changed")
        tap.run()
        for target in targets:  # so that Python has compiled it before it is measured
            run([*map(str, target.command), "--help"], Path(os.devnull), Path(os.devnull))
        for night in (False, True):
            if night:
                edited = published(world.sandbox)[: jobs // 100]
                for job in edited:
                    world.sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle']} (new)")
                every = frozenset(job["id"] for job in published(world.sandbox))
                tap.run({JOBS: every, DETAILS: frozenset(job["id"] for job in edited)})
            for target in targets:
                cost = _load(target, tap.messages_file, folders[target.name], database)
                bench.report(f"{target.name}: {cost.wall:.1f} s")
                costs[target.name].append(cost)
        for target in targets:
            _check(target, published(world.sandbox), folders[target.name], database)
    lines = [" | ".join([name, *map(_cells, loads)]) for name, loads in costs.items()]
    explanation = (
        f"What a run for {jobs:,} jobs wrote, from a file, and then that of a night in which one "
        "job in a hundred was edited; after both, every value of every row was right. The server "
        "of PostgreSQL is not in CPU seconds and MB. Without Meltano, which adds some seconds."
    )
    return Section("What loads cost", [explanation, table(COLUMNS, lines)])


def _load(target: Target, messages: Path, folder: Path, database: str) -> Measured:
    config = written(folder / "target.json", target.settings(folder, database))
    command = ["sh", "-c", LOAD, "sh", str(messages), *map(str, target.command)]
    stderr = folder / "stderr"
    ended = run(["env", "PGTZ=UTC", *command, f"--config={config}"], folder / "states", stderr)
    if ended.status != 0:
        message = f"{target.name} ended with status {ended.status}: {stderr.read_text('utf-8')}"
        raise click.ClickException(message)
    return ended


def _check(target: Target, jobs: list[Job], folder: Path, database: str) -> None:
    store = target.store(folder, database)
    for name in (JOBS, DETAILS):
        if store.published(name) != target.rows(jobs, name):
            message = f"{target.name} does not hold what the API has in {name}"
            raise click.ClickException(message)


def _cells(cost: Measured) -> str:
    return f"{cost.wall:.1f} | {cost.cpu:.1f} | {cost.megabytes:.0f}"
