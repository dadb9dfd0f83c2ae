"""How the cost of a backfill grows with the number of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from public_jobs_sandbox.options import Options

from benchmarks.claims import Claim
from benchmarks.section import Section
from benchmarks.table import Table
from benchmarks.world import World

if TYPE_CHECKING:
    from benchmarks.bench import Bench

QUICK = (1_000, 5_000)
FULL = (1_000, 3_000, 10_000, 30_000)
MEGABYTE = 1_000_000
MOST_STATE = 3_500
"""Bytes: twenty states a backfill, each of 120 bytes per job, and those while the list is read."""


def measure(bench: Bench) -> Section:
    """Let this tap sync organisations of several sizes, without a limit."""
    table = Table(("jobs", "seconds", "ms per job", "MB", "bytes of state per job"))
    most_state = 0.0
    for jobs in FULL if bench.full else QUICK:
        with World(jobs, Options(limited=False)) as world:
            trial = bench.attempt(bench.ours, world)
        memory = trial.measured.memory / MEGABYTE
        state = trial.state_bytes / jobs
        most_state = max(most_state, state)
        table.rows.append(
            (
                f"{jobs:,}",
                f"{trial.measured.wall:.1f}",
                f"{1000 * trial.measured.wall / jobs:.1f}",
                f"{memory:.0f}",
                f"{state:,.0f}",
            )
        )
    return Section(
        "How the cost grows",
        ["Without a limit; the bytes of state are those of all its messages together.", table],
        [
            Claim(
                f"A backfill of {jobs:,} jobs needs at most {{}} MB of memory", memory, at_most=120
            ),
            Claim(
                "However many jobs there are, state takes at most {} bytes per job of a backfill",
                most_state,
                at_most=MOST_STATE,
            ),
        ],
    )
