"""How the cost of a backfill grows with the number of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench import MEGABYTE, NO_LIMIT, serve
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from benchmarks.bench import Bench

QUICK = (1_000, 4_000)
FULL = (1_000, 3_000, 10_000, 30_000)
COLUMNS = "jobs | seconds | ms per job | MB | bytes of state per job"
MOST_MEGABYTES = 120
MOST_STATE = 3_500
"""Bytes per job: some twenty states in a backfill, each with about 150 bytes for every job."""


def measure(bench: Bench) -> Section:
    """Let this tap sync organisations of several sizes, without a limit."""
    rows = []
    for jobs in FULL if bench.full else QUICK:
        with serve(jobs, NO_LIMIT) as world:
            order = bench.order(world)
            ended = bench.attempt(bench.ours, world, order).measured
        state = sum(len(line) for line, _ in order.messages("STATE"))
        rows.append((jobs, ended.wall, 1000 * ended.wall / jobs, ended.memory, state / jobs))
    cells = (
        (f"{jobs:,}", f"{wall:.1f}", f"{each:.1f}", f"{memory / MEGABYTE:.0f}", f"{state:,.0f}")
        for jobs, wall, each, memory, state in rows
    )
    small, large = rows[0], rows[-1]
    return Section(
        "How the cost grows",
        ["Without a limit; the state is that of all messages together.", table(COLUMNS, cells)],
        [
            Claim(
                f"With {large[0]:,} jobs, each takes at most {{}} of its time with {small[0]:,}",
                large[2] / small[2],
                at_most=1.1,
            ),
            Claim(
                f"A backfill of {large[0]:,} jobs needs at most {{}} MB of memory",
                large[3] / MEGABYTE,
                MOST_MEGABYTES,
            ),
            Claim(
                "However many jobs there are, state takes at most {} bytes per job of a backfill",
                max(row[4] for row in rows),
                MOST_STATE,
            ),
        ],
    )
