"""The HTTP session of a run: authentication, the throttle, and what a refusal means."""

import logging
from collections.abc import Mapping
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

from tap_public_jobs.api.throttle import Throttle
from tap_public_jobs.errors import PublicJobsError, RequestError
from tap_public_jobs.lines import shortened

logger = logging.getLogger(__name__)

# How often one request is sent while it is rejected for the rate limit.
MAX_REJECTIONS = 10

# How often a detail is sent that is refused although page 1 is answered; and a page that is refused
# with a bare 403.
MAX_REFUSALS = 3

REMEDIES = {
    401: "Nothing more is loaded until you act. The API refused the key (401). Compare "
    "TAP_PUBLIC_JOBS_API_KEY in .env with the key that you were given; if it is right, create a "
    "new one in the portal under Settings → Integrations → API keys.",
    403: "Nothing more is loaded. The API answered 403. If this key never worked, the "
    "organisation's plan lacks the public API: ask for it. If it worked before, another client may "
    "use up the rate limit: use one key per integration, or lower rate_limit_requests.",
}
REMEDY_LIMIT = (
    "The tables are right, but not up to date. The API rejected a request for the rate limit "
    f"{MAX_REJECTIONS} times in a row, so another client may be using this key. Use one key per "
    "integration, or lower rate_limit_requests; the next run resumes."
)
# Intervals from the answer to page 1 until a refused detail is sent again; twice as many before the
# last time.
#
# Page 1 waits for two, or more after a burst. The detail waits longer than page 1 did, so that a
# limit rejects page 1 too: if it rejected only the detail, the job would look at fault.
BEFORE_DETAIL = 3

# Seconds. No limit per minute needs a longer pause; a larger Retry-After is ignored as a mistake.
LONGEST_RETRY_AFTER = 3600.0

# Seconds. Load balancers and firewalls forget connections that are idle for some 30 or more.
LONGEST_IDLE = 5.0

# The headers that can carry the key, and how (API page, "Authentication", rule 3).
AUTH_HEADERS = {"Authorization": "Bearer {}", "x-api-key": "{}"}


class Session(requests.Session):
    """A session that sends when the throttle allows it, and repeats what the rate limit refuses.

    Args:
        throttle: The limit that all requests share.
        connections: Connections kept open at once.
        headers: Of every request, such as the one that carries the key.
        base_url: Where requests go. Plain http is for this computer alone, so it uses no proxy.

    Attributes:
        page_1: The URL of the first page of the list, which shows whether the key works.
    """

    page_1 = ""

    def __init__(
        self, throttle: Throttle, connections: int, headers: Mapping[str, str], base_url: str
    ) -> None:
        super().__init__()
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=connections)
        self.mount("https://", adapter)
        self.mount("http://", adapter)
        self.stream = True
        self.auth = lambda request: request  # else .netrc would replace the key
        self.headers["Accept"] = "application/json"
        self.headers["Accept-Encoding"] = "gzip, deflate"  # `body` reads no other
        self.headers.update(headers)
        self.trust_env = not base_url.lower().startswith("http:")
        # `send` takes proxies from the environment, but not these.
        self.verify = environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or True
        self._throttle = throttle
        self._active_at = monotonic()
        self._key_works = throttle.held_slots() is not None  # it was answered in the last run

    @override
    def get_redirect_target(self, resp: Response) -> str | None:
        """Return none: requests reads the body of a redirect whole, even if it follows none."""
        return None

    @override
    def send(self, request: PreparedRequest, **kwargs: Any) -> Response:
        """Send a request once, when the throttle allows it."""
        sent = self._throttle.acquire()
        if monotonic() > self._active_at + LONGEST_IDLE:
            self.close()  # connections in use stay open for their responses
        self._active_at = monotonic()
        try:
            response = super().send(request, **kwargs)
        except BaseException:
            self._throttle.answered(sent)
            raise
        status = response.status_code
        if is_refusal(response):
            wait = retry_after(response.headers)
            if status == HTTPStatus.TOO_MANY_REQUESTS and self._throttle.requests > 1:
                # After an answer an interval is enough, if the limit allows no bursts. If it is
                # not, the next pause is a whole period.
                wait = wait or 0.0
            self._throttle.refused(sent, wait)
        else:
            is_doubtful = status == HTTPStatus.SERVICE_UNAVAILABLE
            pacing = self._throttle.answered(sent, is_doubtful=is_doubtful)
            log_pacing(self._throttle, status, pacing)
        return response

    def fetch(self, url: str, timeout: float, *, is_final: bool = False) -> Response:
        """Request a URL, and again while the rate limit may be why that is refused.

        Args:
            url: Sent as it is.
            timeout: Seconds to connect, and to wait for each part of the response.
            is_final: Whether to take a refused detail for the job's own fault at once, because
                earlier runs have found that it is.

        Returns:
            The response, whose body is yet to be read.

        Raises:
            PublicJobsError: The API refuses the key, or rejects every request (API page,
                "Errors"). No other will be sent.
            RequestError: The API refuses this detail alone.
        """
        try:
            if "?" in url:  # a detail has no query
                return self._page(url, timeout)
            return self._detail(url, timeout, is_final=is_final)
        finally:
            self._throttle.resume()

    def _get(self, url: str, timeout: float) -> Response:
        request = self.prepare_request(requests.Request("GET", url))
        # requests decodes %2E%2E to "..", which the next hop reads as the parent folder.
        request.url = url
        return self.send(request, timeout=timeout)

    def _page(self, url: str, timeout: float) -> Response:
        """Request a page; if it is refused, that is for the limit or the key."""
        for number in range(1, MAX_REJECTIONS + 1):
            response = self._get(url, timeout)
            status = response.status_code
            if not is_refusal(response):
                self._key_works |= status == HTTPStatus.OK
                return response
            response.close()
            is_403 = status == HTTPStatus.FORBIDDEN and self._key_works and number < MAX_REFUSALS
            if number == MAX_REJECTIONS or not (is_403 or is_rejection(response)):
                break
            self._learn(status)
        error = PublicJobsError(REMEDY_LIMIT if is_rejection(response) else REMEDIES[status])
        self._throttle.close(error)
        raise error

    def _detail(self, url: str, timeout: float, *, is_final: bool) -> Response:
        """Request a detail; if it is refused, that is for the limit, the key or only this job.

        Some limits answer 403, and some services answer 429 for a single job. So page 1 is sent
        before the detail is sent again. If page 1 is refused, it is the limit or the key; if the
        detail is answered at last, it was the limit; else it is this job.
        """
        status, doubts = 0, 0
        for number in range(1, MAX_REJECTIONS + 1):
            response = self._get(url, timeout)
            if not is_refusal(response):
                if doubts:
                    self._learn(status, pauses=False)
                return response
            response.close()
            status = response.status_code
            is_last = is_final and not is_rejection(response)
            if number == MAX_REJECTIONS or is_last or doubts == MAX_REFUSALS - 1:
                break
            if self._throttle.is_explained():
                self._learn(status)
            else:
                self._check_key(timeout, doubts)
                doubts += not self._throttle.is_explained()
        msg = f"{place(url)}: the response is {status}, although the key reads the list"
        raise RequestError(msg, status)

    def _check_key(self, timeout: float, doubts: int) -> None:
        """Request page 1, and leave room for the detail after it: the more doubts, the more."""
        self._throttle.hold_back(1)
        with self._page(self.page_1, timeout) as page:
            if page.status_code != HTTPStatus.OK:
                msg = f"page 1 of the list is not answered either ({page.status_code})"
                raise requests.HTTPError(msg)
        self._throttle.hold_back(BEFORE_DETAIL * (1 + doubts))

    def _learn(self, status: int, *, pauses: bool = True) -> None:
        log_pacing(self._throttle, status, self._throttle.limited(pauses=pauses))


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
        "action is needed; if every run logs this, another client is using this key."
    )
    logger.warning(line, status, verb, sends, interval)


def place(url: str) -> str:
    """Return the host, the path and the query of a URL, for a message."""
    return shortened(url.partition("://")[2], 300)


def is_refusal(response: Response) -> bool:
    """Return whether the API refuses a request: for the limit, the key or a single job."""
    return response.status_code in {401, 403} or is_rejection(response)


def is_rejection(response: Response) -> bool:
    """Return whether a response says "too many requests".

    The status of a rejection is not documented (API page, "Errors"). The tap takes it to be 429,
    any client error or 503 that says when to try again, or 403 or 503 when no request is left.
    """
    status, headers = response.status_code, response.headers
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
