"""An API behind a limiter, and the tap's throttle and client before it, in simulated time."""

import io
import itertools
import json
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

from public_jobs_sandbox.limits import ALGORITHMS, Limiter
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from typing_extensions import override
from urllib3 import HTTPResponse

from tap_public_jobs.api.client import PublicJobsClient
from tap_public_jobs.errors import RequestError
from tap_public_jobs.limit.throttle import HeldSlots, Throttle
from tap_public_jobs.limit.transport import Session
from tap_public_jobs.limit.verdict import MAX_TRIES
from tap_public_jobs.sync.source import JobRef


class FakeTime(threading.Condition):
    """What a throttle waits on. One thread runs at a time, so it locks nothing.

    When every thread waits, the time moves on to the end of the first wait.

    Attributes:
        now: Seconds.
        waits: For how long a throttle waited.
    """

    def __init__(self, now: float = 1000.0) -> None:
        super().__init__()
        self.now = now
        self.waits: list[float] = []
        self._random = Random(0)  # noqa: S311  # always the same
        self._turns: list[tuple[float, threading.Event]] = []

    def run(self, task: Callable[[], object], threads: int) -> None:
        """Run a task in several threads to its ends."""

        def run(turn: threading.Event) -> None:
            turn.wait()
            try:
                task()
            finally:
                self._next()

        with ThreadPoolExecutor(threads) as pool:
            runs = [pool.submit(run, self._turn(0.0)) for _ in range(threads)]
            self._next()
            for it in runs:
                it.result()

    def sleep(self, seconds: float) -> None:
        """Let the other threads run until this many seconds have passed."""
        turn = self._turn(seconds)
        self._next()
        turn.wait()
        assert self.now < math.inf, "every thread waits for another"

    @override
    def wait(self, timeout: float | None = None) -> bool:
        seconds = math.inf if timeout is None else timeout
        assert self.now + seconds > self.now, "the throttle asks to be asked again at once"
        self.waits.append(seconds)
        self.sleep(seconds)
        return True

    @override
    def notify_all(self) -> None:
        """Let every thread run that waits for others."""
        self._turns = [(self.now if end == math.inf else end, turn) for end, turn in self._turns]

    @override
    def __enter__(self) -> bool:
        return True

    @override
    def __exit__(self, *_: object) -> None: ...

    def _turn(self, seconds: float) -> threading.Event:
        turn = threading.Event()
        self._turns.append((self.now + seconds, turn))
        return turn

    def _next(self) -> None:
        if self._turns:
            # Those that wait for the same moment go on in any order, as threads do.
            first = min(end for end, _ in self._turns)
            due = [it for it in self._turns if it[0] <= first + 1e-9]
            self.now = max(self.now, first)
            chosen = self._random.choice(due)
            self._turns.remove(chosen)
            chosen[1].set()

    def throttle(self, limit: int = 60, period: float = 60.0, **options: Any) -> Throttle:
        usual: dict[str, Any] = {"clock": lambda: self.now, "epoch": lambda: 0.0, "changed": self}
        return Throttle(limit, period, **usual | options)


@dataclass
class Api:
    """An API behind a limiter and a network with delays, and a run that reads it.

    Attributes:
        algorithm: How the API counts requests; empty for no limit.
        limit: Requests per period that the run expects.
        period: Seconds.
        threads: Of the run.
        delays: Seconds to the server and back, in turn.
        others: Requests per period that another client of the key takes from the limit.
        limiter: Counts the requests, if it is none of `ALGORITHMS`.
        hint: What a rejection says of the seconds until a retry can succeed, for `send`; None if it
            looks like a server that is down.
        reject_with: For `read`, the status of a rejection, and headers, in which `{}` becomes the
            whole seconds until a retry can succeed.
        bad: The status of each job that is always refused, by name.
        offset: Of the clock that shows the time since the epoch.
        counted: When the requests arrived that the limiter accepted.
        rejected: When the others arrived.
        seen: Target and status of each request of `read`, in the order of the responses.
        fetched: Jobs whose detail arrived.
        refused: Jobs whose detail is refused, as the client says.
    """

    algorithm: str = ""
    limit: int = 60
    period: float = 60.0
    threads: int = 16
    delays: list[tuple[float, float]] = field(default_factory=lambda: [(0.15, 0.15)])
    others: int = 0
    limiter: Limiter | None = None
    hint: Callable[[float], float | None] | None = lambda seconds: seconds
    reject_with: tuple[int, dict[str, str]] = (403, {})
    bad: dict[str, int] = field(default_factory=dict)
    time: FakeTime = field(default_factory=lambda: FakeTime(0.0))
    offset: float = 1_800_000_000.0
    counted: list[float] = field(default_factory=list)
    rejected: list[float] = field(default_factory=list)
    seen: list[tuple[str, int]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.algorithm:
            self.limiter = ALGORITHMS[self.algorithm](self.limit - self.others, self.period)
        self._delay = itertools.cycle(self.delays)
        self.start()

    def start(self, held: HeldSlots | None = None) -> None:
        """Begin a run with what the one before held."""
        self.throttle = self.time.throttle(
            self.limit, self.period, held=held, epoch=lambda: self.time.now + self.offset
        )

    def send(self, requests: int) -> None:
        """Send requests through the throttle alone, until all are accepted."""
        left = iter(range(requests))

        def work() -> None:
            for _ in left:
                faults = 0
                sent = self.throttle.acquire()
                while (wait := self._exchange()) is not None:
                    if self.hint:
                        self.throttle.rejected(sent, self.hint(wait))
                    else:
                        self.throttle.answered(sent, is_doubtful=True)
                        faults += 1
                        assert faults < MAX_TRIES
                        self.time.sleep(2**faults / 4)
                    sent = self.throttle.acquire()
                self.throttle.answered(sent)

        if requests:
            self.time.run(work, min(self.threads, requests))

    def read(self, jobs: int, tries: int = MAX_TRIES, pages: int = 1) -> float:
        """Read pages and details with the client; return how long that takes.

        Args:
            jobs: How many.
            tries: Of each detail.
            pages: How many.
        """
        started = self.time.now
        self.start()
        session = Session(
            throttle=self.throttle,
            connections=self.threads,
            headers={"x-api-key": "a-key"},
            base_url="http://api",
            timeout=10.0,
        )
        client = PublicJobsClient(session, "http://api", page_size=100)
        left = iter([f"job-{number}" for number in range(jobs)])

        def fetch() -> None:
            for name in left:
                try:
                    client.detail(JobRef(name, name), tries)
                    self.fetched.append(name)
                except RequestError:
                    self.refused.append(name)

        with mock.patch.object(HTTPAdapter, "send", self._respond), session:
            self.time.run(lambda: [client.page(1 + it) for it in range(pages)], 1)
            self.time.run(fetch, self.threads)
        return self.time.now - started

    def _exchange(self) -> float | None:
        """Take a request to the API and its response back; return what the limiter says."""
        there, back = next(self._delay)
        self.time.sleep(there)
        wait = self.limiter.hit(self.time.now) if self.limiter else None
        (self.counted if wait is None else self.rejected).append(self.time.now)
        self.time.sleep(back)
        return wait

    def _respond(self, request: PreparedRequest, **_: Any) -> Response:
        response, wait = Response(), self._exchange()
        response.url = str(request.url)
        name = response.url.rpartition("/")[2]
        status, headers = (self.bad.get(name, 200), {}) if wait is None else self.reject_with
        response.status_code = status
        response.headers.update({k: it.format(math.ceil(wait or 0)) for k, it in headers.items()})
        body = json.dumps({"id": name, "data": []}).encode()
        response.raw = HTTPResponse(io.BytesIO(body), preload_content=False)
        self.seen.append((name, status))
        return response
