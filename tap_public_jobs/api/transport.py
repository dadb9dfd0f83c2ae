"""The HTTP session of a run: authentication, deadlines, and the throttle before the network."""

from __future__ import annotations

import io
import logging
import time
from http import HTTPStatus
from http.client import HTTPResponse
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from typing_extensions import override
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tap_public_jobs.api.throttle import MAX_REJECTIONS, is_rejection, retry_after
from tap_public_jobs.errors import RateLimitedError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from _typeshed import WriteableBuffer
    from requests import PreparedRequest, Response

    from tap_public_jobs.api.throttle import Throttle

logger = logging.getLogger(__name__)

DEADLINE = 10
"""A response may take this many times the read timeout in total, however steadily it arrives."""


class KeyAuth(AuthBase):
    """Sends the API key in one of the two headers (API page, "Authentication", rule 3)."""

    def __init__(self, key: str, header: str) -> None:
        self.key = key
        self._header = header
        self._value = key if header == "x-api-key" else f"Bearer {key}"

    @override
    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers[self._header] = self._value
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
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    @override
    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **proxy_kwargs)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    @override
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send a request; the caller never sees a rejection.

        Raises:
            RateLimitedError: The request was rejected `MAX_REJECTIONS` times in a row.
        """
        for _ in range(MAX_REJECTIONS):
            sent = self._throttle.acquire()
            try:
                response = super().send(request, *args, **kwargs)
            except BaseException:
                self._throttle.answered(sent)
                raise
            if not is_rejection(response):
                self._throttle.answered(sent)
                return response
            if pacing := self._throttle.rejected(sent, retry_after(response.headers)):
                self._on_pacing(*pacing)
            response.close()
        msg = (
            f"The API rejected {request.path_url} for the rate limit {MAX_REJECTIONS} times in a "
            "row: another client may be using this key. Use one key per integration, or lower "
            "rate_limit_requests."
        )
        raise RateLimitedError(msg)


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket, and raises `TimeoutError` once the deadline has passed."""

    def __init__(self, raw: io.RawIOBase, deadline: float) -> None:
        self._raw = raw
        self._deadline = deadline

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: WriteableBuffer) -> int | None:
        if time.monotonic() > self._deadline:
            msg = "the response took too long in total"
            raise TimeoutError(msg)
        return self._raw.readinto(buffer)

    @override
    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineSocket:
    """The part of a socket that `http.client` reads a response from."""

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self._sock = sock
        self._deadline = time.monotonic() + seconds

    def makefile(self, mode: str) -> io.BufferedReader:
        raw: Any = self._sock.makefile(mode, buffering=0)  # type: ignore[call-overload]
        return io.BufferedReader(_DeadlineReader(raw, self._deadline))


class _FinalResponse(HTTPResponse):
    """Reads past interim responses (RFC 9110, section 15.2); the base class skips only 100.

    Otherwise the final response would be read as that of the next request on the connection.
    """

    @override
    def begin(self) -> None:
        super().begin()
        while self.status < HTTPStatus.OK:
            self.headers = None  # type: ignore[assignment]  # the base class reads only once
            super().begin()


def _limit_response(connection: HTTPConnection) -> None:
    """Set a deadline for the whole of the next response, headers included.

    The read timeout of a socket restarts with each byte.
    """
    seconds = DEADLINE * (connection.timeout or 0)

    def response(sock: socket.socket, *args: Any, **kwargs: Any) -> HTTPResponse:  # noqa: ANN401
        limited: Any = _DeadlineSocket(sock, seconds)
        return _FinalResponse(limited, *args, **kwargs)

    connection.response_class = response  # type: ignore[assignment]


class _Connection(HTTPConnection):
    @override
    def getresponse(self) -> Any:
        _limit_response(self)
        return super().getresponse()


class _SecureConnection(HTTPSConnection):
    @override
    def getresponse(self) -> Any:
        _limit_response(self)
        return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


_POOLS = {"http": _Pool, "https": _SecurePool}
