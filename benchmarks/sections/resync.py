"""What second runs cost under a limit, in requests and in time, beside the first."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench import LIMIT, PAGE_SIZE, limited, serve, side_by_side
from benchmarks.clients import DETAILS, JOBS
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.bench import Bench, Trial, World
    from benchmarks.clients import Client

SIZES = (110, 600)
PERCENTS = ((0, 10), (0, 1, 10))
"""Each in the quick form, and in the full."""

PERIOD = 6.0
LATENCY = 0.05
MODES = ("notified", "changed", "all")


def measure(bench: Bench) -> Section:
    """Sync all jobs, then again after none, some and more of them have changed."""
    jobs, percents = SIZES[bench.full], PERCENTS[bench.full]
    clients = [(bench.ours, mode) for mode in MODES] + [(peer, "all") for peer in bench.peers]
    tasks = [functools.partial(_sync, bench, *it, jobs, percents) for it in clients]
    trials = side_by_side(tasks)
    names = [f"{bench.ours.name}, `detail_refresh: {mode}`" for mode in MODES]
    names += [peer.name for peer in bench.peers]
    rows = (
        (name, *(f"{it.requests:,} ({it.rejections}) in {it.wall:.1f} s" for it in several))
        for name, several in zip(names, trials, strict=True)
    )
    columns = " | ".join(["client", "first run", *(f"{percent}% changed" for percent in percents)])
    explanation = (
        f"{jobs:,} jobs, {LIMIT} requests per {PERIOD:g} s, round trips of {LATENCY} s. "
        "Requests (rejected ones among them) and seconds of each run:"
    )
    section = Section("What a second run costs", [explanation, table(columns, rows)])
    for mode, several in zip(MODES[:2], trials, strict=False):
        section.claims += _claims(mode, several, jobs, percents)
    return section


def _claims(mode: str, trials: list[Trial], jobs: int, percents: tuple[int, ...]) -> list[Claim]:
    first, *later = trials
    run = f"A run under `detail_refresh: {mode}` before which"
    sentence = f"{run} nothing has changed takes at most {{}} of the time of the first"
    claims = [Claim(sentence, later[0].wall / first.wall, at_most=0.4)]
    for percent, trial in zip(percents, later, strict=True):
        # One page more than the list has may show that it ends.
        at_most = math.ceil(jobs / PAGE_SIZE) + 1 + jobs * percent // 100
        if mode == "notified" and not percent:
            at_most = 0
        sentence = f"{run} {percent}% of {jobs:,} jobs have changed costs at most {{}} requests"
        claims.append(Claim(sentence, trial.requests, at_most))
    return claims


def _sync(
    bench: Bench, client: Client, mode: str, jobs: int, percents: tuple[int, ...]
) -> list[Trial]:
    """Return the first run, and those before which a share of the jobs has changed."""
    settings, webhook_url = {"detail_refresh": mode}, None
    with contextlib.ExitStack() as stack:
        if mode == "notified":
            receiver = _receiving(bench.new_folder())
            webhook_url, settings["changes_url"] = stack.enter_context(receiver)
        options = limited(PERIOD, LATENCY, webhook_url=webhook_url)
        world = stack.enter_context(serve(jobs, options))
        order = bench.order(world, **settings)
        trials = [bench.attempt(client, world, order)]
        for percent in percents:
            changed = _edit(world, jobs * percent // 100)
            expected = {
                JOBS: changed if mode == "notified" else world.ids,
                DETAILS: world.ids if mode == "all" else changed,
            }
            trials.append(bench.attempt(client, world, order, expected=expected))
        return trials


def _edit(world: World, number: int) -> frozenset[str]:
    """Give that many jobs another title, send the webhooks, and return the jobs' ids."""
    jobs = [posting.job for posting in world.sandbox.organisation.published()[:number]]
    for job in jobs:
        world.sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle']} (edited)")
    world.sandbox.webhooks.flush()
    return frozenset(job["id"] for job in jobs)


@contextlib.contextmanager
def _receiving(folder: Path) -> Iterator[tuple[str, str]]:
    """Run the receiver; yield the URL that takes webhooks, and the URL of its change log."""
    log, token = f"sqlite:///{folder / 'changes.db'}", secrets.token_hex(32)
    program = str(Path(sys.executable).with_name("public-jobs-webhook"))
    with subprocess.Popen(  # noqa: S603  # this project's own command
        [program, "serve", "--port", "0", "--changes-url", log],
        env=os.environ | {"PUBLIC_JOBS_WEBHOOK_TOKEN": token},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            address = re.search(r"http://[\w.]+:\d+", line)
            if not address:
                message = f"The receiver did not start: {line}"
                raise RuntimeError(message)
            yield f"{address[0]}/hooks/{token}", log
        finally:
            process.terminate()
