"""How long each client takes to begin, and what this tap spends that time on."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from public_jobs_sandbox.options import Options

from benchmarks.claims import Claim
from benchmarks.imports import NAMED, OURS, import_times
from benchmarks.process import run
from benchmarks.section import Section
from benchmarks.table import Table
from benchmarks.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.bench import Bench
    from benchmarks.clients import Client

TIMEOUT = 60.0
ROUNDS = 3
"""Of the one-job run; the commands that only tell something are timed once in the quick form."""
LABELS = {OURS: f"`{OURS}` itself", "": "Python's own and the rest"}

FRAMEWORKS = {"dlt rest_api": 0.7, "airbyte-cdk low-code": 0.5}
"""What share of their one-job run this tap's is claimed to take at most."""


def measure(bench: Bench) -> Section:
    """Start every client several times, in turns."""
    times = _times(bench)
    table = Table(("client", "`--version`, s", "`--discover`, s", "one job, s", "of this tap's"))
    one_job = times[bench.ours][-1]
    for client, seconds in times.items():
        table.add(client.name, *(f"{it:.2f}" for it in seconds), f"{seconds[-1] / one_job:.2f}")
    return Section(
        "Start-up",
        [
            table,
            f"Where the start-up of {bench.ours.name} goes (`python -X importtime`):",
            _shares(bench.ours, bench.new_folder() / "imports.log"),
        ],
        [
            Claim(
                f"A run with one job takes at most {{}} of the time of {peer.name}",
                one_job / times[peer][-1],
                at_most=FRAMEWORKS[peer.name],
            )
            for peer in times
            if peer.name in FRAMEWORKS
        ],
    )


def _times(bench: Bench) -> dict[Client, list[float]]:
    """Return the medians of the seconds of three commands, by client."""
    seconds: dict[Client, list[list[float]]] = {
        client: [[], [], []] for client in bench.clients_without_limit
    }
    with World(1, Options(limited=False)) as world:
        for turn in range(ROUNDS):
            for client, (version, discover, one_job) in seconds.items():
                order = bench.order(world)
                log = order.folder / "start.log"
                if bench.full or not turn:
                    version.append(run(client.version_command(), log, TIMEOUT).wall)
                    discover.append(run(client.discover_command(order), log, TIMEOUT).wall)
                one_job.append(bench.attempt(client, world, timeout=TIMEOUT).measured.wall)
    return {client: list(map(statistics.median, three)) for client, three in seconds.items()}


def _shares(client: Client, log: Path) -> Table:
    run(client.version_command(), log, TIMEOUT, {"PYTHONPROFILEIMPORTTIME": "1"})
    times = import_times(log.read_text(encoding="utf-8"))
    total = sum(times.values())
    table = Table(("imported", "ms", "share"))
    for name in (*NAMED, ""):
        label = LABELS.get(name, f"`{name}` and what is imported for it first")
        table.add(label, f"{times[name] / 1000:.0f}", f"{times[name] / total:.0%}")
    table.add("all", f"{total / 1000:.0f}", "100%")
    return table
