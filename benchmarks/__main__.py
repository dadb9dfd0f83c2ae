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
from benchmarks.claims import Claim
from benchmarks.peers import CLIENTS
from benchmarks.readme import NoMarkersError, with_tables
from benchmarks.section import Section
from benchmarks.sections import growth, limit, peers, resync, startup

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.clients import Client

README = Path(__file__).parents[1] / "README.md"

SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "limit": limit.measure,
    "peers": peers.measure,
    "growth": growth.measure,
    "resync": resync.measure,
    "startup": startup.measure,
}


def _sections(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    names = value.split(",")
    for name in names:
        if name not in SECTIONS:
            message = f"no section {name!r}, use: {', '.join(SECTIONS)}"
            raise click.BadParameter(message, context, parameter)
    return names


@click.command()
@click.option("--full", is_flag=True, help="Real limits and large numbers: half an hour.")
@click.option(
    "--only",
    metavar="SECTION[,SECTION]",
    default=",".join(SECTIONS),
    callback=_sections,
    help=f"Of: {', '.join(SECTIONS)}.",
)
@click.option("--write", is_flag=True, help="Put the tables of a whole full run into README.md.")
def main(*, full: bool, only: list[str], write: bool) -> None:
    """Measure what the README claims, and end with status 1 if a figure falls short of it."""
    if write:
        if not full or only != list(SECTIONS):
            message = "--write wants all sections in full: use it with --full and without --only"
            raise click.UsageError(message)
        _write("", check_only=True)
    started = time.monotonic()
    clients, left_out = _installed()
    _tell(f"Installed after {time.monotonic() - started:.0f} s.")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(clients, Path(folder), full=full, tell=_tell)
        parts: list[str] = [_machine(clients), *left_out]
        claims: list[Claim] = []
        for part in parts:
            click.echo(f"{part}\n")
        for name in only:
            section = SECTIONS[name](bench)
            click.echo(f"{section}\n")
            parts.append(str(section))
            claims += section.claims
        last = _all_runs(bench)
    click.echo(last)
    _tell(f"Took {time.monotonic() - started:.0f} s.")
    if not all(claim.holds for claim in [*claims, *last.claims]):
        click.echo("A figure falls short of what is claimed.", err=True)
        sys.exit(1)
    if write:
        _write("\n\n".join([*parts, str(last)]))


def _installed() -> tuple[list[Client], list[str]]:
    clients, left_out = [], []
    for client in CLIENTS:
        if reason := client.install():
            left_out.append(f"Left out: {client.name} ({reason}).")
        else:
            clients.append(client)
    return clients, left_out


def _machine(clients: list[Client]) -> str:
    # Two clients may be one program, set in two ways.
    versions = ", ".join(dict.fromkeys(client.version() for client in clients))
    return f"Measured with {os.cpu_count()} CPUs, Python {platform.python_version()}, {versions}."


def _all_runs(bench: Bench) -> Section:
    trials = bench.trials_of_ours
    runs = f"of the {len(trials)} runs of {bench.ours.name} above"
    return Section(
        "All runs",
        claims=[
            Claim(f"None {runs} loses a row", sum(it.lost for it in trials), at_most=0),
            Claim(f"None {runs} fails", sum(it.failed for it in trials), at_most=0),
        ],
    )


def _write(tables: str, *, check_only: bool = False) -> None:
    try:
        text = with_tables(README.read_text(encoding="utf-8"), tables)
    except NoMarkersError as error:
        message = f"{README.name}: {error}"
        raise click.ClickException(message) from error
    if not check_only:
        README.write_text(text, encoding="utf-8")


def _tell(line: str) -> None:
    click.echo(line, err=True)


if __name__ == "__main__":
    main()
