"""Real limiters between this tap and the API: what each rejects with, and what that costs."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from public_jobs_sandbox.options import Options

from benchmarks.bench import LIMIT, serve
from benchmarks.clients import PEERS, LeftOutError, World
from benchmarks.report import Claim, Section, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.bench import Bench

JOBS = 100
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


class Limiter(NamedTuple):
    """A program that forwards requests, and rejects those over its limit.

    Attributes:
        name: What it is, and what it rejects with.
        command: `{file}` is the configuration; also `{port}` and `{api}`.
        configuration: The text of the file.
    """

    name: str
    command: str
    configuration: str = ""


LIMITERS = [
    Limiter("nginx, no burst (503)", "nginx -c {file}", NGINX % ""),
    Limiter("nginx, burst (503)", "nginx -c {file}", NGINX % " burst=59 nodelay"),
    Limiter("HAProxy (403)", "haproxy -f {file}", HAPROXY),
    Limiter("flask-limiter (429)", "uv run --script {peers}/flask_proxy.py {port} {api}"),
    Limiter("django-ratelimit (403)", "uv run --script {peers}/django_proxy.py {port} {api}"),
]


def measure(bench: Bench) -> Section:
    """Run twice through each limiter: the second run begins as the first one ends."""
    lines, rejections = [], []
    options = Options(limited=False, latency=AWAY, jitter=AWAY)
    for limiter in LIMITERS:
        with serve(JOBS, options) as world, _in_front(limiter, world, bench) as url:
            order = bench.order(
                World(world.sandbox, url),
                rate_limit_requests=LIMIT,
                rate_limit_period_seconds=PERIOD,
            )
            for _ in range(2):
                trial = bench.attempt(bench.ours, order)
                summary = (order.folder / "stderr.log").read_text("utf-8")
                sent = int(re.findall(r"; ([\d,]+) requests \(", summary)[-1].replace(",", ""))
                rejections.append(sent - trial.requests)
                lines.append(f"{limiter.name} | {trial.wall:.1f} | {sent} | {rejections[-1]}")
    explanation = (
        f"{JOBS} jobs at {LIMIT} requests per {PERIOD} s, twice, the second run right after the "
        f"first; round trips of {AWAY} to {2 * AWAY} s. No client needs less than "
        f"{PERIOD} s, or {PERIOD * JOBS / LIMIT:.0f} s without bursts."
    )
    columns = "limiter, and its default status | taken, s | requests | rejections"
    claim = Claim("Each limiter rejects at most {} requests of a run", max(rejections), at_most=12)
    return Section("Behind real limiters", [explanation, table(columns, lines)], [claim])


@contextlib.contextmanager
def _in_front(limiter: Limiter, world: World, bench: Bench) -> Iterator[str]:
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
