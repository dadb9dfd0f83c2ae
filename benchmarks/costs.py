"""What runs cost: with more jobs, compared with dlt, and when little has changed."""

import functools

from benchmarks.bench import (
    LIMIT,
    NO_LIMIT,
    Bench,
    Claim,
    Section,
    Trial,
    limited,
    serve,
    side_by_side,
    table,
)
from benchmarks.clients import DETAILS, JOBS, Client
from tap_public_jobs.changelog import ChangeLog

GROWTH = ((1_000, 4_000), (1_000, 3_000, 10_000, 30_000))
GROWTH_COLUMNS = "jobs | seconds | ms per job | MB | bytes of state per job"
# Bytes per job: some twenty states in a backfill, each with about 150 bytes for every job.
MOST_STATE = 3_500


def growth(bench: Bench) -> Section:
    """Sync organisations of several sizes with this tap, without a limit."""
    sizes = GROWTH[bench.full]
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
    return Section("How the cost grows", [explanation, table(GROWTH_COLUMNS, lines)], claims)


JOBS_OF_ALL_CLIENTS = 3_000
# In the quick form, and in the full.
ROUNDS = (1, 3)

PEERS_COLUMNS = (
    "client | seconds | of this tap's | CPU seconds | MB | requests | rows lost | exit status"
)


def peers(bench: Bench) -> Section:
    """Run the backfills of the clients one after the other, in a different order each round."""
    rounds = ROUNDS[bench.full]
    trials: dict[Client, list[Trial]] = {client: [] for client in bench.clients}
    with serve(JOBS_OF_ALL_CLIENTS, NO_LIMIT) as world:
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
        f"{JOBS_OF_ALL_CLIENTS:,} jobs without a limit, from the API to files of records; "
        f"no client loads them anywhere. The run of median length of each client ({rounds} made). "
        "Rows lost should have been extracted and were not."
    )
    claims = [
        Claim(
            f"This tap takes at most {{}} of the time of {it.name}", ours / medians[it].wall, 0.85
        )
        for it in bench.peers
    ]
    heading = "Compared with dlt"
    return Section(heading, [explanation, table(PEERS_COLUMNS, lines)], claims)


SIZES = (110, 600)
# Each in the quick form, and in the full.
PERCENTS = ((0, 10), (0, 1, 10))

PERIOD = 6.0
LATENCY = 0.05
MODES = ("notified", "changed", "all")


def resync(bench: Bench) -> Section:
    """Sync all jobs, then again after none, some and more of them have changed."""
    jobs, percents = SIZES[bench.full], PERCENTS[bench.full]
    clients = {f"{bench.ours.name}, `detail_refresh: {it}`": (bench.ours, it) for it in MODES}
    clients |= {peer.name: (peer, "all") for peer in bench.peers}
    tasks = [functools.partial(_sync, bench, *it, jobs, percents) for it in clients.values()]
    trials = dict(zip(clients, side_by_side(tasks), strict=True))
    lines = (" | ".join([name, *map(_cell, runs)]) for name, runs in trials.items())
    columns = " | ".join(["client", "first run", *(f"{percent}% changed" for percent in percents)])
    explanation = (
        f"{jobs:,} jobs, {LIMIT} requests per {PERIOD:g} s, round trips of {LATENCY} s. "
        "dlt has no throttle: it waits when a request is rejected. "
        "Requests (rejected ones among them) and seconds of each run:"
    )
    sentence = (
        "A second run of {}, with nothing changed, takes at most {{}} of the time of the first"
    )
    claims = [
        Claim(sentence.format(name), runs[1].wall / runs[0].wall, at_most=0.4)
        for name, runs in trials.items()
        if clients[name][1] != "all"
    ]
    return Section("What a second run costs", [explanation, table(columns, lines)], claims)


def _cell(trial: Trial) -> str:
    failed = "" if trial.succeeded else ", failed"
    return f"{trial.requests:,} ({trial.rejections}) in {trial.wall:.1f} s{failed}"


def _sync(
    bench: Bench, client: Client, mode: str, jobs: int, percents: tuple[int, ...]
) -> list[Trial]:
    """Return the first run, and those before which a share of the jobs has changed."""
    settings = {"detail_refresh": mode}
    if mode == "notified":
        settings["changes_url"] = f"sqlite:///{bench.new_folder() / 'changes.db'}"
        ChangeLog(settings["changes_url"]).append({"default": []})
    with serve(jobs, limited(PERIOD, LATENCY)) as world:
        order = bench.order(world, **settings)
        trials = [bench.attempt(client, order)]
        published = [posting.job for posting in world.sandbox.organisation.published()]
        every = frozenset(job["id"] for job in published)
        for percent in percents:
            edited = published[: jobs * percent // 100]
            for job in edited:
                world.sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle']} ({percent} %)")
            if mode == "notified":
                ChangeLog(settings["changes_url"]).append(
                    {"default": [job["publicId"] for job in edited]}
                )
            changed = frozenset(job["id"] for job in edited)
            expected = {
                JOBS: changed if mode == "notified" else every,
                DETAILS: every if mode == "all" else changed,
            }
            trials.append(bench.attempt(client, order, expected))
        return trials
