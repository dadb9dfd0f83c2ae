"""The sandbox, served from a process of its own so that it takes no time from what is measured."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from types import TracebackType

    from public_jobs_sandbox.options import Options

Answer = TypeVar("Answer")

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["public_jobs_sandbox.server"])


class Log(NamedTuple):
    """What a server saw.

    Attributes:
        requests: How many, the rejected ones included.
        rejections: Those that were rejected for the rate limit.
        first: The monotonic clock when the first one arrived; infinity if none did.
    """

    requests: int
    rejections: int
    first: float


class World:
    """A sandbox with published jobs, served while it is entered.

    Args:
        jobs: How many there are.
        options: How the API behaves.

    Attributes:
        base_url: Where it is.
        key: A key that it accepts.
        ids: The ids of all published jobs.
    """

    base_url: str
    key: str
    ids: frozenset[str]

    def __init__(self, jobs: int, options: Options) -> None:
        self.jobs = jobs
        self.options = options
        self._here, self._there = _processes.Pipe()
        arguments = (self._there, jobs, options)
        self._process = _processes.Process(target=_serve, args=arguments, daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._there.close()
        self.base_url, self.key, self.ids = self._here.recv()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._here.close()
        self._process.join()

    def take_log(self) -> Log:
        """Tell what the server saw since this was asked last."""
        return self._ask(_take_log)

    def edit(self, number: int) -> frozenset[str]:
        """Give the first jobs of the list another title.

        Args:
            number: How many.

        Returns:
            Their ids.
        """
        return self._ask(functools.partial(_edit, number))

    def _ask(self, question: Callable[[Sandbox], Answer]) -> Answer:
        self._here.send(question)
        answer: Answer = self._here.recv()
        return answer


def _edit(number: int, sandbox: Sandbox) -> frozenset[str]:
    jobs = [posting.job for posting in sandbox.organisation.published()[:number]]
    for job in jobs:
        sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle']} (edited)")
    return frozenset(job["id"] for job in jobs)


def _take_log(sandbox: Sandbox) -> Log:
    seen = list(sandbox.requests)
    sandbox.requests.clear()
    rejected = sum(request.status == sandbox.options.rejection_status for request in seen)
    return Log(len(seen), rejected, seen[0].time if seen else float("inf"))


def _serve(connection: Connection, jobs: int, options: Options) -> None:
    sandbox = Sandbox.demo(jobs, options=options)
    published = sandbox.organisation.published()
    ids = frozenset(posting.job["id"] for posting in published)
    with serving(sandbox) as url, contextlib.suppress(EOFError, KeyboardInterrupt):
        connection.send((url, sandbox.key, ids))
        while True:
            connection.send(connection.recv()(sandbox))
