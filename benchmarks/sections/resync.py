"""What second runs cost under a limit, in requests and in time, compared with the first."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from benchmarks.bench import LIMIT, limited, serve, side_by_side
from benchmarks.clients import DETAILS, JOBS
from benchmarks.report import Claim, Section, table
from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from benchmarks.bench import Bench, Trial
    from benchmarks.clients import Client

SIZES = (110, 600)
# Each in the quick form, and in the full.
PERCENTS = ((0, 10), (0, 1, 10))

PERIOD = 6.0
LATENCY = 0.05
MODES = ("notified", "changed", "all")


def measure(bench: Bench) -> Section:
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
        "The other clients have no throttle: they wait when a request is rejected. "
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
