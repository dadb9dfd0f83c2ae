"""What all sections share: the clients, folders, and the record of what this tap lost."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from benchmarks.trial import Trial, attempt, make_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from benchmarks.clients import Client, Order
    from benchmarks.world import World

Result = TypeVar("Result")

SIDE_BY_SIDE = 8
"""Runs at once that mostly wait. More would take each other's processor time."""

APART = 1.0
"""Seconds between the starts of two such runs, so that they neither start nor burst at once."""


class Bench:
    """One run of the benchmarks.

    Args:
        clients: This project's tap first, then its peers; all of them installed.
        folder: An empty one, for all that clients write.
        full: Whether there is time for real limits and large numbers.
        tell: Called with a line about each run.
    """

    def __init__(
        self, clients: Sequence[Client], folder: Path, *, full: bool, tell: Callable[[str], object]
    ) -> None:
        self.ours, *self.peers = clients
        self.full = full
        self.trials_of_ours: list[Trial] = []
        self._folder = folder
        self._numbers = itertools.count(1)
        self._tell = tell

    @property
    def clients(self) -> list[Client]:
        """This project's tap, and its peers."""
        return [self.ours, *self.peers]

    @property
    def clients_without_limit(self) -> list[Client]:
        """Those that still differ from each other where there is no limit."""
        return [client for client in self.clients if not client.name.endswith("rate-limited")]

    def new_folder(self) -> Path:
        """Make an empty folder."""
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        return folder

    def order(
        self, world: World, workers: int = 8, settings: tuple[tuple[str, str], ...] = ()
    ) -> Order:
        """Order all jobs of a sandbox into a folder of their own."""
        return make_order(world, self.new_folder(), workers, settings)

    def attempt(
        self,
        client: Client,
        world: World,
        order: Order | None = None,
        *,
        timeout: float = 600.0,
        details: AbstractSet[str] | None = None,
    ) -> Trial:
        """Let a client fulfil an order; see `benchmarks.trial.attempt`."""
        order = order or self.order(world)
        trial = attempt(client, world, order, timeout=timeout, details=details)
        if client is self.ours:
            self.trials_of_ours.append(trial)
        ended = trial.measured
        self._tell(
            f"{client.name}: {world.jobs:,} jobs, {ended.wall:.1f} s, status {ended.status}, "
            f"{trial.log.requests:,} requests, {trial.lost:,} rows lost"
        )
        return trial


def side_by_side(
    tasks: Iterable[Callable[[], Result]], at_once: int = SIDE_BY_SIDE
) -> list[Result]:
    """Do several tasks at once, and return the results in order."""
    turn = threading.Lock()

    def start(task: Callable[[], Result]) -> Result:
        with turn:
            time.sleep(APART)
        return task()

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(start, tasks))


def typical(trials: Sequence[Trial]) -> Trial:
    """Return the trial of median duration."""
    median = statistics.median_low([trial.measured.wall for trial in trials])
    return next(trial for trial in trials if trial.measured.wall == median)
