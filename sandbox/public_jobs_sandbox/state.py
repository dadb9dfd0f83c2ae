"""The state of a sandbox: organisations, jobs, keys, planned faults, and the request log."""

import dataclasses
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterable
from random import Random
from typing import Self

import requests
from starlette.types import ASGIApp

from public_jobs_sandbox.faults import KINDS
from public_jobs_sandbox.limits import ALGORITHMS, Limiter
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import Job, make_jobs, summary

WEBHOOK_TIMEOUT = 5.0


class PortalPosting:
    """A job and its publication flag (*States and transitions*)."""

    def __init__(self, job: Job, *, is_published: bool = True) -> None:
        self.job = job
        self.is_published = is_published

    def summary_json(self) -> bytes:
        """Return the job as an element of the list (*Job summary*)."""
        return _to_json(summary(self.job))

    def detail_json(self) -> bytes:
        """Return the job as the detail operation returns it (*Job detail*)."""
        return _to_json(self.job)


def _to_json(value: object) -> bytes:
    """Return compact JSON, with numbers as short as Python writes them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")  # half a surrogate pair becomes a JSON escape


class Organisation:
    """An organisation: its postings by publicId, its latest key, and what its plan includes."""

    def __init__(self, name: str, *, plan_includes_api: bool) -> None:
        self.name = name
        self.plan_includes_api = plan_includes_api
        self.key = ""
        self.postings: dict[str, PortalPosting] = {}

    def publish(self, job: Job | str) -> str:
        """Publish a job or a new version of it; a publicId publishes an unpublished job again."""
        job = self.postings[job].job if isinstance(job, str) else job
        public_id: str = job["publicId"]
        self.postings[public_id] = PortalPosting(job)
        return public_id

    def unpublish(self, public_id: str) -> None:
        """Hide a job from both operations."""
        self.postings[public_id].is_published = False

    def edit(self, public_id: str, **fields: object) -> None:
        """Change some fields of a job; perhaps its publicId."""
        posting = self.postings[public_id]
        edited = PortalPosting(posting.job | fields, is_published=posting.is_published)
        self.postings[public_id] = edited
        if (other := edited.job["publicId"]) != public_id:  # in its place of the list
            self.postings = {
                other if it is edited else key: it for key, it in self.postings.items()
            }

    def published(self) -> list[PortalPosting]:
        """Return the postings that are public, in the order of their first publication."""
        # The copy is atomic, so another thread may publish a job during the iteration.
        return [posting for posting in list(self.postings.values()) if posting.is_published]

    def find(self, public_id: str) -> PortalPosting | None:
        """Return the posting with this publicId if it is public."""
        posting = self.postings.get(public_id)
        return posting if posting and posting.is_published else None


@dataclasses.dataclass
class SeenRequest:
    """A request as received, and its outcome.

    Attributes:
        time: When it arrived, by the sandbox's clock.
        method: The HTTP method.
        path: The path as sent, still percent-encoded.
        query: The decoded query parameters.
        headers: The headers, with names in lower case.
        organisation: The organisation of its key; None unless the key was accepted.
        status: The status of the response; None if there was none.
    """

    time: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    organisation: str | None = None
    status: int | None = None


# Requests that a fault hits: a part of their path, or a function that returns true for them.
Selector = str | Callable[[SeenRequest], bool]


@dataclasses.dataclass
class _PlannedFault:
    fault: ASGIApp
    times: float
    path: Selector

    def hits(self, request: SeenRequest) -> bool:
        if self.times <= 0:
            return False
        return self.path(request) if callable(self.path) else self.path in request.path


class Sandbox:
    """The data behind the API, which tests may change while it is served.

    A new sandbox has one organisation, `Halden Robotics`, without jobs.
    Methods without a parameter for the organisation use this one, and `key` is its key.
    Any thread may call any method while the sandbox is served.

    Args:
        options: How to behave where the API page says "not shown".
        clock: Returns seconds, for the rate limit and the request log.
        seed: Determines keys and delays.

    Attributes:
        organisations: Every organisation by its name.
        requests: Every request of the API so far, first to last.
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
        self.add_key(organisation)
        return organisation

    def add_key(self, organisation: Organisation | None = None) -> str:
        """Create and return another key (*Authentication*, 2)."""
        owner = organisation or self.organisation
        owner.key = f"pj_{self.random.getrandbits(160):040x}"
        self._keys[owner.key] = owner
        return owner.key

    def revoke(self, key: str) -> None:
        """Revoke a key: the next request with it gets 401 (*Authentication*, 5)."""
        del self._keys[key]

    def publish(self, job: Job | str) -> None:
        """Publish a job or a new version of it; a publicId publishes an unpublished job again."""
        with self._changing:
            self._send_webhook(self.organisation.publish(job))

    def unpublish(self, public_id: str) -> None:
        """Hide a job from the API (*States and transitions*)."""
        with self._changing:
            self.organisation.unpublish(public_id)
            self._send_webhook(public_id)

    def edit(self, public_id: str, **fields: object) -> None:
        """Change some fields of a job."""
        with self._changing:
            self.organisation.edit(public_id, **fields)
            self._send_webhook(public_id)

    def edit_all(self, edit: Callable[[Job], Job]) -> None:
        """Change some fields of all published jobs, as `reworded`, `moved` or `renamed` do."""
        for posting in self.organisation.published():
            if fields := edit(posting.job):
                self.edit(posting.job["publicId"], **fields)

    def _send_webhook(self, public_id: str) -> None:
        """Send a webhook about a change (*Events*), and raise if it does not arrive."""
        if self._options.webhook_url is None:
            return
        with requests.Session() as session:
            session.trust_env = False  # no proxy between the sandbox and its receiver
            response = session.post(
                self._options.webhook_url,
                json={"event": "job.changed", "publicId": public_id},
                timeout=WEBHOOK_TIMEOUT,
            )
        response.raise_for_status()

    def fail_next(self, kind: str, times: int | None = 1, path: Selector = "") -> None:
        """Plan a fault for the next requests.

        Requests with a bad key or over the rate limit get no fault, and use none up.
        Requests that get a fault count towards the rate limit.

        Args:
            kind: One of `KINDS`.
            times: How many requests it hits; None for all.
            path: Which requests it hits; all by default.
        """
        number = math.inf if times is None else times
        self._faults.append(_PlannedFault(KINDS[kind], number, path))

    def fail_every(self, kind: str, n: int) -> None:
        """Plan a fault for every n-th request with a valid key and within the rate limit."""
        numbers = itertools.count(1)
        self.fail_next(kind, times=None, path=lambda _: next(numbers) % n == 0)

    def at_request(self, n: int, change: Callable[[], object]) -> None:
        """Run `change` just before the sandbox handles the n-th request."""
        self._changes.setdefault(n, []).append(change)

    def see(
        self, method: str, path: str, query: dict[str, str], headers: dict[str, str]
    ) -> SeenRequest:
        """Log a request that has arrived, and make the changes planned before it."""
        request = SeenRequest(self.clock(), method, path, query, headers)
        self.requests.append(request)
        for change in self._changes.pop(len(self.requests), ()):
            change()
        return request

    def owner_of(self, key: str) -> Organisation | None:
        """Return the organisation of a key, or None if the key is missing, malformed or revoked."""
        return self._keys.get(key)

    def count(self, key: str) -> float | None:
        """Count a request for its key's rate limit (*Limits*).

        Returns:
            None if the request is allowed, otherwise the seconds until a retry can succeed.
        """
        options = self._options
        if not options.limited:
            return None
        if key not in self._limiters:
            make_limiter = ALGORITHMS[options.limit_algorithm]
            self._limiters[key] = make_limiter(options.limit_requests, options.limit_period)
        return self._limiters[key].hit(self.clock())

    def take_fault(self, request: SeenRequest) -> ASGIApp | None:
        """Return the first planned fault that hits this request, and count it."""
        for planned in self._faults:
            if planned.hits(request):
                planned.times -= 1
                return planned.fault
        return None
