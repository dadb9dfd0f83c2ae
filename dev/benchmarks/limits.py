"""What a limit costs, compared with the theoretical minimum."""

import contextlib
import functools
import math

from dev.benchmarks.bench import (
    LIMIT,
    PAGE_SIZE,
    Bench,
    Claim,
    ResumingTap,
    Section,
    limited,
    serve,
    side_by_side,
    table,
)

JOBS = 300

# Ways of counting that never reject a client that keeps the limit in every window.
PREDICTABLE = ("sliding_log", "fixed_window", "token_bucket")

# Ways of counting that reject even such a client, because they allow less after a burst.
STRICTER = ("sliding_counter", "leaky_bucket")

# Of a period of 12 s, 0.1 s is the part that 0.5 s is of a minute.
QUICK = [(0.1, "sliding_log"), (0.4, "sliding_log"), (0.1, "sliding_counter")]
FULL = [(0.5, how) for how in PREDICTABLE + STRICTER]
FULL += [(0.05, "sliding_log"), (2.0, "sliding_log")]
# Seconds of a period; round trips and ways of counting; how much of the least time the first takes.
#
# Start-up is a larger share of a shorter period.
SETUPS = ((12.0, QUICK, 1.1), (60.0, FULL, 1.03))

COLUMNS = "how the server counts | round trip, s | taken, s | of the least | rejections"


def limit(bench: Bench) -> Section:
    """Run backfills under limits, at the same time, because they mostly wait.

    They show how close this tap comes to the least time that the limit leaves to any client.
    """
    period, cases, at_most = SETUPS[bench.full]
    requests = math.ceil(JOBS / PAGE_SIZE) + JOBS
    least = (requests - 1) // LIMIT * period
    with contextlib.ExitStack() as served:
        worlds = [served.enter_context(serve(JOBS, limited(period, *case))) for case in cases]
        tasks = [functools.partial(ResumingTap(bench, world).run, timeout=1200) for world in worlds]
        trials = dict(zip(cases, side_by_side(tasks), strict=True))
    lines = (
        f"{how} | {latency:g} | {it.wall:.1f} | {it.wall / least:.3f} | {it.rejections}"
        for (latency, how), it in trials.items()
    )
    explanation = (
        f"{JOBS} jobs, {LIMIT} requests per {period:g} s. The least time is {least:g} s: the whole "
        "periods between the first and the last request, if no window may see more than the limit."
    )
    first = (
        f"{JOBS} jobs at {LIMIT} requests per {period:g} s, {cases[0][0]:g} s away, take at most"
    )
    predictable = f"Under {', '.join(PREDICTABLE)} at most {{}} requests of a run are rejected"
    kept = [it for (_, how), it in trials.items() if how in PREDICTABLE]
    slowest = max(it.wall for it in kept)
    claims = [
        Claim(f"{first} {{}} of the least time", trials[cases[0]].wall / least, at_most),
        Claim(
            "Without rejections, a run takes at most {} of the least time",
            slowest / least,
            at_most=1.15,
        ),
        Claim(predictable, max(it.rejections for it in kept), at_most=0),
    ]
    parts = [explanation, table(COLUMNS, lines)]
    return Section("Compared with the theoretical minimum", parts, claims)
