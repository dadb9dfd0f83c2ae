"""How near this tap comes to the least time that the API's limit leaves to any client."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

from benchmarks.bench import LIMIT, least_time, limited, serve, side_by_side
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from benchmarks.bench import Bench

JOBS = 300
# Of an organisation whose run fits into a period, so that the next one begins within it.
FEW_JOBS = 58

# Ways of counting that never reject a client that keeps the limit in every window.
PREDICTABLE = ("sliding_log", "fixed_window", "token_bucket")

# Ways of counting that reject even this client, because they allow less after a burst.
STRICTER = ("sliding_counter", "leaky_bucket")

QUICK = [(0.05, "sliding_log"), (0.5, "sliding_log"), (0.05, "sliding_counter")]
FULL = [(0.5, how) for how in PREDICTABLE + STRICTER]
FULL += [(0.05, "sliding_log"), (2.0, "sliding_log")]
# Seconds of a period; round trips and ways of counting; the most of the least time in the first.
#
# Start-up is a larger share of a shorter period.
SETUPS = ((6.0, QUICK, 1.1), (60.0, FULL, 1.03))

COLUMNS = "how the server counts | round trip, s | taken, s | of the least | rejections"


def measure(bench: Bench) -> Section:
    """Run backfills under limits, several side by side: they mostly wait."""
    period, cases, at_most = SETUPS[bench.full]
    least = least_time(JOBS, period)
    with contextlib.ExitStack() as served:
        worlds = [served.enter_context(serve(JOBS, limited(period, *case))) for case in cases]
        attempt = functools.partial(bench.attempt, bench.ours, timeout=1200)
        tasks = [functools.partial(attempt, bench.order(world)) for world in worlds]
        trials = dict(zip(cases, side_by_side(tasks), strict=True))
    with serve(FEW_JOBS, limited(period, 0.05)) as world:
        order = bench.order(world)
        before = bench.attempt(bench.ours, order)
        again = bench.attempt(bench.ours, order, is_much_later=False)
    lines = (
        f"{how} | {latency:g} | {it.wall:.1f} | {it.wall / least:.3f} | {it.rejections}"
        for (latency, how), it in trials.items()
    )
    explanation = (
        f"{JOBS} jobs, {LIMIT} requests per {period:g} s. The least time is {least:g} s: the whole "
        "periods between the first and the last request, if no window may see more than the limit."
    )
    heading = "Compared with the theoretical minimum"
    first = (
        f"{JOBS} jobs at {LIMIT} requests per {period:g} s, {cases[0][0]:g} s away, take at most"
    )
    predictable = f"Under {', '.join(PREDICTABLE)} at most {{}} requests of a run are rejected"
    rejections = [trial.rejections for (_, how), trial in trials.items() if how in PREDICTABLE]
    in_a_row = (
        f"{FEW_JOBS} jobs, twice, the second run right after the first: {before.wall:.1f} s and "
        f"{again.wall:.1f} s, {before.rejections} and {again.rejections} rejections."
    )
    claims = [
        Claim(f"{first} {{}} of the least time", trials[cases[0]].wall / least, at_most),
        Claim(predictable, max(rejections), at_most=0),
        Claim(
            "A second run within the period is rejected at most {} times",
            again.rejections,
            at_most=0,
        ),
    ]
    return Section(heading, [explanation, table(COLUMNS, lines), in_a_row], claims)
