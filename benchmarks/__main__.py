"""The command `python -m benchmarks`."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.bench import Bench
from benchmarks.clients import CLIENTS
from benchmarks.report import Claim, Section, with_tables
from benchmarks.sections import growth, limit, peers, resync

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.clients import Client

DESTINATION = Path(__file__).parents[1] / "docs" / "benchmarks.md"
"""The file whose tables `--write` replaces."""

SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "limit": limit.measure,
    "peers": peers.measure,
    "resync": resync.measure,
    "growth": growth.measure,
}


@click.command()
@click.option("--full", is_flag=True, help="Real limits and large numbers: some twenty minutes.")
@click.option("--only", type=click.Choice(list(SECTIONS)), multiple=True, help="May be repeated.")
@click.option("--write", is_flag=True, help=f"Put a full run's tables into {DESTINATION.name}.")
def main(*, full: bool, only: tuple[str, ...], write: bool) -> None:
    """Measure what the documentation claims; the status is 1 if a figure falls short of it."""
    if write and (only or not full):
        message = "--write wants all sections in full: use it with --full and without --only"
        raise click.UsageError(message)
    if write:
        with_tables(DESTINATION, "")  # fails now rather than at the end
    started = time.monotonic()
    clients, left_out = _installed()
    _log(f"Installed after {time.monotonic() - started:.0f} s.")
    parts: list[Section | str] = []

    def show(part: Section | str) -> None:
        parts.append(part)
        click.echo(f"{part}\n")

    for line in (_machine(clients), *left_out):
        show(line)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(clients, Path(folder), full=full, report=_log)
        for name in only or SECTIONS:
            show(SECTIONS[name](bench))
    show(_all_runs(bench))
    _log(f"Took {time.monotonic() - started:.0f} s.")
    if not all(part.holds for part in parts if isinstance(part, Section)):
        click.echo("A figure falls short of what is claimed.", err=True)
        sys.exit(1)
    if write:
        text = with_tables(DESTINATION, "\n\n".join(map(str, parts)))
        DESTINATION.write_text(text, encoding="utf-8")


def _installed() -> tuple[list[Client], list[str]]:
    """Return the clients that can run, and a line about each that cannot."""
    clients, left_out = [], []
    for client in CLIENTS:
        if reason := client.install():
            left_out.append(f"Left out: {client.name} ({reason}).")
        else:
            clients.append(client)
    return clients, left_out


def _machine(clients: list[Client]) -> str:
    # Two clients may be one program with two settings.
    versions = ", ".join(dict.fromkeys(client.version() for client in clients))
    return f"Measured with {os.cpu_count()} CPUs, Python {platform.python_version()}, {versions}."


def _all_runs(bench: Bench) -> Section:
    trials = bench.trials_of_ours
    failed = sum(not trial.succeeded for trial in trials)
    sentence = f"Of the {len(trials)} runs of {bench.ours.name} above, {{}} fail or lose a row"
    return Section("All runs", claims=[Claim(sentence, failed, at_most=0)])


def _log(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
