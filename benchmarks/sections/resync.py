"""What a second run costs in requests, which under a limit are time."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from public_jobs_sandbox.options import Options

from benchmarks.bench import side_by_side
from benchmarks.claims import Claim
from benchmarks.section import Section
from benchmarks.table import Table
from benchmarks.world import World

if TYPE_CHECKING:
    from benchmarks.bench import Bench
    from benchmarks.clients import Client

JOBS = (100, 1_000)
PERCENT_CHANGED = ((0, 10), (0, 1, 10))
"""Each in the quick form, and in the full."""

PAGE_SIZE = 100
AT_ONCE = 2
"""Requests are counted, not seconds."""


class Syncing(NamedTuple):
    """A client that syncs again and again in the same folder.

    Attributes:
        name: Of the client, and how it is set.
        client: The client.
        settings: Of this project's tap.
        partial: Whether it fetches only the details that changed.
    """

    name: str
    client: Client
    settings: tuple[tuple[str, str], ...] = ()
    partial: bool = False


def measure(bench: Bench) -> Section:
    """Sync all jobs, then again after none, some and more of them have changed."""
    jobs = JOBS[bench.full]
    syncing = [
        _ours(bench, "changed"),
        _ours(bench, "all"),
        *(Syncing(it.name, it) for it in bench.clients_without_limit[1:]),
    ]
    percents = PERCENT_CHANGED[bench.full]
    tasks = [functools.partial(_sync, bench, it, jobs, percents) for it in syncing]
    requests = side_by_side(tasks, at_once=AT_ONCE)
    columns = ("first run", *(f"{percent}% changed" for percent in percents))
    table = Table(("client", *columns))
    for it, counts in zip(syncing, requests, strict=True):
        table.add(it.name, *(f"{count:,}" for count in counts))
    pages = math.ceil(jobs / PAGE_SIZE)
    return Section(
        "What a second run costs",
        [f"Requests of each run, {jobs:,} jobs:", table],
        [
            Claim(
                f"A run under `detail_refresh: changed` before which {percent}% of {jobs:,} jobs "
                "have changed costs at most {} requests",
                count,
                at_most=pages + 1 + jobs * percent // 100,
            )
            for percent, count in zip(percents, requests[0][1:], strict=True)
        ],
    )


def _ours(bench: Bench, mode: str) -> Syncing:
    return Syncing(
        f"{bench.ours.name}, `detail_refresh: {mode}`",
        bench.ours,
        (("detail_refresh", mode),),
        partial=mode == "changed",
    )


def _sync(bench: Bench, it: Syncing, jobs: int, percents: tuple[int, ...]) -> list[int]:
    """Return the requests of the first run, and of each after a share of the jobs has changed."""
    with World(jobs, Options(limited=False)) as world:
        order = bench.order(world, settings=it.settings)
        counts = [bench.attempt(it.client, world, order).log.requests]
        for percent in percents:
            changed = world.edit(jobs * percent // 100)
            details = changed if it.partial else None
            trial = bench.attempt(it.client, world, order, details=details)
            counts.append(trial.log.requests)
    return counts
