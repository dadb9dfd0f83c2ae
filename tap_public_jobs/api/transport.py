"""The HTTP session of a run: authentication, and the throttle before the network."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from time import gmtime, monotonic, strftime
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from typing_extensions import override
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from requests import PreparedRequest, Response

    from tap_public_jobs.api.throttle import Throttle

logger = logging.getLogger(__name__)

# How often one request is sent while it is rejected for the rate limit.
MAX_REJECTIONS = 10

# Seconds. No limit per minute needs a longer pause; a larger Retry-After is an error.
LONGEST_RETRY_AFTER = 3600.0

# Seconds. Load balancers and firewalls forget connections that are idle for some 30 or more.
LONGEST_IDLE = 5.0

# The headers that can carry the key, and how (API page, "Authentication", rule 3).
AUTH_HEADERS = {"Authorization": "Bearer {}", "x-api-key": "{}"}


@dataclass
class KeyAuth(AuthBase):
    """Sends the API key in one of `AUTH_HEADERS`."""

    key: str = field(repr=False)
    header: str

    @override
    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers[self.header] = AUTH_HEADERS[self.header].format(self.key)
        return request


class Session(requests.Session):
    """A session that follows no redirect and sends through one adapter.

    Args:
        adapter: Sends every request.
        auth: Authenticates every request.
        user_agent: The User-Agent header.
        base_url: Where requests go. Plain http is for this computer alone, so it uses no proxy.
    """

    def __init__(
        self, adapter: HTTPAdapter, auth: AuthBase, user_agent: str, base_url: str
    ) -> None:
        super().__init__()
        self.mount("https://", adapter)
        self.mount("http://", adapter)
        self.auth = auth
        self.headers.update({"User-Agent": user_agent, "Accept": "application/json"})
        self.headers["Accept-Encoding"] = "gzip, deflate"  # not what else requests finds installed
        self.trust_env = not base_url.lower().startswith("http:")
        # `send` takes proxies from the environment, but not REQUESTS_CA_BUNDLE.
        self.verify = self.merge_environment_settings(base_url, {}, None, None, None)["verify"]

    @override
    def get_redirect_target(self, resp: Response) -> str | None:
        """Return none: requests reads the body of a redirect whole, even if it follows none."""
        return None


class ThrottledAdapter(HTTPAdapter):
    """Sends each request when the throttle allows it, and again for as long as it is rejected.

    Args:
        throttle: The limit that all requests of this adapter share.
        connections: Connections kept open at once.
    """

    def __init__(self, throttle: Throttle, connections: int) -> None:
        self._throttle = throttle
        self._key_works = throttle.held_slots() is not None  # it was answered in the last run
        self._is_403_a_limit = False
        self._active_at = monotonic()
        super().__init__(pool_connections=1, pool_maxsize=connections)

    @override
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send a request; the caller sees only the last of `MAX_REJECTIONS` rejections."""
        was_403 = False
        for _ in range(MAX_REJECTIONS):
            sent = self._throttle.acquire()
            if monotonic() > self._active_at + LONGEST_IDLE:
                self.close()  # connections in use stay open for their responses
            self._active_at = monotonic()
            try:
                response = super().send(request, *args, **kwargs)
            except BaseException:
                self._throttle.answered()
                raise
            status = response.status_code
            if is_rejected := is_rejection(response) or self._may_reject(status, sent, was_403):
                pacing = self._throttle.rejected(sent, retry_after(response.headers))
            else:
                pacing = self._throttle.answered(is_doubtful=status == 503)  # noqa: PLR2004
            if pacing:
                self._log_pacing(status, *pacing)
            if not is_rejected:
                break
            was_403 = status == HTTPStatus.FORBIDDEN
            response.close()
        return response

    def _log_pacing(self, status: int, pause: float, interval: float) -> None:
        """Log that the API rejected a request, or may have, and how the run continues.

        Args:
            status: The HTTP status.
            pause: Seconds; 0 if the response may have been a fault.
            interval: Seconds between two requests after the pause.
        """
        verb = "is" if status == HTTPStatus.TOO_MANY_REQUESTS else "may be"
        until = strftime("%H:%M:%S UTC", gmtime(self._throttle.epoch() + pause))
        sends = f"Pausing until {until} ({pause:,.1f} s), then sending" if pause else "Sending"
        line = (
            "The API answered %d, which %s its rate limit. Likely causes: another run or client of "
            "this key, or a limit without bursts. %s at most one request every %.3g seconds."
        )
        logger.warning(line, status, verb, sends, interval)

    def _may_reject(self, status: int, sent: float, was_403: bool) -> bool:  # noqa: FBT001
        """Return whether a status that says nothing of a limit may mean a rejection.

        Some servers reject with 403. If the key has worked, requests that are answered so are sent
        again, until one is answered, and 403 is known to mean a rejection, or until the throttle
        has nothing more to learn from rejections, and 403 is a refusal.
        """
        if status == HTTPStatus.OK:
            self._key_works = True
            self._is_403_a_limit |= was_403
        if status != HTTPStatus.FORBIDDEN or not self._key_works:
            return False
        return self._is_403_a_limit or self._throttle.can_learn_from(sent)


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
