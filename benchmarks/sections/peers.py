"""This tap beside what a user would pick instead: the same jobs from the same server."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, NamedTuple

from public_jobs_sandbox.options import Options

from benchmarks.bench import side_by_side, typical
from benchmarks.claims import Claim
from benchmarks.section import Section
from benchmarks.table import Table
from benchmarks.world import World

if TYPE_CHECKING:
    from benchmarks.bench import Bench
    from benchmarks.clients import Client
    from benchmarks.trial import Trial

LIMIT = 60
MEGABYTE = 1_000_000
TIMEOUT = 300.0
"""Seconds, so much longer than this tap needs that a client which takes them is no choice."""


class Scenario(NamedTuple):
    """A backfill.

    Attributes:
        jobs: How many jobs there are.
        period: Seconds in which `LIMIT` requests are allowed; None if all are.
        latency: Seconds that an answer takes.
        rounds: How often each client makes it in the quick form, and in the full.
    """

    jobs: int
    period: float | None = None
    latency: float = 0.0
    rounds: tuple[int, int] = (1, 1)

    @property
    def options(self) -> Options:
        """The API."""
        return Options(
            limited=self.period is not None,
            limit_requests=LIMIT,
            limit_period=self.period or 1.0,
            latency=self.latency,
            jitter=self.latency / 5,
        )

    def __str__(self) -> str:
        limit = f"{LIMIT} requests per {self.period:g} s" if self.period else "no limit"
        return f"{self.jobs:,} jobs, {limit}, round trips of {self.latency:g} s"


MANY = Scenario(3_000, rounds=(1, 3))
SCENARIOS = (
    Scenario(300, rounds=(0, 3)),
    MANY,
    Scenario(110, period=6.0, latency=0.05, rounds=(1, 0)),
    Scenario(300, period=6.0, latency=0.05, rounds=(0, 1)),
    Scenario(300, period=6.0, latency=2.0, rounds=(0, 1)),
    Scenario(90, period=60.0, latency=0.5, rounds=(0, 1)),
)


def measure(bench: Bench) -> Section:
    """Let every client make every backfill."""
    explanation = (
        "From the API to files of records; no client loads them anywhere. Rows lost are those of "
        "both streams that should have been extracted and were not. "
        f"A client that takes longer than {TIMEOUT:.0f} s is stopped."
    )
    section = Section("Beside what you could use instead", [explanation])
    for scenario in SCENARIOS:
        rounds = scenario.rounds[bench.full]
        if rounds:
            trials = (_waiting if scenario.period else _working)(bench, scenario, rounds)
            section.parts += [f"**{scenario}**{_of(rounds)}:", _table(bench, trials)]
            if scenario is MANY and len(trials) > 1:
                section.claims.append(_claim(bench, trials))
    return section


def _working(bench: Bench, scenario: Scenario, rounds: int) -> dict[Client, Trial]:
    """One after the other on the same server, in another order each round."""
    clients = bench.clients_without_limit
    trials: dict[Client, list[Trial]] = {client: [] for client in clients}
    with World(scenario.jobs, scenario.options) as world:
        for turn in range(rounds):
            at = turn % len(clients)
            for client in clients[at:] + clients[:at]:
                trials[client].append(bench.attempt(client, world, timeout=TIMEOUT))
    return {client: typical(several) for client, several in trials.items()}


def _waiting(bench: Bench, scenario: Scenario, _: int) -> dict[Client, Trial]:
    """Side by side on servers that are alike, because each key has a limit of its own."""
    with contextlib.ExitStack() as served:
        tasks = [
            functools.partial(
                bench.attempt,
                client,
                served.enter_context(World(scenario.jobs, scenario.options)),
                timeout=TIMEOUT,
            )
            for client in bench.clients
        ]
        return dict(zip(bench.clients, side_by_side(tasks), strict=True))


def _of(rounds: int) -> str:
    return f" (of {rounds} runs the one of median length)" if rounds > 1 else ""


def _table(bench: Bench, trials: dict[Client, Trial]) -> Table:
    table = Table(
        (
            "client",
            "seconds",
            "of this tap's",
            "CPU seconds",
            "MB",
            "requests",
            "rejections",
            "rows lost",
            "bytes of state",
            "exit status",
        )
    )
    ours = trials[bench.ours].measured.wall
    for client, trial in trials.items():
        ended = trial.measured
        over = "over " if ended.status is None else ""
        table.add(
            client.name,
            f"{over}{ended.wall:.1f}",
            f"{over}{ended.wall / ours:.2f}",
            f"{ended.cpu:.1f}",
            f"{ended.memory / MEGABYTE:.0f}",
            f"{trial.log.requests:,}",
            f"{trial.log.rejections:,}",
            f"{trial.lost:,}",
            f"{trial.state_bytes:,}",
            "stopped" if ended.status is None else f"{ended.status}",
        )
    return table


def _claim(bench: Bench, trials: dict[Client, Trial]) -> Claim:
    whole = [
        trial.measured.wall
        for client, trial in trials.items()
        if client is not bench.ours and not trial.failed and not trial.lost
    ]
    return Claim(
        f"{MANY.jobs:,} jobs without a limit take at most {{}} of the time of the fastest other "
        "client that brings all rows",
        trials[bench.ours].measured.wall / min(whole, default=TIMEOUT),
        at_most=0.7,
    )
