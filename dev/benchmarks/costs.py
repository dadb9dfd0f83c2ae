"""What runs cost: with more jobs, and, compared with dlt, when little has changed."""

import json
import sys
from functools import partial
from http import HTTPStatus
from pathlib import Path

from dev.benchmarks.bench import (
    DETAILS,
    JOBS,
    LIMIT,
    NO_LIMIT,
    PEERS,
    Bench,
    Claim,
    ResumingTap,
    Section,
    Trial,
    World,
    attempt,
    install,
    limited,
    published,
    serve,
    side_by_side,
    table,
)
from tap_public_jobs.notification_log import NotificationLog

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
            tap = ResumingTap(bench, world)
            wall, _, memory, _ = tap.run().measured
        each.append(1000 * wall / jobs)
        states.append(sum(len(line) for line, _ in tap.messages("STATE")) / jobs)
        lines.append(f"{jobs:,} | {wall:.1f} | {each[-1]:.1f} | {memory:.0f} | {states[-1]:,.0f}")
    explanation = "Without a rate limit. The state is the size of all STATE messages together."
    time = f"With {sizes[-1]:,} jobs, each takes at most {{}} of its time with {sizes[0]:,}"
    megabytes = f"A backfill of {sizes[-1]:,} jobs needs at most {{}} MB of memory"
    state = "However many jobs there are, state takes at most {} bytes per job of a backfill"
    claims = [
        Claim(time, each[-1] / each[0], at_most=1.1),
        Claim(megabytes, memory, at_most=170),
        Claim(state, max(states), MOST_STATE),
    ]
    return Section("How the cost grows", [explanation, table(GROWTH_COLUMNS, lines)], claims)


ALIKE = ((1, 300), (1, 3_000))
ROUNDS = 3
ALIKE_COLUMNS = "jobs | client | seconds | CPU seconds | MB | requests"


def peers(bench: Bench) -> Section:
    """Extract all jobs with this tap, with other tools, and with the least that a tap could be."""
    names = {"dlt_rest_api": f"dlt {install(*DLT)}", "airbyte": "airbyte-cdk"}
    install("sync", "--script", f"{PEERS}/airbyte.py")  # before a run is measured
    lines, claims = [], []
    for jobs in ALIKE[bench.full]:
        with serve(jobs, NO_LIMIT) as world:
            best = {
                "tap-public-jobs": _best([ResumingTap(bench, world).run() for _ in range(ROUNDS)])
            }
            for program, name in {**names, "bare": "a bare tap"}.items():
                best[name] = _best([_extract(bench, world, program) for _ in range(ROUNDS)])
        lines += [
            f"{jobs:,} | {name} | {it.wall:.1f} | {it.measured.cpu:.1f} | "
            f"{it.measured.megabytes:.0f} | {it.requests:,}"
            for name, it in best.items()
        ]
        ours, bare = best["tap-public-jobs"], best["a bare tap"]
        least = min(best[name].measured.cpu for name in names.values())
        claims += [
            Claim(
                f"With {jobs:,} jobs, the tap takes at most {{}} of the CPU time of the best other",
                ours.measured.cpu / least,
                at_most=0.8,
            ),
            Claim(
                f"With {jobs:,} jobs, the tap takes at most {{}} of the time of a bare tap",
                ours.wall / bare.wall,
                at_most=1.15,
            ),
        ]
    explanation = (
        "From the API to messages in a file, without a limit, 16 requests at once; the texts are as"
        f" long as real ones. Of {ROUNDS} runs, the one with the least CPU time. The bare tap makes"
        " the same requests and writes the same columns with the Singer SDK, and checks, retries,"
        " limits and remembers nothing."
    )
    parts = [explanation, table(ALIKE_COLUMNS, lines)]
    return Section("Compared with other tools", parts, claims)


def _best(trials: list[Trial]) -> Trial:
    return min(trials, key=lambda trial: trial.measured.cpu)


def _extract(bench: Bench, world: World, program: str) -> Trial:
    """Extract all jobs with a program of `peers`."""
    folder = bench.new_folder()
    config = folder / "config.json"
    place = {"base_url": world.url, "api_key": world.sandbox.key}
    script = ["run", "--python", sys.executable, "--script", f"{PEERS}/{program}.py"]
    command = {
        "dlt_rest_api": ["uv", *script, str(config)],
        "airbyte": ["uv", *script, str(config)],
        "bare": [sys.executable, f"{PEERS}/bare.py", f"--config={config}"],
    }[program]
    settings = _dlt_variables(folder, world) if program == "dlt_rest_api" else place
    config.write_text(json.dumps(settings | {"max_concurrent_requests": "16"}), encoding="utf-8")
    trial = attempt(world, command, folder / "output")
    details = sum(it.status == HTTPStatus.OK and not it.query for it in world.sandbox.requests)
    name = f"{program}: {trial.wall:.1f} s, status {trial.measured.status}, {details:,} details"
    bench.report(name)
    return trial


SIZES = (110, 600)
# Each in the quick form, and in the full.
PERCENTS = ((0, 10), (0, 1, 10))

PERIOD = 6.0
LATENCY = 0.05
MODES = ("notified", "changed", "all")

# It has an environment of its own, on the Python of the tap.
DLT = ("run", "--python", sys.executable, "--script", f"{PEERS}/dlt_rest_api.py")


def resync(bench: Bench) -> Section:
    """Sync all jobs, then again after none, some and more of them have changed."""
    version = install(*DLT)
    jobs, percents = SIZES[bench.full], PERCENTS[bench.full]
    names = [f"tap-public-jobs, `detail_refresh: {mode}`" for mode in MODES]
    tasks = [partial(_sync, bench, mode, jobs, percents) for mode in MODES]
    tasks.append(partial(_reload, bench, jobs, percents))
    trials = dict(zip([*names, "dlt rest_api"], side_by_side(tasks), strict=True))
    lines = (" | ".join([name, *map(_cell, runs)]) for name, runs in trials.items())
    columns = " | ".join(["client", "first run", *(f"{percent}% changed" for percent in percents)])
    explanation = (
        f"{jobs:,} jobs, {LIMIT} requests per {PERIOD:g} s, round trips of {LATENCY} s. "
        f"dlt {version} has no throttle: it waits when a request is rejected. "
        "Requests (rejected ones among them) and seconds of each run:"
    )
    sentence = (
        "A second run of {}, with nothing changed, takes at most {{}} of the time of the first"
    )
    claims = [
        Claim(sentence.format(name), trials[name][1].wall / trials[name][0].wall, at_most=0.4)
        for name, mode in zip(names, MODES, strict=True)
        if mode != "all"
    ]
    return Section("What a second run costs", [explanation, table(columns, lines)], claims)


def _cell(trial: Trial) -> str:
    failed = "" if trial.succeeded else ", failed"
    return f"{trial.requests:,} ({trial.rejections}) in {trial.wall:.1f} s{failed}"


def _sync(bench: Bench, mode: str, jobs: int, percents: tuple[int, ...]) -> list[Trial]:
    """Return the tap's first run, and those before which a share of the jobs has changed."""
    settings = {"detail_refresh": mode}
    if mode == "notified":
        settings["changes_url"] = f"sqlite:///{bench.new_folder() / 'changes.db'}"
        NotificationLog(settings["changes_url"]).append({"default": []})
    with serve(jobs, limited(PERIOD, LATENCY)) as world:
        tap = ResumingTap(bench, world, **settings)
        trials = [tap.run()]
        every = published(world.sandbox)
        first = [posting.job for posting in world.sandbox.organisation.published()]
        for percent in percents:
            edited = first[: jobs * percent // 100]
            for job in edited:
                world.sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle']} ({percent} %)")
            if mode == "notified":
                NotificationLog(settings["changes_url"]).append(
                    {"default": [job["publicId"] for job in edited]}
                )
            changed = frozenset(job["id"] for job in edited)
            expected = {
                JOBS: changed if mode == "notified" else every,
                DETAILS: every if mode == "all" else changed,
            }
            trials.append(tap.run(expected))
        return trials


def _reload(bench: Bench, jobs: int, percents: tuple[int, ...]) -> list[Trial]:
    """Return as many runs of dlt, which fetch everything: the API does not say what changed."""
    with serve(jobs, limited(PERIOD, LATENCY)) as world:
        folder = bench.new_folder()
        config = folder / "config.json"
        config.write_text(json.dumps(_dlt_variables(folder, world)), encoding="utf-8")
        trials = []
        for _ in ("first run", *percents):
            trial = attempt(world, ["uv", *DLT, str(config)], folder / "output")
            answered = [it for it in world.sandbox.requests if it.status == HTTPStatus.OK]
            details = {it.path for it in answered if not it.query}
            trials.append(trial._replace(lost=jobs - len(details)))
        return trials


def _dlt_variables(folder: Path, world: World) -> dict[str, str]:
    return {
        "DLT_DATA_DIR": str(folder),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "EXTRACT__WORKERS": "16",  # as many requests at once as the tap
        "PUBLIC_JOBS__BASE_URL": world.url,
        "PUBLIC_JOBS__API_KEY": world.sandbox.key,
    }
