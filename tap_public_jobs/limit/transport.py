"""The HTTP session of a run: sends each request when the throttle allows it, while it has tries."""

import logging
import math
import random
import threading
import zlib
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from http import HTTPStatus
from os import environ
from time import gmtime, monotonic, strftime
from typing import NamedTuple

import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from typing_extensions import override
from urllib3.exceptions import HTTPError

from tap_public_jobs.errors import NotFoundError, RejectedError, RequestError
from tap_public_jobs.limit.body import BodyError, Json, read_object
from tap_public_jobs.limit.network import describe
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.limit.verdict import (
    FEW_TRIES,
    MAX_TRIES,
    Absent,
    Answer,
    Fault,
    Rejection,
    Verdict,
    judge,
)
from tap_public_jobs.lines import shortened

logger = logging.getLogger(__name__)

# A request that the limit rejects this often in a row has failed.
MAX_REJECTIONS = 10

# Seconds before the second try at most, and twice as many before each further one; the real ones
# are drawn at random, and take about a minute in all.
FIRST_WAIT = 1.0

# A body may take this many times the read timeout, which is for each part of it alone.
DEADLINE = 10

# Seconds. Load balancers and firewalls forget connections that are idle for some 30 or more.
LONGEST_IDLE = 5.0


class Query(NamedTuple):
    """What to request.

    Attributes:
        url: Sent as it is, with its percent-encoding.
        is_expected: Whether an object has the expected shape.
        absent: The statuses that answer that there is no such thing; empty if that is no answer.
    """

    url: str
    is_expected: Callable[[dict[str, Json]], bool]
    absent: Collection[int] = ()


class Session(requests.Session):
    """A session that sends when the throttle allows it, and again what fails or is rejected.

    Its methods may be called from any thread.

    Args:
        throttle: The limit that all requests share.
        connections: Connections kept open at once.
        headers: Of every request, such as the one that carries the key.
        base_url: Where requests go. Plain http is for this computer alone, so it uses no proxy.
        timeout: Seconds to connect, and to wait for each part of a response.

    Attributes:
        key_has_worked: Whether the server has answered this key, in this run or in an earlier one.
            Until it has, some faults probably mean that a setting is wrong.
        retries: Further tries of requests that failed.
    """

    def __init__(
        self,
        *,
        throttle: Throttle,
        connections: int,
        headers: Mapping[str, str],
        base_url: str,
        timeout: float,
    ) -> None:
        super().__init__()
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=connections)
        self.mount("https://", adapter)
        self.mount("http://", adapter)
        self.stream = True
        self.auth = lambda request: request  # else .netrc would replace the key
        self.headers["Accept"] = "application/json"
        self.headers["Accept-Encoding"] = "gzip"  # servers disagree on what deflate is
        self.headers.update(headers)
        self.trust_env = not base_url.lower().startswith("http:")
        # `send` takes proxies from the environment, but not these.
        self.verify = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or True
        self.key_has_worked = False
        self.retries = 0
        self._base_url = base_url
        self._timeout = timeout
        self._throttle = throttle
        self._lock = threading.Lock()
        self._active_at = monotonic()

    @override
    def get_redirect_target(self, resp: Response) -> str | None:
        """Return none: requests reads the body of a redirect whole, even if it follows none."""
        return None

    def fetch(self, query: Query, tries: int = MAX_TRIES) -> dict[str, Json]:
        """Request one JSON object, and again after each fault, while it has tries left.

        Args:
            query: What to request.
            tries: How often it may fail. Rejections do not count.

        Raises:
            NotFoundError: The server answers that there is no such thing.
            RejectedError: The limit rejected it `MAX_REJECTIONS` times in a row.
            RequestError: All tries failed.
        """
        number, earliest = 0, -math.inf
        while isinstance(came := self._accepted(query, earliest), Fault):
            number += 1
            most = min(tries, came.tries)
            if number >= most:
                msg = f"{came.why}, after {number} tries"
                raise RequestError(msg, came.status)
            wait = random.uniform(0, FIRST_WAIT * 2 ** (number - 1))  # noqa: S311  # no secret
            line = "Try %d of %d failed: %s. Trying again in %.1f s."
            logger.warning(line, number, most, came.why, wait)
            with self._lock:
                self.retries += 1
            earliest = self._throttle.clock() + wait
        return came

    def _accepted(self, query: Query, earliest: float) -> dict[str, Json] | Fault:
        """Send a request, and again after each rejection.

        Args:
            query: What to request.
            earliest: When to send it at the earliest, by the throttle's clock.
        """
        throttle, number, rejected_at = self._throttle, 0, math.inf
        while isinstance(came := self._attempt(query, earliest, rejected_at), Rejection):
            number += 1
            if number == MAX_REJECTIONS:
                raise RejectedError(came.why, came.status)
            # Others go first, more of them each time.
            earliest = throttle.resumes_at + (number - 1) * throttle.seconds_each
            rejected_at = throttle.clock()
        return came

    def _attempt(
        self, query: Query, earliest: float, rejected_at: float
    ) -> dict[str, Json] | Rejection | Fault:
        """Send a request once, and read what comes back.

        Args:
            query: What to request.
            earliest: When to send it at the earliest, by the throttle's clock.
            rejected_at: When it was rejected before; infinity if it was not.
        """
        where = place(query.url)
        # ValueError and TypeError: requests cannot read an odd address of a proxy.
        try:
            request = self._get(query.url)
            sent = self._throttle.acquire(earliest)
            with self._send(request) as response:
                verdict = self._judge(response, where, query.absent)
                self._learn(sent, verdict, rejected_at)
                if isinstance(verdict, Absent):
                    raise NotFoundError(verdict.why, verdict.status)
                if not isinstance(verdict, Answer):
                    return verdict
                document = read_object(response, DEADLINE * self._timeout)
        except (BodyError, OSError, TypeError, ValueError, HTTPError, zlib.error) as error:
            said, reason = describe(error)
            if not reason:
                return Fault(f"{where}: {type(error).__name__}: {said}")
            why = f"{query.url.split('/')[2]} cannot be reached, because {reason}"
            return Fault(f"{why} ({said})" if said else why, tries=self._tries_at_first)
        if document is not None and query.is_expected(document):
            self.key_has_worked = True
            return document
        if document is None and "html" in response.headers.get("Content-Type", ""):
            return Fault(f"{where}: the response is a web page", 200, self._tries_at_first)
        return Fault(f"{where}: the response is not the expected JSON")

    @property
    def _tries_at_first(self) -> int:
        """Tries if the address is probably wrong, unless it has been right before."""
        return MAX_TRIES if self.key_has_worked else FEW_TRIES

    def _send(self, request: PreparedRequest) -> Response:
        if monotonic() > self._active_at + LONGEST_IDLE:
            self.close()  # connections in use stay open for their responses
        self._active_at = monotonic()
        try:
            return self.send(request, timeout=self._timeout)
        except BaseException:
            self._throttle.unanswered()
            raise

    def _judge(self, response: Response, where: str, absent: Collection[int]) -> Verdict:
        status, reason = response.status_code, shortened(response.reason or "", 200)
        return judge(
            f"{where}: the response is {status} {reason}".rstrip(),
            status,
            response.headers,
            absent=absent,
            key_has_worked=self.key_has_worked,
        )

    def _learn(self, sent: float, verdict: Verdict, rejected_at: float) -> None:
        """Let the throttle learn from a response, and log what is new."""
        throttle = self._throttle
        if isinstance(verdict, Rejection):
            pacing = throttle.rejected(sent, verdict.wait, again_since=rejected_at)
            log_pacing(throttle, verdict.status, pacing)
        elif isinstance(verdict, Fault) and verdict.may_be_limit:
            log_pacing(throttle, verdict.status, throttle.answered(sent, is_doubtful=True))
        else:
            throttle.answered(sent)

    def _get(self, url: str) -> PreparedRequest:
        request = self._any_get.copy()
        # requests decodes %2E%2E to "..", which the next hop reads as the parent folder.
        request.url = url
        if self.cookies:  # as of a load balancer that sends each client to one server
            request.prepare_cookies(self.cookies)
        return request

    @cached_property
    def _any_get(self) -> PreparedRequest:
        """A request to copy: to prepare each anew takes as long as to read its response."""
        return self.prepare_request(requests.Request("GET", self._base_url))


def log_pacing(throttle: Throttle, status: int | None, pacing: tuple[float, float] | None) -> None:
    """Log that the limit rejected a request, or may have, and how the run continues.

    Args:
        throttle: Knows the time.
        status: The HTTP status.
        pacing: What the throttle returned: the seconds of the pause, 0 if the response may have
            been a fault, and those between two requests after it; None if there is no news.
    """
    if pacing is None:
        return
    pause, interval = pacing
    verb = "is" if status == HTTPStatus.TOO_MANY_REQUESTS else "may be"
    until = strftime("%H:%M:%S UTC", gmtime(throttle.epoch() + pause))
    sends = f"Pausing until {until} ({pause:,.1f} s), then sending" if pause else "Sending"
    line = (
        "The API answered %d, which %s its rate limit. %s at most one request every %.3g s. No "
        "action is needed; if every run logs this, another client may be using this key."
    )
    logger.warning(line, status, verb, sends, interval)


def place(url: str) -> str:
    """Return the host, the path and the query of a URL, for a message."""
    return shortened(url.partition("://")[2], 300)
