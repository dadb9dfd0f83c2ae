"""What a limit costs: compared with the theoretical minimum, and behind real limiters."""

import contextlib
import functools
import math
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

from public_jobs_sandbox.options import Options

from dev.benchmarks.bench import (
    LIMIT,
    PAGE_SIZE,
    PEERS,
    Bench,
    Claim,
    LeftOutError,
    ResumingTap,
    Section,
    World,
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


JOBS_BEHIND_LIMITERS = 100
# Seconds of a period; limits without bursts allow ten requests per second.
PERIOD = 6
AWAY = 0.05

NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
  access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2;
  fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  limit_req_zone $http_authorization zone=keys:1m rate=10r/s;
  server {{ listen 127.0.0.1:{port}; location / {{ limit_req zone=keys%s; proxy_pass {api}; }} }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend keys
  bind 127.0.0.1:{port}
  stick-table type string len 100 size 1k expire 60s store http_req_rate(6s)
  http-request track-sc0 hdr(authorization)
  http-request deny if {{ sc_http_req_rate(0) gt 60 }}
  default_backend api
backend api
  server api {host}
"""


class LimitingProxy(NamedTuple):
    """A program that forwards requests, and rejects those over its limit.

    Attributes:
        name: What it is, and what it rejects with; by default, nginx with 503 and HAProxy with 403.
        command: `{file}` is the configuration; also `{port}` and `{api}`.
        configuration: The text of the file.
    """

    name: str
    command: str
    configuration: str = ""


LIMITERS = [
    LimitingProxy("nginx, no burst (503)", "nginx -c {file}", NGINX % ""),
    LimitingProxy("nginx, no burst (429)", "nginx -c {file}", NGINX % "; limit_req_status 429"),
    LimitingProxy("nginx, burst (503)", "nginx -c {file}", NGINX % " burst=59 nodelay"),
    LimitingProxy(
        "nginx, burst (429)", "nginx -c {file}", NGINX % " burst=59 nodelay; limit_req_status 429"
    ),
    LimitingProxy("HAProxy (403)", "haproxy -f {file}", HAPROXY),
    LimitingProxy(
        "HAProxy (429)", "haproxy -f {file}", HAPROXY.replace("deny", "deny deny_status 429")
    ),
    LimitingProxy("flask-limiter (429)", "uv run --script {peers}/proxy.py flask {port} {api}"),
    LimitingProxy("django-ratelimit (403)", "uv run --script {peers}/proxy.py django {port} {api}"),
]


def limiters(bench: Bench) -> Section:
    """Run twice through each limiter, the second time as soon as the first run has ended."""
    lines, rejections = [], []
    options = Options(limited=False, latency=AWAY, jitter=AWAY)
    for limiter in LIMITERS:
        with serve(JOBS_BEHIND_LIMITERS, options) as world, _in_front(limiter, world, bench) as url:
            limit = {"rate_limit_requests": LIMIT, "rate_limit_period_seconds": PERIOD}
            tap = ResumingTap(bench, World(world.sandbox, url), **limit)
            for _ in range(2):
                trial = tap.run()
                summary = (tap.folder / "stderr.log").read_text("utf-8")
                sent = int(re.findall(r"; ([\d,]+) requests \(", summary)[-1].replace(",", ""))
                rejections.append(sent - trial.requests)
                lines.append(f"{limiter.name} | {trial.wall:.1f} | {sent} | {rejections[-1]}")
    explanation = (
        f"{JOBS_BEHIND_LIMITERS} jobs at {LIMIT} requests per {PERIOD} s, twice, the second run "
        f"right after the first; round trips of {AWAY} to {2 * AWAY} s. No client needs less than "
        f"{PERIOD} s, or {PERIOD * JOBS_BEHIND_LIMITERS / LIMIT:.0f} s without bursts."
    )
    columns = "limiter, and its status | taken, s | requests | rejections"
    # One burst may reject each of the 16 requests in flight, and each lesson after it one more.
    claim = Claim("Each limiter rejects at most {} requests of a run", max(rejections), at_most=20)
    return Section("Behind real limiters", [explanation, table(columns, lines)], [claim])


@contextlib.contextmanager
def _in_front(limiter: LimitingProxy, world: World, bench: Bench) -> Iterator[str]:
    """Run a limiter in front of the API, and yield its address."""
    folder = bench.new_folder()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    values = {"folder": folder, "port": port, "api": world.url, "peers": PEERS}
    values |= {"host": world.url.removeprefix("http://"), "file": folder / "configuration"}
    (folder / "configuration").write_text(limiter.configuration.format(**values), "utf-8")
    command = limiter.command.format(**values).split()
    if not shutil.which(command[0]):
        message = f"{command[0]} is not on the PATH"
        raise LeftOutError(message)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603  # those above
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    message = f"{process.args!r:.40} does not start"
    raise LeftOutError(message)
