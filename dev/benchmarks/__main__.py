"""The command `python -m dev.benchmarks`."""

import functools
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import click

# Loads are into the targets of the tests.
sys.path.append(str(Path(__file__).parents[2] / "tests"))

from dev.benchmarks import costs, dbt, limits, loads
from dev.benchmarks.bench import Bench, Claim, LeftOutError, Section, with_tables

# The file whose tables `--write` replaces.
DESTINATION = Path(__file__).with_name("README.md")

_log = functools.partial(click.echo, err=True)

SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "limit": limits.limit,
    "peers": costs.peers,
    "resync": costs.resync,
    "growth": costs.growth,
    "loads": loads.measure,
    "dbt": dbt.measure,
}


@click.command()
@click.option("--full", is_flag=True, help="Real limits and large numbers; takes about 45 minutes.")
@click.option("--only", type=click.Choice(list(SECTIONS)), multiple=True, help="May be repeated.")
@click.option("--write", is_flag=True, help=f"Put a full run's tables into {DESTINATION.name}.")
def main(*, full: bool, only: tuple[str, ...], write: bool) -> None:
    """Measure what the documentation claims; the exit status is 1 if a claim does not hold."""
    if write:
        if only or not full:
            message = "--write needs all sections in full: use it with --full and without --only"
            raise click.UsageError(message)
        with_tables(DESTINATION, "")  # fails now rather than at the end
    parts, broken = [], []
    with tempfile.TemporaryDirectory() as folder:
        for part in _parts(Path(folder), only or tuple(SECTIONS), full=full):
            click.echo(f"{part}\n")
            parts.append(str(part))
            if isinstance(part, Section):
                broken += [claim for claim in part.claims if not claim.holds]
    for claim in broken:
        _log(f"Falls short: {claim}")
    if broken:
        sys.exit(1)
    if write:
        DESTINATION.write_text(with_tables(DESTINATION, "\n\n".join(parts)), encoding="utf-8")


def _parts(folder: Path, names: tuple[str, ...], *, full: bool) -> Iterator[str | Section]:
    """Measure, and yield each part of the report when it is ready."""
    versions = f"Python {platform.python_version()}, tap-public-jobs {version('tap-public-jobs')}"
    yield f"Measured with {os.cpu_count()} CPUs, {versions}."
    bench = Bench(folder, full=full, report=_log)
    for name in names:
        try:
            yield SECTIONS[name](bench)
        except LeftOutError as reason:
            yield f"Left out: {name} ({reason})."
    succeeded = [trial.succeeded for trial in bench.trials]
    runs = f"Of the {len(succeeded)} runs of tap-public-jobs above, {{}} fail or lose a row"
    yield Section("All runs", claims=[Claim(runs, succeeded.count(False), at_most=0)])


if __name__ == "__main__":
    main()
