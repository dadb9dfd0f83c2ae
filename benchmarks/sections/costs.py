"""How the cost of a backfill grows with the number of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench import NO_LIMIT, serve
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from benchmarks.bench import Bench

SIZES = ((1_000, 4_000), (1_000, 3_000, 10_000, 30_000))
COLUMNS = "jobs | seconds | ms per job | MB | bytes of state per job"
# Bytes per job: some twenty states in a backfill, each with about 150 bytes for every job.
MOST_STATE = 3_500


def measure(bench: Bench) -> Section:
    """Sync organisations of several sizes with this tap, without a limit."""
    sizes = SIZES[bench.full]
    lines, each, states = [], [], []
    for jobs in sizes:
        with serve(jobs, NO_LIMIT) as world:
            order = bench.order(world)
            wall, _, memory, _ = bench.attempt(bench.ours, order).measured
        each.append(1000 * wall / jobs)
        states.append(sum(len(line) for line, _ in order.messages("STATE")) / jobs)
        lines.append(f"{jobs:,} | {wall:.1f} | {each[-1]:.1f} | {memory:.0f} | {states[-1]:,.0f}")
    explanation = "Without a limit; the state is that of all messages together."
    time = f"With {sizes[-1]:,} jobs, each takes at most {{}} of its time with {sizes[0]:,}"
    megabytes = f"A backfill of {sizes[-1]:,} jobs needs at most {{}} MB of memory"
    state = "However many jobs there are, state takes at most {} bytes per job of a backfill"
    claims = [
        Claim(time, each[-1] / each[0], at_most=1.1),
        Claim(megabytes, memory, at_most=170),
        Claim(state, max(states), MOST_STATE),
    ]
    return Section("How the cost grows", [explanation, table(COLUMNS, lines)], claims)
