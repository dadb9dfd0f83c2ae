"""What all streams share on the wire, and how to read what comes over it."""

from __future__ import annotations

import json
import socket
import ssl
from decimal import Decimal, InvalidOperation
from functools import cached_property
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import requests
from typing_extensions import override

from tap_public_jobs.throttle import Throttle, ThrottledAdapter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tap_public_jobs.report import Report


class _Session(requests.Session):
    @override
    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Never look where a redirect points: none is followed, and some point nowhere."""
        return None


class Connection:
    """What all streams of a run share on the wire: one throttle, and one session behind it.

    Args:
        config: The tap's settings.
        report: Counts the retries.

    Attributes:
        reached: Whether the API has answered yet. Until it has, some faults mean that `base_url` is
            wrong, and trying again does not mend them.
    """

    def __init__(self, config: Mapping[str, Any], report: Report) -> None:
        self.report = report
        self.reached = False
        self._config = config

    @cached_property
    def throttle(self) -> Throttle:
        """The budget of the key."""
        return Throttle(
            self._config["rate_limit_requests"], self._config["rate_limit_period_seconds"]
        )

    @cached_property
    def session(self) -> requests.Session:
        """The session; every attempt it makes goes through the throttle."""
        session = _Session()
        adapter = ThrottledAdapter(
            self.throttle, connections=self._config["max_concurrent_requests"]
        )
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        # Plain http is for this computer alone, and so not for a proxy.
        session.trust_env = not self._config["base_url"].lower().startswith("http:")
        # `Session.send`, which the SDK calls, leaves REQUESTS_CA_BUNDLE unread.
        environment = session.merge_environment_settings(
            self._config["base_url"], {}, None, None, None
        )
        session.verify = environment["verify"]
        # The API knows no cookies, and the jar is the one part that threads would share.
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return session


def json_object(body: bytes) -> dict[str, Any] | None:
    """Read a JSON object, numbers as `int` or `Decimal`; None if there is none to read."""
    try:
        document = json.loads(
            body,
            parse_float=_decimal,
            parse_int=_integer,
            parse_constant=str,  # NaN is not JSON; as text it fits no number, but is not lost
        )
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _decimal(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond any number; as text it is not lost
        return text


def _integer(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:  # more digits than Python reads into an int
        return Decimal(text)


def root_cause(error: BaseException) -> BaseException:
    """Undo the nesting of requests and urllib3, whose own messages name objects in memory."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def lasting(cause: BaseException) -> str | None:
    """Say what is wrong if another try would meet the same."""
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
        return "there is no such host"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}; for an authority of your "
            "own, set REQUESTS_CA_BUNDLE)"
        )
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak https"
    return None
