"""How near this tap comes to the least time that the API's limit leaves to any client."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.bench import LIMIT, PAGE_SIZE, limited, serve, side_by_side
from benchmarks.clients import WORKERS
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Trial

JOBS = 300
PERIODS = (JOBS + JOBS // PAGE_SIZE - 1) // LIMIT
"""Whole periods between the first and the last request, if no window sees more than the limit."""

PREDICTABLE = ("sliding_log", "fixed_window", "token_bucket")
"""Ways of counting that never reject a client which keeps the limit in every window."""

STRICTER = ("sliding_counter", "leaky_bucket")
"""Ways of counting that reject it nevertheless, because they allow less after a burst."""

ALL = PREDICTABLE + STRICTER
COLUMNS = (
    "how the server counts | seconds for 60 requests | round trip, s | "
    "least, s | taken, s | of the least | rejections"
)


class Case(NamedTuple):
    """A backfill: seconds of the period and of a round trip, and how the server counts."""

    period: float
    latency: float
    algorithm: str = "sliding_log"

    @property
    def least(self) -> float:
        """Seconds that any client needs which keeps the limit in every window."""
        return PERIODS * self.period


REAL, NEAR = Case(60.0, 0.5), Case(6.0, 0.05)
QUICK = [*(NEAR._replace(algorithm=it) for it in ALL[:4]), NEAR._replace(latency=0.5)]
FULL = [
    *(REAL._replace(algorithm=algorithm) for algorithm in reversed(ALL)),
    *(REAL._replace(latency=latency) for latency in (0.05, 2.0)),
    NEAR._replace(algorithm=ALL[4]),
    *QUICK,
]
"""The longest first, so that no other run waits for them."""


def measure(bench: Bench) -> Section:
    """Run backfills under limits, several side by side: they mostly wait."""
    cases = FULL if bench.full else QUICK
    with contextlib.ExitStack() as served:
        worlds = [served.enter_context(serve(JOBS, limited(*case))) for case in cases]
        tasks = [
            functools.partial(bench.attempt, bench.ours, world, timeout=60 + 5 * case.least)
            for case, world in zip(cases, worlds, strict=True)
        ]
        trials = dict(zip(cases, side_by_side(tasks), strict=True))
    rows = (
        (
            case.algorithm,
            f"{case.period:g}",
            f"{case.latency:g}",
            f"{case.least:.0f}",
            f"{trials[case].wall:.1f}",
            f"{trials[case].wall / case.least:.3f}",
            trials[case].rejections,
        )
        for case in sorted(cases, key=lambda it: (-it.period, it.latency, ALL.index(it.algorithm)))
    )
    explanation = (
        f"{JOBS} jobs. The least time is the number of whole periods that have to pass between "
        "the first and the last request if no window may see more than the limit."
    )
    heading = "Beside the least time that the limit leaves to any client"
    return Section(heading, [explanation, table(COLUMNS, rows)], _claims(trials))


def _claims(trials: dict[Case, Trial]) -> list[Claim]:
    claims = [
        Claim(
            f"{JOBS} jobs at {LIMIT} requests per {case.period:g} s, {case.latency:g} s away, take "
            "at most {} of the least time",
            trials[case].wall / case.least,
            at_most,
        )
        # Start-up takes as long in both, and so is a larger share of the shorter one.
        for case, at_most in ((REAL, 1.03), (NEAR, 1.08))
        if case in trials
    ]
    # The throttle learns in two steps, and in each as many may be rejected as are in flight.
    for algorithms, at_most in ((PREDICTABLE, 0), (STRICTER, 2 * WORKERS)):
        rejected = [trial.rejections for it, trial in trials.items() if it.algorithm in algorithms]
        sentence = f"Under {', '.join(algorithms)} at most {{}} requests of a run are rejected"
        claims.append(Claim(sentence, max(rejected), at_most))
    return claims
