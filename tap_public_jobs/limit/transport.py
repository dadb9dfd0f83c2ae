"""The HTTP session of a run: authentication, the throttle, and which answers are rejections."""

import logging
import math
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from os import environ
from time import gmtime, monotonic, strftime
from typing import Any

import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from typing_extensions import override
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.lines import shortened

logger = logging.getLogger(__name__)

# Requests for one that the rate limit rejects, those for its witness included.
MAX_SENDS = 10

# Seconds. No limit per minute needs a longer pause; a larger Retry-After is ignored as a mistake.
LONGEST_RETRY_AFTER = 3600.0

# Seconds. Load balancers and firewalls forget connections that are idle for some 30 or more.
LONGEST_IDLE = 5.0


class Session(requests.Session):
    """A session that sends when the throttle allows it, and repeats what the rate limit refuses.

    Args:
        throttle: The limit that all requests share.
        connections: Connections kept open at once.
        headers: Of every request, such as the one that carries the key.
        base_url: Where requests go. Plain http is for this computer alone, so it uses no proxy.

    Attributes:
        has_answered: Whether the API has ever answered this key, which the client notes. Until it
            has, some faults mean that a setting is wrong; after that, they may pass.
    """

    def __init__(
        self,
        *,
        throttle: Throttle,
        connections: int,
        headers: Mapping[str, str],
        base_url: str,
        has_answered: bool = False,
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
        self.has_answered = has_answered
        self._base_url = base_url
        self._throttle = throttle
        self._active_at = monotonic()

    @override
    def get_redirect_target(self, resp: Response) -> str | None:
        """Return none: requests reads the body of a redirect whole, even if it follows none."""
        return None

    @override
    def send(
        self,
        request: PreparedRequest,
        *,
        witness: str = "",
        once: bool = False,
        **kwargs: Any,
    ) -> Response:
        """Send a request when the throttle allows it, and again while the rate limit rejects it.

        If it is rejected again although another request has been answered since, that is its own
        fault: the throttle learns nothing from it, and no other request waits for it.

        Args:
            request: What to send.
            witness: The URL of what the API answers if the limit has room. If no other request has
                been answered since the rejection, it is sent before the request is sent again.
            once: The request is expected to fail: a rejection is its own fault, and ends it.
            **kwargs: As requests takes them.

        Returns:
            The last response to the request, whose body is yet to be read.
        """
        throttle = self._throttle
        earliest, rejected_at = -math.inf, math.inf
        most = 1 if once else MAX_SENDS
        for number in range(1, most + 1):
            sent = throttle.acquire(earliest)
            others_work = throttle.has_answered_since(rejected_at)
            if witness and number > 1 and not others_work:
                self._exchange(self._get(witness), sent, kwargs).close()
                wait = 0.0
            else:
                response = self._exchange(request, sent, kwargs, is_own=others_work or once)
                if not is_rejection(response):
                    break
                response.close()
                rejected_at = throttle.clock()
                wait = retry_after(response.headers) or 0.0
            if witness:
                # Others go first, because what becomes of them shows whose fault it is. Each time
                # it waits longer, so that the limit has more room than the witness found.
                earliest = throttle.clock() + wait + number * throttle.seconds_each
        return response

    def _exchange(
        self,
        request: PreparedRequest,
        sent: float,
        options: Mapping[str, Any],
        *,
        is_own: bool = False,
    ) -> Response:
        """Send a request once, and let the throttle learn from the response.

        Args:
            request: What to send.
            sent: When the throttle allowed it.
            options: As requests takes them.
            is_own: Whether a rejection is this request's own fault.
        """
        throttle = self._throttle
        if monotonic() > self._active_at + LONGEST_IDLE:
            self.close()  # connections in use stay open for their responses
        self._active_at = monotonic()
        try:
            response = super().send(request, **options)
        except BaseException:
            throttle.unanswered()
            raise
        status = response.status_code
        if is_rejection(response):
            wait = retry_after(response.headers)
            has_answered = throttle.has_answered_since(-math.inf)
            if status == HTTPStatus.TOO_MANY_REQUESTS and has_answered:
                # After an answer an interval is enough, if the limit allows no bursts. If it is
                # not, the next pause is a whole period.
                wait = wait or 0.0
            pacing = throttle.rejected(sent, wait, is_own=is_own)
        else:
            pacing = throttle.answered(sent, is_doubtful=self.may_be_limit(status))
        log_pacing(throttle, status, pacing)
        return response

    def may_be_limit(self, status: int) -> bool:
        """Return whether a response that is no rejection may be one: a 403 or a 503 without more.

        They are the default of some limits. But of a key that never worked, a 403 is about the key.
        """
        is_forbidden = status == HTTPStatus.FORBIDDEN
        return status == HTTPStatus.SERVICE_UNAVAILABLE or (is_forbidden and self.has_answered)

    def fetch(self, url: str, timeout: float, *, witness: str = "", once: bool = False) -> Response:
        """Send a GET to a URL as it is.

        Args:
            url: With its percent-encoding.
            timeout: Seconds to connect, and to wait for each part of the response.
            witness: As for `send`.
            once: As for `send`.
        """
        return self.send(self._get(url), witness=witness, once=once, timeout=timeout)

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


def log_pacing(throttle: Throttle, status: int, pacing: tuple[float, float] | None) -> None:
    """Log that the API rejected a request, or may have, and how the run continues.

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


def is_rejection(response: Response) -> bool:
    """Return whether a response says "too many requests".

    The status of a rejection is not documented (API page, "Errors"). The tap takes it to be 429,
    any client error or 503 that says when to try again, or 403 or 503 when no request is left.
    401, 404 and 410 are answers about the key and the job, whatever headers a gateway adds.
    """
    status, headers = response.status_code, response.headers
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return False
    left = headers.get("RateLimit-Remaining", headers.get("X-RateLimit-Remaining"))
    return (
        status == HTTPStatus.TOO_MANY_REQUESTS
        or (left == "0" and status in {403, 503})
        or ("Retry-After" in headers and (status in range(400, 500) or status == 503))  # noqa: PLR2004
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asks to wait, and add one: some servers round down.

    Returns:
        None if the header is absent or makes no sense: neither digits nor a date, or longer than
        `LONGEST_RETRY_AFTER`.
    """
    try:
        seconds = Retry().parse_retry_after(headers.get("Retry-After", ""))
    except (InvalidHeader, OverflowError, ValueError):
        return None
    return seconds + 1 if seconds <= LONGEST_RETRY_AFTER else None
