"""What all sections share: the clients, the API that they read, and one run of one of them."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from benchmarks.clients import DETAILS, JOBS, Order, extracted
from benchmarks.process import Measured, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from benchmarks.clients import Client

Result = TypeVar("Result")

LIMIT = 60
"""Requests per period, as the API's page has it."""

PAGE_SIZE = 100
MEGABYTE = 1_000_000
NO_LIMIT = Options(limited=False)

AT_ONCE = 8
"""Runs at once that mostly wait. More would take each other's processor time."""

APART = 1.0
"""Seconds between the starts of two such runs, so that they neither start nor burst at once."""


class World(NamedTuple):
    """A sandbox, its address, and the ids of its published jobs."""

    sandbox: Sandbox
    url: str
    ids: frozenset[str]


class Trial(NamedTuple):
    """What one run of a client took and brought; the shorter of two is the lesser.

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
        folder: An empty one, for all that clients write.
        full: Whether there is time for real limits and large numbers.
        report: Called with a line about each run.
    """

    def __init__(
        self, clients: list[Client], folder: Path, *, full: bool, report: Callable[[str], object]
    ) -> None:
        self.clients = clients
        self.ours, *self.peers = clients
        self.full = full
        self.trials_of_ours: list[Trial] = []
        self._folder = folder
        self._numbers = itertools.count(1)
        self._report = report

    def new_folder(self) -> Path:
        """Make an empty folder."""
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def order(self, world: World, **settings: str) -> Order:
        """Order all jobs of a sandbox, within its limit, into a new folder."""
        options = world.sandbox.options
        return Order(
            base_url=world.url,
            key=world.sandbox.key,
            folder=self.new_folder(),
            requests=options.limit_requests if options.limited else None,
            period=options.limit_period,
            settings=settings,
        )

    def attempt(
        self,
        client: Client,
        world: World,
        order: Order | None = None,
        *,
        expected: Mapping[str, AbstractSet[str]] | None = None,
        timeout: float = 600.0,
    ) -> Trial:
        """Let a client fulfil an order; nothing else may use the sandbox at the same time.

        Args:
            client: What is measured.
            world: The sandbox.
            order: What to do; by default all jobs. The second run of an order has a state.
            expected: Ids that have to come, by stream; by default all in both.
            timeout: Seconds after which the client is stopped.
        """
        order = order or self.order(world)
        sandbox = world.sandbox
        sandbox.requests.clear()
        sandbox.options = sandbox.options  # resets the limit: in reality, a next run is much later
        ended = run(client.command(order), order.stdout, order.folder / "stderr.log", timeout)
        seen = [request.status for request in sandbox.requests]
        ids = extracted(order)
        expected = expected or {JOBS: world.ids, DETAILS: world.ids}
        lost = sum(len(wanted - ids[stream]) for stream, wanted in expected.items())
        trial = Trial(ended, len(seen), seen.count(sandbox.options.rejection_status), lost)
        if client is self.ours:
            self.trials_of_ours.append(trial)
        self._report(
            f"{client.name}: {len(world.ids):,} jobs, {trial.wall:.1f} s, status {ended.status}, "
            f"{trial.requests:,} requests, {lost:,} rows lost"
        )
        return trial


def limited(
    period: float, latency: float, algorithm: str = "sliding_log", webhook_url: str | None = None
) -> Options:
    """Describe an API that allows `LIMIT` requests per period and is some seconds away."""
    return Options(
        limit_algorithm=algorithm,
        limit_requests=LIMIT,
        limit_period=period,
        latency=latency,
        jitter=latency / 5,
        webhook_url=webhook_url,
    )


@contextlib.contextmanager
def serve(jobs: int, options: Options) -> Iterator[World]:
    """Serve published jobs; what is measured runs in other processes."""
    sandbox = Sandbox.demo(jobs, options=options)
    ids = frozenset(posting.job["id"] for posting in sandbox.organisation.published())
    with serving(sandbox) as url:
        yield World(sandbox, url, ids)


def side_by_side(tasks: Iterable[Callable[[], Result]]) -> list[Result]:
    """Do several tasks at once, and return the results in order."""
    turn = threading.Lock()

    def start(task: Callable[[], Result]) -> Result:
        with turn:
            time.sleep(APART)
        return task()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(start, tasks))
