"""What is measured: this project's tap, and what a user would pick instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a client is asked to do: sync both streams of one organisation.

    Attributes:
        base_url: Where the sandbox is.
        key: A key that it accepts.
        folder: The client's own, empty before its first run, kept between two runs of one order so
            that the second can go on from what the first left there (state).
        requests: The budget: requests per `period`; None if the server has no limit.
        period: Seconds.
        workers: Requests that may be in flight at once, for clients that can.
        settings: Settings of this project's tap; other clients have no use for them.
    """

    base_url: str
    key: str
    folder: Path
    requests: int | None = None
    period: float = 60.0
    workers: int = 8
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Stored:
    """What a client has left in its folder after its last run.

    Attributes:
        jobs: The ids of the summaries that it extracted in that run.
        details: The ids of the details.
        state_bytes: Bytes of state that it wrote in that run, all of its writes together.
    """

    jobs: frozenset[str]
    details: frozenset[str]
    state_bytes: int


class Client(Protocol):
    """A program that extracts both streams."""

    name: str

    def install(self) -> str | None:
        """Make it ready to run; returns the reason if that cannot be done, in one line."""

    def version(self) -> str:
        """Tell name and version of what is measured, such as `dlt 1.20.0`."""

    def sync(self, order: Order) -> list[str]:
        """Return the command of one run, which writes what it extracts into the order's folder."""

    def stored(self, order: Order) -> Stored:
        """Read what the last run left."""

    def version_command(self) -> list[str]:
        """Return the command that only tells the version, for the start-up times."""

    def discover_command(self, order: Order) -> list[str]:
        """Return the command that only tells the streams, for the start-up times."""
