"""How near this tap comes to the least time that the API's limit leaves to any client."""

from __future__ import annotations

import contextlib
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
    from benchmarks.trial import Trial

LIMIT = 60
PAGE_SIZE = 100
JITTER = 0.2
"""Of the round trip: by how much more a request takes at most."""

PREDICTABLE = ("sliding_log", "fixed_window", "token_bucket")
"""Ways of counting that no client which keeps to every window can run into."""

STRICTER = ("sliding_counter", "leaky_bucket")


class Case(NamedTuple):
    """A backfill."""

    jobs: int = 300
    period: float = 6.0
    latency: float = 0.05
    workers: int = 8
    algorithm: str = "sliding_log"
    jitter: float | None = None
    """Seconds by which a request takes longer at most; None for `JITTER` of the round trip."""

    @property
    def least(self) -> float:
        """Seconds that any client needs which keeps to the limit, whatever its network."""
        requests = self.jobs + math.ceil(self.jobs / PAGE_SIZE)
        return math.floor((requests - 1) / LIMIT) * self.period

    @property
    def options(self) -> Options:
        """The API."""
        return Options(
            limit_algorithm=self.algorithm,
            limit_requests=LIMIT,
            limit_period=self.period,
            latency=self.latency,
            jitter=self.latency * JITTER if self.jitter is None else self.jitter,
        )


REAL = Case(period=60.0, latency=0.5)
NEAR = Case()
FAR = Case(latency=2.0, workers=32, jitter=0.0)

BOTH = (
    FAR._replace(jitter=1.0),
    FAR,
    *(NEAR._replace(algorithm=algorithm) for algorithm in PREDICTABLE),
    NEAR._replace(latency=0.5),
)

QUICK = (*BOTH, *(NEAR._replace(jobs=150, algorithm=algorithm) for algorithm in STRICTER))

FULL = (
    *(FAR._replace(algorithm=algorithm) for algorithm in STRICTER),
    *(REAL._replace(algorithm=algorithm) for algorithm in STRICTER),
    *(REAL._replace(algorithm=algorithm) for algorithm in PREDICTABLE),
    REAL._replace(latency=0.05),
    REAL._replace(latency=2.0),
    REAL._replace(jobs=90),
    *(NEAR._replace(algorithm=algorithm) for algorithm in STRICTER),
    *(FAR._replace(algorithm=algorithm) for algorithm in PREDICTABLE[1:]),
    FAR._replace(jitter=0.3),
    FAR._replace(workers=20),
    *BOTH,
)
"""The longest first, so that none of them is waited for alone."""


def measure(bench: Bench) -> Section:
    """Run backfills under limits, several side by side: they mostly wait."""
    cases = FULL if bench.full else QUICK
    with contextlib.ExitStack() as served:
        worlds = [served.enter_context(World(case.jobs, case.options)) for case in cases]
        tasks = [
            functools.partial(_run, bench, case, world)
            for case, world in zip(cases, worlds, strict=True)
        ]
        trials = dict(zip(cases, side_by_side(tasks), strict=True))
    table = Table(
        (
            "how the server counts",
            "jobs",
            "requests per seconds",
            "round trip, s",
            "up to s more",
            "in flight",
            "least, s",
            "taken, s",
            "of the least",
            "start-up, s",
            "without it",
            "rejections",
        )
    )
    for case, trial in sorted(trials.items(), key=_place):
        table.add(
            case.algorithm,
            f"{case.jobs}",
            f"{LIMIT} per {case.period:g}",
            f"{case.latency:g}",
            f"{case.options.jitter:g}",
            f"{case.workers}",
            f"{case.least:.0f}",
            f"{trial.measured.wall:.1f}",
            f"{trial.measured.wall / case.least:.3f}",
            f"{trial.startup:.2f}",
            f"{_without_startup(case, trial):.3f}",
            f"{trial.log.rejections}",
        )
    return Section(
        "Beside the least time that the limit leaves to any client",
        [_explanation(), table],
        _claims(trials),
    )


def _explanation() -> str:
    return (
        "The least is the number of whole periods that have to pass between the first and the "
        "last request. Start-up lasts until the first request arrives."
    )


def _run(bench: Bench, case: Case, world: World) -> Trial:
    order = bench.order(world, case.workers)
    return bench.attempt(bench.ours, world, order, timeout=60 + 30 * case.least)


def _place(row: tuple[Case, Trial]) -> tuple[float, float, int, int, float]:
    case = row[0]
    algorithm = (PREDICTABLE + STRICTER).index(case.algorithm)
    return -case.period, case.latency, -case.jobs, algorithm, case.workers + case.options.jitter


def _without_startup(case: Case, trial: Trial) -> float:
    return (trial.measured.wall - trial.startup) / case.least


def _claims(trials: dict[Case, Trial]) -> list[Claim]:
    def rejections(algorithms: tuple[str, ...], workers: int = 64) -> list[int]:
        return [
            trial.log.rejections
            for case, trial in trials.items()
            if case.algorithm in algorithms and case.workers <= workers
        ]

    claims = []
    if REAL in trials:
        claims.append(
            Claim(
                f"{REAL.jobs} jobs at the API's {LIMIT} requests per minute, {REAL.latency} s "
                "away, take at most {} of the least time, start-up aside",
                _without_startup(REAL, trials[REAL]),
                at_most=1.03,
            )
        )
    claims += [
        Claim(
            f"{NEAR.jobs} jobs at {LIMIT} requests per {NEAR.period:g} s, {NEAR.latency} s away, "
            "take at most {} of the least time, start-up aside",
            _without_startup(NEAR, trials[NEAR]),
            at_most=1.05,
        ),
        Claim(
            f"{FAR.jobs} jobs at {LIMIT} requests per {FAR.period:g} s, {FAR.latency:g} s away, "
            f"with {FAR.workers} in flight take at most {{}} of the least time",
            trials[FAR].measured.wall / FAR.least,
            at_most=1.2,
        ),
        Claim(
            f"No request is rejected under {', '.join(PREDICTABLE)}",
            sum(rejections(PREDICTABLE)),
            at_most=0,
        ),
        Claim(
            f"Under {' or '.join(STRICTER)}, with {NEAR.workers} in flight, at most {{}} requests "
            "of a run are rejected",
            max(rejections(STRICTER, NEAR.workers)),
            at_most=10,
        ),
    ]
    return claims
