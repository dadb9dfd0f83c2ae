"""The state of a sandbox: organisations, jobs, keys, planned faults, and the request log."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable
from random import Random
from typing import Self

from public_jobs_sandbox.faults import KINDS
from public_jobs_sandbox.limits import ALGORITHMS, Limiter
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.organisations import Organisation
from public_jobs_sandbox.postings import Job, make_jobs
from public_jobs_sandbox.webhooks import Event, Webhooks


@dataclasses.dataclass
class SeenRequest:
    """A request as received, and its outcome.

    Attributes:
        number: Its position in the log, starting at 1.
        time: When it arrived, by the sandbox's clock.
        method: The HTTP method.
        path: The path as sent, still percent-encoded.
        query: The decoded query parameters.
        headers: The headers, with names in lower case.
        counted: When the rate limit allowed or rejected it; None if it was refused before.
        organisation: The organisation of its key; None unless the key was accepted.
        fault: The kind of fault that it met, if any.
        status: The status of the response; None if there was none.
    """

    number: int
    time: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    counted: float | None = None
    organisation: str | None = None
    fault: str | None = None
    status: int | None = None


Selector = str | Callable[[SeenRequest], bool]
"""Requests that a fault hits: a part of their path, or a function that returns true for them."""


@dataclasses.dataclass
class _PlannedFault:
    kind: str
    times: int | None
    path: Selector | None

    def hits(self, request: SeenRequest) -> bool:
        if callable(self.path):
            return self.path(request)
        return self.path is None or self.path in request.path


class Sandbox:
    """The data behind the API, which tests may change while it is served.

    A new sandbox has one organisation, `Halden Robotics`, without jobs.
    Methods without a parameter for the organisation use this one, and `key` is its key.
    Any thread may call any method while the sandbox is served.

    Args:
        options: How to behave where the API page says "not shown".
        clock: Returns seconds, for the rate limit and the request log.
        seed: Determines keys, delays and shuffled lists.

    Attributes:
        organisations: Every organisation by its name.
        requests: Every request of the API so far, first to last.
        webhooks: Sends the changes made by `publish`, `edit` and `unpublish` to a receiver.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        seed: int = 1,
    ) -> None:
        self._options = options or Options()
        self.clock = clock
        self.random = Random(seed)  # noqa: S311 - keys that open nothing but this sandbox
        self.organisations: dict[str, Organisation] = {}
        self.requests: list[SeenRequest] = []
        self.webhooks = Webhooks(seed=seed)
        self._changing = threading.Lock()
        self._keys: dict[str, Organisation] = {}
        self._limiters: dict[str, Limiter] = {}
        self._faults: list[_PlannedFault] = []
        self._changes: dict[int, list[Callable[[], object]]] = {}
        self.organisation = self.add_organisation("Halden Robotics")

    @classmethod
    def demo(
        cls,
        jobs: int = 120,
        *,
        seed: int = 1,
        options: Options | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Make a sandbox with `jobs` published jobs, and with data that its key must not see.

        For every ten published jobs there is an unpublished one.
        Another organisation has its own jobs (`Osprey Health`).
        The plan of a third one does not include the API (`Lumen Books`).
        """
        sandbox = cls(options, clock=clock, seed=seed)
        hidden = max(1, jobs // 10)
        for number, job in enumerate(make_jobs(jobs + hidden, seed=seed)):
            sandbox.organisation.publish(job)
            if number >= jobs:
                sandbox.organisation.unpublish(job["publicId"])
        for name, plan_includes_api in (("Osprey Health", True), ("Lumen Books", False)):
            sandbox.add_organisation(
                name,
                make_jobs(15, seed=seed, organisation=name),
                plan_includes_api=plan_includes_api,
            )
        return sandbox

    @property
    def options(self) -> Options:
        """How the sandbox behaves; assigning options resets the rate limits."""
        return self._options

    @options.setter
    def options(self, options: Options) -> None:
        self._options = options
        self._limiters = {}

    @property
    def key(self) -> str:
        """An API key that works."""
        return self.organisation.key

    def add_organisation(
        self, name: str, jobs: Iterable[Job] = (), *, plan_includes_api: bool = True
    ) -> Organisation:
        """Add an organisation with published jobs and its own key (*Authentication*)."""
        organisation = Organisation(name, plan_includes_api=plan_includes_api)
        for job in jobs:
            organisation.publish(job)
        self.organisations[name] = organisation
        self.add_key(name)
        return organisation

    def add_key(self, organisation: str | None = None) -> str:
        """Create and return another key for an organisation (*Authentication*, 2)."""
        owner = self.organisations[organisation] if organisation else self.organisation
        owner.key = f"pj_{self.random.getrandbits(160):040x}"
        self._keys[owner.key] = owner
        return owner.key

    def revoke(self, key: str) -> None:
        """Revoke a key: the next request with it gets 401 (*Authentication*, 5)."""
        del self._keys[key]

    def publish(self, job: Job | str) -> None:
        """Publish a job or a new version of it; a publicId publishes an unpublished job again."""
        with self._changing:
            public_id = job if isinstance(job, str) else job["publicId"]
            is_known = self.organisation.find(public_id) is not None
            self.organisation.publish(job)
            self._send("job.updated" if is_known else "job.published", public_id)

    def unpublish(self, public_id: str) -> None:
        """Hide a job from the API (*States and transitions*)."""
        with self._changing:
            self.organisation.unpublish(public_id)
            self._send("job.unpublished", public_id)

    def edit(self, public_id: str, **fields: object) -> None:
        """Change some fields of a job."""
        with self._changing:
            self.organisation.edit(public_id, **fields)
            self._send("job.updated", public_id)

    def _send(self, name: str, public_id: str) -> None:
        """Send an event; the caller holds the lock, which keeps events in the order of changes."""
        event = Event(name, self.organisation.postings[public_id].job)
        self.webhooks.send(event, self._options)

    def fail_next(self, kind: str, times: int | None = 1, path: Selector | None = None) -> None:
        """Plan a fault for the next requests.

        Requests with a bad key or over the rate limit meet no fault and use none up.
        Requests that meet a fault count towards the rate limit.

        Args:
            kind: One of `KINDS`.
            times: How many requests it hits; None for all until `recover`.
            path: Which requests it hits; all by default.
        """
        if kind not in KINDS:
            message = f"Unknown fault {kind!r}: use one of {sorted(KINDS)}"
            raise ValueError(message)
        self._faults.append(_PlannedFault(kind, times, path))

    def fail_every(self, kind: str, n: int) -> None:
        """Plan a fault for every n-th request with a valid key and within the rate limit."""
        due = iter(range(1, 1 << 62))
        self.fail_next(kind, times=None, path=lambda _: next(due) % n == 0)

    def recover(self) -> None:
        """Drop all planned faults."""
        self._faults = []

    def at_request(self, n: int, change: Callable[[], object]) -> None:
        """Run `change` just before the sandbox handles the n-th request (`SeenRequest.number`)."""
        self._changes.setdefault(n, []).append(change)

    def see(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str]
    ) -> SeenRequest:
        """Log a request that has arrived, and make the changes planned before it."""
        number = len(self.requests) + 1
        request = SeenRequest(number, self.clock(), method, path, query, headers)
        self.requests.append(request)
        for change in self._changes.pop(number, ()):
            change()
        return request

    def owner_of(self, key: str | None) -> Organisation | None:
        """Return the organisation of a key, or None if the key is missing, malformed or revoked."""
        return self._keys.get(key) if key else None

    def count(self, request: SeenRequest, key: str) -> float | None:
        """Count a request for its key's rate limit (*Limits*).

        Returns:
            None if the request is allowed, otherwise the seconds until a retry can succeed.
        """
        request.counted = self.clock()
        if not self._options.limited:
            return None
        limiter = self._limiters.get(key)
        if limiter is None:
            make_limiter = ALGORITHMS[self._options.limit_algorithm]
            limiter = make_limiter(self._options.limit_requests, self._options.limit_period)
            self._limiters[key] = limiter
        return limiter.hit(request.counted)

    def take_fault(self, request: SeenRequest) -> str | None:
        """Return the kind of the first planned fault that hits this request, and count it."""
        for fault in self._faults:
            if fault.hits(request):
                if fault.times is not None:
                    fault.times -= 1
                    if not fault.times:
                        self._faults.remove(fault)
                request.fault = fault.kind
                return fault.kind
        return None
