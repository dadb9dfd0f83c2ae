"""How near this tap comes to the least time that the API's limit leaves to any client."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

from benchmarks.bench import LIMIT, least_time, limited, serve, side_by_side
from benchmarks.clients import DLT_WITH_LIMIT
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Trial
    from benchmarks.clients import Client

JOBS = 300
# Of an organisation whose run fits into a period, so that the next one begins within it.
FEW_JOBS = 58

# Ways of counting that never reject a client that keeps the limit in every window.
PREDICTABLE = ("sliding_log", "fixed_window", "token_bucket")

# Ways of counting that reject even this client, because they allow less after a burst.
STRICTER = ("sliding_counter", "leaky_bucket")

# Of a period of 12 s, 0.1 s is the part that 0.5 s is of a minute.
QUICK = [(0.1, "sliding_log"), (0.4, "sliding_log"), (0.1, "sliding_counter")]
FULL = [(0.5, how) for how in PREDICTABLE + STRICTER]
FULL += [(0.05, "sliding_log"), (2.0, "sliding_log")]
# Seconds of a period; round trips and ways of counting; the most of the least time in the first.
#
# Start-up is a larger share of a shorter period.
SETUPS = ((12.0, QUICK, 1.1), (60.0, FULL, 1.03))

COLUMNS = "how the server counts | round trip, s | taken, s | of the least | rejections"

PAIR_COLUMNS = (
    "client | first run, s | rejections | rows lost | second run, s | rejections | rows lost"
)


def measure(bench: Bench) -> Section:
    """Run backfills under limits, several side by side: they mostly wait."""
    period, cases, at_most = SETUPS[bench.full]
    least = least_time(JOBS, period)
    with contextlib.ExitStack() as served:
        worlds = [served.enter_context(serve(JOBS, limited(period, *case))) for case in cases]
        attempt = functools.partial(bench.attempt, bench.ours, timeout=1200)
        tasks = [functools.partial(attempt, bench.order(world)) for world in worlds]
        trials = dict(zip(cases, side_by_side(tasks), strict=True))
    clients = [bench.ours]
    clients += [DLT_WITH_LIMIT] * any(it.script == DLT_WITH_LIMIT.script for it in bench.peers)
    twice = [functools.partial(_twice, bench, client, period) for client in clients]
    pairs = dict(zip(clients, side_by_side(twice), strict=True))
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
    slowest = max(it.wall for (_, how), it in trials.items() if how in PREDICTABLE)
    in_a_row = (
        f"{FEW_JOBS} jobs, twice, the second run right after the first; the least time of the "
        f"second is {period:g} s. A limiter in memory forgets at the end of a process what it sent."
    )
    pair_lines = (
        " | ".join([client.name, *(f"{it.wall:.1f} | {it.rejections} | {it.lost}" for it in pair)])
        for client, pair in pairs.items()
    )
    claims = [
        Claim(f"{first} {{}} of the least time", trials[cases[0]].wall / least, at_most),
        Claim("Any that is not rejected takes at most {} of it", slowest / least, at_most=1.15),
        Claim(predictable, max(rejections), at_most=0),
        Claim(
            "A second run within the period is rejected at most {} times",
            pairs[bench.ours][1].rejections,
            at_most=0,
        ),
    ]
    parts = [explanation, table(COLUMNS, lines), in_a_row, table(PAIR_COLUMNS, pair_lines)]
    return Section(heading, parts, claims)


def _twice(bench: Bench, client: Client, period: float) -> list[Trial]:
    with serve(FEW_JOBS, limited(period, 0.05)) as world:
        order = bench.order(world)
        return [bench.attempt(client, order, is_much_later=it) for it in (True, False)]
