"""The HTTP session of a run: authentication, and the throttle before the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from typing_extensions import override
from urllib3.exceptions import InvalidHeader
from urllib3.util import Retry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from requests import PreparedRequest, Response

    from tap_public_jobs.api.throttle import Throttle

# How often one request is sent while it is rejected for the rate limit.
MAX_REJECTIONS = 10

# Seconds. No limit per minute needs a longer pause; a larger Retry-After is an error.
LONGEST_RETRY_AFTER = 3600.0


@dataclass
class KeyAuth(AuthBase):
    """Sends the API key in one of the two headers (API page, "Authentication", rule 3)."""

    key: str = field(repr=False)
    header: str

    @override
    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        is_plain = self.header == "x-api-key"
        request.headers[self.header] = self.key if is_plain else f"Bearer {self.key}"
        return request


class Session(requests.Session):
    """A session that follows no redirect, keeps no cookie, and sends through one adapter.

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
        # The API knows no cookies, and the jar is the one part that threads would share.
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    @override
    def get_redirect_target(self, resp: Response) -> str | None:
        """Never follow a redirect: it would send the key wherever it points."""
        return None


class ThrottledAdapter(HTTPAdapter):
    """Sends each request when the throttle allows it, and again for as long as it is rejected.

    Args:
        throttle: The limit that all requests of this adapter share.
        connections: Connections kept open at once.
        on_pacing: Called with the seconds of the pause and the seconds between two requests from
            then on, whenever a rejection teaches the throttle to send more slowly.
    """

    def __init__(
        self,
        throttle: Throttle,
        *,
        connections: int,
        on_pacing: Callable[[float, float], None] = lambda *_: None,
    ) -> None:
        self._throttle = throttle
        self._on_pacing = on_pacing
        super().__init__(pool_connections=1, pool_maxsize=connections)

    @override
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send a request; the caller sees only the last of `MAX_REJECTIONS` rejections."""
        for _ in range(MAX_REJECTIONS):
            sent = self._throttle.acquire()
            try:
                response = super().send(request, *args, **kwargs)
            except BaseException:
                self._throttle.answered(sent)
                raise
            if not is_rejection(response):
                self._throttle.answered(sent)
                break
            if pacing := self._throttle.rejected(sent, retry_after(response.headers)):
                self._on_pacing(*pacing)
            response.close()
        return response


def is_rejection(response: Response) -> bool:
    """Return whether a response means "too many requests".

    The status of a rejection is not documented (API page, "Errors"). The tap takes it to be 429,
    or any client error or 503 that says when to try again.
    """
    status = response.status_code
    return status == HTTPStatus.TOO_MANY_REQUESTS or (
        "Retry-After" in response.headers
        and (400 <= status < 500 or status == HTTPStatus.SERVICE_UNAVAILABLE)  # noqa: PLR2004
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asks to wait.

    Returns:
        None if the header is absent or makes no sense: neither digits nor a date, or longer than
        `LONGEST_RETRY_AFTER`.
    """
    try:
        seconds = Retry().parse_retry_after(headers.get("Retry-After", ""))
    except (InvalidHeader, OverflowError, ValueError):
        return None
    return seconds if seconds <= LONGEST_RETRY_AFTER else None
