"""This tap and its alternatives: the same jobs from the same server, without a limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.bench import NO_LIMIT, serve
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Trial
    from benchmarks.clients import Client

JOBS = 3_000
# In the quick form, and in the full.
ROUNDS = (1, 3)

COLUMNS = "client | seconds | of this tap's | CPU seconds | MB | requests | rows lost | exit status"


def measure(bench: Bench) -> Section:
    """Run the backfills of the clients one after the other, in a different order each round."""
    rounds = ROUNDS[bench.full]
    trials: dict[Client, list[Trial]] = {client: [] for client in bench.clients}
    with serve(JOBS, NO_LIMIT) as world:
        for turn in range(rounds):
            for client in bench.clients[turn:] + bench.clients[:turn]:
                trials[client].append(bench.attempt(client, bench.order(world)))
    medians = {client: sorted(several)[rounds // 2] for client, several in trials.items()}
    ours = medians[bench.ours].wall
    lines = (
        f"{client.name} | {wall:.1f} | {wall / ours:.2f} | {cpu:.1f} | {memory:.0f} | "
        f"{requests:,} | {lost:,} | {status}"
        for client, ((wall, cpu, memory, status), requests, _, lost) in medians.items()
    )
    explanation = (
        f"{JOBS:,} jobs without a limit, from the API to files of records; no client loads them "
        f"anywhere. The run of median length of each client ({rounds} made). Rows lost should have "
        "been extracted and were not."
    )
    section = Section("Compared with other tools", [explanation, table(COLUMNS, lines)])
    if bench.peers:
        whole = [it.wall for it in map(medians.__getitem__, bench.peers) if it.succeeded]
        sentence = "This tap takes at most {} of the time of the fastest other that brings all rows"
        section.claims.append(Claim(sentence, ours / min(whole, default=math.nan), at_most=0.85))
    return section
