"""Time that only waiting moves: for one thread, and for the client with its threads.

Behind `Api` is a simulated network, and one thread runs at a time.
"""

import io
import itertools
import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from public_jobs_sandbox.limits import Limiter
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from typing_extensions import override
from urllib3 import HTTPResponse

from tap_public_jobs.api.client import PublicJobsClient
from tap_public_jobs.api.models import JobRef
from tap_public_jobs.api.throttle import Throttle
from tap_public_jobs.api.transport import Session
from tap_public_jobs.errors import RequestError


@dataclass
class FakeTime(threading.Condition):
    """What a throttle waits on, and how long it waited."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @override
    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        self.now += timeout
        return True

    def throttle(self, limit: int = 60, period: float = 60.0, **options: Any) -> Throttle:
        return Throttle(
            limit, period, clock=lambda: self.now, epoch=lambda: 0.0, changed=self, **options
        )


class Clock:
    """Moves on when every thread waits, to the time for which the first of them waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._turns = threading.Condition()
        self._running: object = None
        self._order = itertools.count()
        self._until: dict[object, tuple[float, int]] = {}

    def run(self, task: Callable[[], object], threads: int) -> None:
        """Run a task in several threads to its ends."""
        with ThreadPoolExecutor(threads) as pool:
            runs = [pool.submit(self._run, task) for _ in range(threads)]
            with self._turns:
                self._turns.wait_for(lambda: len(self._until) == threads)
                self._next()
            for it in runs:
                it.result()

    def sleep(self, seconds: float) -> None:
        """Let the other threads run until this many seconds have passed, or `wake` is called."""
        with self._turns:
            this = self._register(seconds)
            self._next()
            self._turns.wait_for(lambda: self._running is this)

    def wake(self) -> None:
        """Let every thread run that waits for others."""
        for thread, (until, _) in self._until.items():
            if until == math.inf:
                self._until[thread] = self.now, next(self._order)

    def _run(self, task: Callable[[], object]) -> None:
        with self._turns:
            this = self._register(0.0)
            self._turns.notify_all()
            self._turns.wait_for(lambda: self._running is this)
        try:
            task()
        finally:
            with self._turns:
                self._next()

    def _register(self, seconds: float) -> object:
        this = object()
        self._until[this] = self.now + seconds, next(self._order)
        return this

    def _next(self) -> None:
        if self._until:
            self._running = min(self._until, key=self._until.__getitem__)
            self.now = max(self.now, self._until.pop(self._running)[0])
            assert self.now < math.inf, "every thread waits for another"
        self._turns.notify_all()


class Changed(threading.Condition):
    """What a throttle waits on, by a clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    @override
    def wait(self, timeout: float | None = None) -> bool:
        held = self._release_save()  # type: ignore[attr-defined]
        self._clock.sleep(math.inf if timeout is None else timeout)
        self._acquire_restore(held)  # type: ignore[attr-defined]
        return True

    @override
    def notify_all(self) -> None:
        self._clock.wake()


@dataclass
class Api:
    """An API behind a limiter, and a run that reads its jobs.

    Attributes:
        limiter: Counts the requests.
        reject_with: Status of a rejection, and headers, in which `{}` becomes the whole seconds
            until a retry can succeed.
        bad: The status of each job that is always refused, by name.
        delays: Seconds to the server and back, in turn.
        limit: Requests per period that the run expects.
        period: Seconds.
        seen: Target and status of each request, in the order of arrival.
        fetched: Jobs whose detail arrived.
        refused: Jobs whose detail is refused, as the client says.
    """

    limiter: Limiter
    reject_with: tuple[int, dict[str, str]] = (403, {})
    bad: dict[str, int] = field(default_factory=dict)
    delays: list[tuple[float, float]] = field(default_factory=lambda: [(0.15, 0.15)])
    limit: int = 60
    period: float = 60.0
    clock: Clock = field(default_factory=Clock)
    seen: list[tuple[str, int]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    throttle: Throttle = field(init=False)

    def __post_init__(self) -> None:
        self._delay = itertools.cycle(self.delays)

    def run(self, jobs: int, threads: int = 16, tries: int | None = None, pages: int = 1) -> float:
        """Read pages and the details; return how long that takes.

        Args:
            jobs: How many.
            threads: How many at once.
            tries: Of each detail.
            pages: How many.
        """
        started = self.clock.now
        self.throttle = Throttle(
            self.limit,
            self.period,
            clock=lambda: self.clock.now,
            epoch=lambda: self.clock.now,
            changed=Changed(self.clock),
        )
        session = Session(self.throttle, threads, {"x-api-key": "a-key"}, "http://api")
        client = PublicJobsClient(session, "http://api", page_size=100, timeout=10.0)
        left = iter([f"job-{number}" for number in range(jobs)])

        def fetch() -> None:
            for name in left:
                try:
                    client.detail(JobRef(name, name), tries)
                    self.fetched.append(name)
                except RequestError:
                    self.refused.append(name)

        pauses = mock.patch("time.sleep", self.clock.sleep)  # between tries
        with mock.patch.object(HTTPAdapter, "send", self._send), pauses, session:
            self.clock.run(lambda: [client.page(1 + it) for it in range(pages)], 1)
            self.clock.run(fetch, threads)
        return self.clock.now - started

    def _send(self, request: PreparedRequest, **_: Any) -> Response:
        there, back = next(self._delay)
        self.clock.sleep(there)
        response, wait = Response(), self.limiter.hit(self.clock.now)
        response.url = str(request.url)
        name = response.url.rpartition("/")[2]
        status, headers = (self.bad.get(name, 200), {}) if wait is None else self.reject_with
        response.status_code = status
        response.headers.update({k: it.format(math.ceil(wait or 0)) for k, it in headers.items()})
        body = json.dumps({"id": name, "data": []}).encode()
        response.raw = HTTPResponse(io.BytesIO(body), preload_content=False)
        self.seen.append((name, status))
        self.clock.sleep(back)
        return response
