"""One run of one client against one sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.clients import Order
from benchmarks.process import Measured, run

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from benchmarks.clients import Client
    from benchmarks.world import Log, World


@dataclass(frozen=True)
class Trial:
    """What a run took, and what it brought.

    Attributes:
        measured: Its process.
        log: Its requests as the server saw them.
        lost: Rows that should have been extracted and were not, of both streams together.
        state_bytes: Bytes of state that it wrote.
    """

    measured: Measured
    log: Log
    lost: int
    state_bytes: int

    @property
    def startup(self) -> float:
        """Seconds until its first request arrived."""
        return self.log.first - self.measured.started

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise than with status 0."""
        return self.measured.status != 0


def make_order(
    world: World, folder: Path, workers: int = 8, settings: tuple[tuple[str, str], ...] = ()
) -> Order:
    """Order all jobs of a sandbox, within its limit.

    Args:
        world: A sandbox that is served.
        folder: An empty folder.
        workers: Requests that may be in flight at once.
        settings: Of this project's tap.
    """
    options = world.options
    return Order(
        base_url=world.base_url,
        key=world.key,
        folder=folder,
        requests=options.limit_requests if options.limited else None,
        period=options.limit_period,
        workers=workers,
        settings=settings,
    )


def attempt(
    client: Client,
    world: World,
    order: Order,
    *,
    timeout: float,
    details: AbstractSet[str] | None = None,
) -> Trial:
    """Let a client fulfil an order.

    Args:
        client: What is measured.
        world: The sandbox; nothing else may use it meanwhile.
        order: What to do. A second run of the same order goes on from what the first left.
        timeout: Seconds after which the client is stopped.
        details: Ids of the details that have to come; those of all jobs by default.
    """
    world.take_log()
    measured = run(client.sync(order), order.folder / "benchmark.log", timeout)
    stored = client.stored(order)
    wanted = world.ids if details is None else details
    lost = len(world.ids - stored.jobs) + len(wanted - stored.details)
    return Trial(measured, world.take_log(), lost, stored.state_bytes)
