"""What all sections share: the clients, the API that they read, the run of a client, the report.

The report has sections of tables and claims, in Markdown.
"""

import contextlib
import math
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, TypeVar

import click
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from benchmarks.clients import DETAILS, JOBS, Client, Order, World, extracted
from benchmarks.process import Measured, run

Ids = Mapping[str, frozenset[str]]


Result = TypeVar("Result")

# Requests per period, as on the API page.
LIMIT = 60

PAGE_SIZE = 100
NO_LIMIT = Options(limited=False)

# Runs at once that mostly wait. More would compete for processor time.
AT_ONCE = 8

# Seconds between the starts of two runs, so that their starts and bursts do not coincide.
APART = 1.0


class Trial(NamedTuple):
    """The cost and outcome of one run of a client; runs compare by their duration.

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
        clients: This project's tap first, then its peers; all of them installed.
        folder: An empty one, for all that is written.
        full: Whether there is time for real limits and large numbers.
        seed: Of what is random.
        report: Called with a line about each run.
    """

    def __init__(
        self,
        clients: list[Client],
        folder: Path,
        *,
        full: bool,
        seed: int,
        report: Callable[[str], object],
    ) -> None:
        self.clients = clients
        self.ours, *self.peers = clients
        self.full = full
        self.seed = seed
        self.report = report
        self.trials_of_ours: list[Trial] = []
        self._folder = folder

    def new_folder(self) -> Path:
        """Make an empty folder."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def order(self, world: World, **settings: str | float) -> Order:
        """Order all jobs of a sandbox, into a new folder; the settings are those of our tap."""
        return Order(world, self.new_folder(), settings)

    def attempt(
        self,
        client: Client,
        order: Order,
        expected: Ids | None = None,
        timeout: float = 600.0,
        *,
        is_much_later: bool = True,
    ) -> Trial:
        """Run a client on an order; the second run starts with the state of the first.

        Nothing else may use its sandbox at the same time.
        `expected` are the ids that must arrive, by stream; by default all ids in both.
        `is_much_later` says that the limit has forgotten the run before.
        """
        sandbox = order.world.sandbox
        published = frozenset(posting.job["id"] for posting in sandbox.organisation.published())
        sandbox.requests.clear()
        if is_much_later:
            sandbox.options = sandbox.options  # resets the limit
        ended = run(client.command(order), order.stdout, order.folder / "stderr.log", timeout)
        seen = [request.status for request in sandbox.requests]
        found = extracted(order)
        expected = expected or {JOBS: published, DETAILS: published}
        lost = sum(len(ids - found[stream]) for stream, ids in expected.items())
        trial = Trial(ended, len(seen), seen.count(HTTPStatus.TOO_MANY_REQUESTS), lost)
        if client is self.ours:
            self.trials_of_ours.append(trial)
        self.report(
            f"{client.name}: {len(published):,} jobs, {trial.wall:.1f} s, status {ended.status}, "
            f"{trial.requests:,} requests, {lost:,} rows lost"
        )
        return trial


def least_time(jobs: int, period: float) -> float:
    """Return the seconds that any client needs for all jobs, as no window may exceed the limit."""
    return (math.ceil(jobs / PAGE_SIZE) + jobs - 1) // LIMIT * period


def limited(period: float, latency: float, algorithm: str = "sliding_log") -> Options:
    """Describe an API that allows `LIMIT` requests per period and is some seconds away."""
    return Options(
        limit_algorithm=algorithm,
        limit_requests=LIMIT,
        limit_period=period,
        latency=latency,
        jitter=latency / 5,
    )


@contextlib.contextmanager
def serve(jobs: int, options: Options) -> Iterator[World]:
    """Serve published jobs; the clients run in other processes."""
    sandbox = Sandbox.demo(jobs, options=options)
    with serving(sandbox) as url:
        yield World(sandbox, url)


def side_by_side(tasks: Iterable[Callable[[], Result]]) -> list[Result]:
    """Do several tasks at once, and return the results in order."""
    turn = threading.Lock()

    def start(task: Callable[[], Result]) -> Result:
        with turn:
            time.sleep(APART)
        return task()

    with ThreadPoolExecutor(AT_ONCE) as pool:
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
