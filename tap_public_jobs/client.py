"""The HTTP side of every stream: URLs, authentication, classes of answers, retries."""

from __future__ import annotations

import logging
import random
from functools import cached_property
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import requests
from singer_sdk import RESTStream
from singer_sdk.authenticators import (
    APIAuthenticatorBase,
    APIKeyAuthenticator,
    BearerTokenAuthenticator,
)
from singer_sdk.exceptions import RetriableAPIError
from typing_extensions import override

from tap_public_jobs.connection import json_object, lasting, root_cause
from tap_public_jobs.errors import (
    AccessError,
    NotFoundError,
    NotTheApiError,
    RequestRefusedError,
)
from tap_public_jobs.settings import API_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from singer_sdk import Tap
    from singer_sdk.streams.rest import HTTPRequest

    from tap_public_jobs.connection import Connection

MAX_TRIES = 8
FIRST_WAIT = 0.5
"""Seconds before the second try; doubled for each further one, about a minute in all."""

REMEDY_KEY = (
    "The API refused the key (401): it is mistyped, revoked, or of another environment. Create a "
    "new one in the portal under Settings → Integrations → API keys and set api_key, or the "
    "variable TAP_PUBLIC_JOBS_API_KEY."
)
REMEDY_PLAN = (
    "The key is valid, but the plan of its organisation does not include the public API (403). "
    "Ask the organisation to add it, or set api_key to the key of another organisation."
)


class PublicJobsStream(RESTStream[int]):
    """A stream of the Public Jobs API.

    Args:
        tap: The tap.
        connection: Shared by all streams of the run.
    """

    # A redirect would carry `x-api-key` to wherever it points.
    allow_redirects = False

    def __init__(self, tap: Tap, connection: Connection) -> None:
        super().__init__(tap)
        self.connection = connection
        self.report = connection.report

    @property
    @override
    def url_base(self) -> str:
        base_url: str = self.config["base_url"]
        return base_url.rstrip("/") + API_PATH

    @cached_property
    @override
    def authenticator(self) -> APIAuthenticatorBase:
        key = self.config["api_key"]
        if self.config["auth_header"] == "x-api-key":
            return APIKeyAuthenticator(key="x-api-key", value=key)
        return BearerTokenAuthenticator(token=key)

    @property
    @override
    def http_headers(self) -> dict[str, str]:
        return {"Accept": "application/json"}

    @cached_property
    @override
    def user_agent(self) -> str:
        return self.config.get("user_agent") or f"tap-public-jobs/{version('tap-public-jobs')}"

    @property
    @override
    def requests_session(self) -> requests.Session:
        return self.connection.session

    @property
    @override
    def timeout(self) -> int:
        return self.config["request_timeout_seconds"]  # type: ignore[no-any-return]

    def fetch(
        self, request: HTTPRequest, *, is_answer: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """Ask for one JSON object, as many times as it takes.

        Args:
            request: The request; its `url` is sent as it is.
            is_answer: Tells whether an object is what was asked for.

        Returns:
            The object, with numbers as `int` or `Decimal`, exact to the last digit.

        Raises:
            PublicJobsError: The run cannot go on.
            NotFoundError: The API answered 404.
            RequestRefusedError: The API answered another status of its caller's fault.
            RetriableAPIError: All tries failed, the last one like this.
        """

        def attempt() -> dict[str, Any]:
            response = self._send(request)
            document = json_object(response.content)
            if document is None or not is_answer(document):
                msg = f"{response.request.path_url}: the answer is not the JSON that was asked for"
                raise RetriableAPIError(msg, response)
            self.connection.reached = True
            return document

        # Typed for functions that return a response, and good for any.
        retrying: Any = self.request_decorator
        document: dict[str, Any] = retrying(attempt)()
        return document

    @override
    def validate_response(self, response: requests.Response) -> None:
        """Sort answers by what follows from them (API page, "Errors").

        Raises:
            AccessError: 401 or 403.
            NotTheApiError: A web page instead of the first answer.
            NotFoundError: 404.
            RequestRefusedError: Another status from 300 to 499.
            RetriableAPIError: Anything else but 200.
        """
        status = response.status_code
        if status == HTTPStatus.OK:
            if not self.connection.reached and response.content.lstrip().startswith(b"<"):
                raise NotTheApiError(str(response.request.url), "the answer is a web page")
            return
        if status == HTTPStatus.UNAUTHORIZED:
            raise AccessError(REMEDY_KEY)
        if status == HTTPStatus.FORBIDDEN:
            raise AccessError(REMEDY_PLAN)
        if status == HTTPStatus.NOT_FOUND:
            raise NotFoundError
        reason = self._quote(response.reason)
        msg = f"{response.request.path_url}: the answer is {status} {reason}"
        if 300 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:  # noqa: PLR2004
            raise RequestRefusedError(msg, status)
        raise RetriableAPIError(msg, response)

    @override
    def backoff_wait_generator(self) -> Generator[float, None, None]:
        wait = FIRST_WAIT
        yield 0.0  # what the generator is started with
        while True:
            yield wait
            wait *= 2

    @override
    def backoff_max_tries(self) -> int:
        return MAX_TRIES

    @override
    def backoff_jitter(self, value: float) -> float:
        return value * random.uniform(0.75, 1.25)  # noqa: S311  # spreads retries, hides nothing

    @override
    def backoff_handler(self, details: Mapping[str, Any]) -> None:
        self.report.count_retry()
        self.log(
            "Try %d of %d failed: %s. Trying again in %.1f seconds.",
            details["tries"],
            MAX_TRIES,
            details["exception"],
            details["wait"],
            level=logging.WARNING,
        )

    def _send(self, request: HTTPRequest) -> requests.Response:
        query = request.encode_params()
        prepared = self.build_prepared_request(
            method=request.method, url=request.url, params=query, headers=request.headers
        )
        # requests reads %2E%2E as "..", and whoever comes next on the way as the folder above.
        prepared.url = f"{request.url}?{query}" if query else request.url
        try:
            # Private to the SDK, and all that sends, measures and validates.
            return self._request(prepared, None)
        except requests.RequestException as error:
            cause = root_cause(error)
            if not self.connection.reached and (what := lasting(cause)):
                raise NotTheApiError(request.url, what) from error
            msg = f"{prepared.path_url}: {type(cause).__name__}: {self._quote(cause)}"
            raise RetriableAPIError(msg) from error

    def _quote(self, text: object) -> str:
        """Quote what a server said, which may be long, of many lines, or repeat the key."""
        return " ".join(str(text).replace(self.config["api_key"], "***").split())[:200]
