"""What all sections share: the API, the runs of the tap that reads it, and the report.

Times are those of extraction: from the API to messages in a file.
The report has sections of tables and claims, in Markdown.
"""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from dev.benchmarks.process import Measured, run

Json = Any
T = TypeVar("T")

COMMAND = Path(sys.executable).with_name("tap-public-jobs")
PEERS = Path(__file__).with_name("peers")
JOBS = "jobs"
DETAILS = "job_details"

# Requests per period, as on the API page.
LIMIT = 60
# More requests per period than any server here could answer.
UNLIMITED = 1_000_000

PAGE_SIZE = 100
NO_LIMIT = Options(limited=False)

# Seconds between the starts of two runs, so that their starts and bursts do not coincide.
APART = 1.0


class LeftOutError(Exception):
    """Something cannot be measured; the message says why, in one line."""


class World(NamedTuple):
    """A sandbox, and its address."""

    sandbox: Sandbox
    url: str


class Trial(NamedTuple):
    """The cost and outcome of one run.

    Attributes:
        measured: Its process.
        requests: How many the server saw, the rejected ones included.
        rejections: How many it rejected for the rate limit.
        lost: Rows of both streams that should have been extracted and were not.
    """

    measured: Measured
    requests: int
    rejections: int
    lost: int

    @property
    def wall(self) -> float:
        """Seconds that it took."""
        return self.measured.wall

    @property
    def succeeded(self) -> bool:
        """Whether it brought all rows, and ended with status 0."""
        return self.measured.status == 0 and not self.lost


class Bench:
    """One run of the benchmarks.

    Args:
        folder: An empty one, for all that is written.
        full: Whether to measure real limits and large numbers, which takes long.
        report: Called with a line about each run.
    """

    def __init__(self, folder: Path, *, full: bool, report: Callable[[str], object]) -> None:
        self.full = full
        self.report = report
        self.trials: list[Trial] = []  # of the tap
        self._folder = folder

    def new_folder(self) -> Path:
        """Make an empty folder."""
        return Path(tempfile.mkdtemp(dir=self._folder))


class ResumingTap:
    """This project's tap, which syncs an organisation run after run, with its state.

    Args:
        bench: Counts its runs.
        world: Where the organisation is.
        settings: Settings of the tap besides those that reach it and keep its limit.
    """

    def __init__(self, bench: Bench, world: World, **settings: str | float) -> None:
        options = world.sandbox.options
        self._bench, self._world = bench, world
        self.folder = bench.new_folder()
        self.messages_file, self._state = self.folder / "messages.jsonl", self.folder / "state.json"
        self._config = {
            "base_url": world.url,
            "api_key": world.sandbox.key,
            "rate_limit_requests": options.limit_requests if options.limited else UNLIMITED,
            "rate_limit_period_seconds": options.limit_period,
            **settings,
        }

    def run(
        self, expected: Mapping[str, frozenset[str]] | None = None, timeout: float = 600.0
    ) -> Trial:
        """Run it to its end.

        `expected` are the ids that must arrive, by stream; by default all ids in both.
        """
        config = self.folder / "config.json"
        config.write_text(json.dumps(self._config), encoding="utf-8")
        command = [str(COMMAND), f"--config={config}"]
        if self._state.exists():
            command.append(f"--state={self._state}")
        ended = attempt(self._world, command, self.messages_file, timeout)
        for _, message in self.messages("STATE"):
            self._state.write_text(json.dumps(message["value"]), encoding="utf-8")
        found = {(it["stream"], it["record"]["id"]) for _, it in self.messages("RECORD")}
        every = published(self._world.sandbox)
        expected = expected or {JOBS: every, DETAILS: every}
        lost = {(stream, key) for stream, keys in expected.items() for key in keys} - found
        trial = ended._replace(lost=len(lost))
        self._bench.trials.append(trial)
        self._bench.report(
            f"{len(every):,} jobs, {trial.wall:.1f} s, status {trial.measured.status}, "
            f"{trial.requests:,} requests, {trial.lost:,} rows lost"
        )
        return trial

    def messages(self, kind: str) -> Iterator[tuple[bytes, Json]]:
        """Yield the lines of the last run that have messages of one type, and the messages."""
        start = b'{"type":"%s"' % kind.encode()
        with self.messages_file.open("rb") as lines:
            for line in lines:
                if line.startswith(start) and line.endswith(b"\n"):  # otherwise it was killed
                    yield line, json.loads(line)


def attempt(world: World, command: Sequence[str], stdout: Path, timeout: float = 600.0) -> Trial:
    """Reset the limit, and run a client; nothing else may use its sandbox.

    No row counts as lost, because only the caller knows what the client should have extracted.
    """
    sandbox = world.sandbox
    sandbox.requests.clear()
    sandbox.options = sandbox.options  # resets the limit
    stderr = stdout.with_name("stderr.log")
    ended = run(command, stdout, stderr, timeout)
    seen = [request.status for request in sandbox.requests]
    return Trial(ended, len(seen), seen.count(HTTPStatus.TOO_MANY_REQUESTS), lost=0)


def published(sandbox: Sandbox) -> frozenset[str]:
    """Return the ids of the published jobs."""
    return frozenset(posting.job["id"] for posting in sandbox.organisation.published())


def install(*arguments: str) -> str:
    """Install something with uv, and return what it prints; raise `LeftOutError` if that fails."""
    try:
        command = ("uv", "--quiet", *arguments)
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    except FileNotFoundError:
        reason = "uv is not on the PATH"
    except subprocess.CalledProcessError as error:
        # uv's own message is on stderr. It may name a registry's host, and reports are published.
        reason = f"uv cannot install it (status {error.returncode})"
    else:
        return ended.stdout.strip()
    raise LeftOutError(reason)


def limited(period: float, latency: float, algorithm: str = "sliding_log") -> Options:
    """Describe an API with `LIMIT` requests per period, and round trips of `latency` seconds."""
    return Options(
        limit_algorithm=algorithm,
        limit_requests=LIMIT,
        limit_period=period,
        latency=latency,
        jitter=latency / 5,
    )


@contextlib.contextmanager
def serve(jobs: int, options: Options) -> Iterator[World]:
    """Serve published jobs; their readers run in other processes."""
    sandbox = Sandbox.demo(jobs, options=options)
    with serving(sandbox) as url:
        yield World(sandbox, url)


def side_by_side(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Do several tasks at once, because they mostly wait, and return the results in order."""
    turn = threading.Lock()

    def start(task: Callable[[], T]) -> T:
        with turn:
            time.sleep(APART)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(start, tasks))


BEGIN = "<!-- benchmarks: begin -->"
END = "<!-- benchmarks: end -->"


@dataclass(frozen=True)
class Claim:
    """A sentence with a threshold in place of `{}`, and the figure that must not exceed it."""

    sentence: str
    measured: float
    at_most: float

    @property
    def holds(self) -> bool:
        """Whether the figure is within the threshold; NaN is not."""
        return self.measured <= self.at_most

    def __str__(self) -> str:
        return f"{self.sentence.format(_number(self.at_most))} ({_number(self.measured)})."


@dataclass
class Section:
    """A heading, the paragraphs and tables under it, and the claims about them."""

    heading: str
    parts: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    def __str__(self) -> str:
        verdicts = {True: "", False: "**Falls short:** "}
        claims = "\n".join(f"- {verdicts[claim.holds]}{claim}" for claim in self.claims)
        return "\n\n".join(filter(None, [f"### {self.heading}", *self.parts, claims]))


def table(header: str, rows: Iterable[str]) -> str:
    """Write a table of lines with ` | ` between their cells; only the first column is text."""
    rule = " | ".join(["---", *["---:"] * header.count(" | ")])
    return "\n".join(f"| {line} |" for line in (header, rule, *rows))


def with_tables(file: Path, tables: str) -> str:
    """Return the text of a file with new tables between its two markers, or fail in one line."""
    block = f"{BEGIN}\n\n{tables.strip()}\n\n{END}"
    old = re.compile(f"{BEGIN}\n.*?{END}", re.DOTALL)
    text, found = old.subn(lambda _: block, file.read_text(encoding="utf-8"))
    if found != 1:
        message = f"{file.name}: There must be one line {BEGIN} and after it one line {END}."
        raise click.ClickException(message)
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.4g}"  # noqa: PLR2004  # enough digits
