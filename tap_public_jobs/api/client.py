"""The two operations of the API: what is requested, what a response means, what is retried."""

from __future__ import annotations

import logging
import random
import threading
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import backoff
import requests

from tap_public_jobs.api.body import Bodies, Body, BodyError
from tap_public_jobs.api.faults import lasting_fault, root_cause
from tap_public_jobs.api.models import Detail, JobRef, Page
from tap_public_jobs.api.urls import host_of, path_of, path_segment
from tap_public_jobs.errors import (
    AccessError,
    NetworkError,
    NotFoundError,
    NotTheApiError,
    PageError,
    RequestRefusedError,
    RetriesExhaustedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Json = Any

logger = logging.getLogger(__name__)

API_PATH = "/api/public/v1"
"""The version is part of the path (API page, "Versioning")."""

MAX_TRIES = 8
FIRST_WAIT = 0.5
"""Seconds before the second try; doubled for each further one, about a minute in all."""

REMEDY_KEY = (
    "The API refused the key (401): it is mistyped, revoked, or for another environment. Create a "
    "new one in the portal under Settings → Integrations → API keys and set api_key, or the "
    "variable TAP_PUBLIC_JOBS_API_KEY."
)
REMEDY_PLAN = (
    "The key is valid, but the plan of its organisation does not include the public API (403). "
    "Ask the organisation to add it, or set api_key to the key of another organisation."
)


_WRONG_PROXY = (
    requests.exceptions.InvalidProxyURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
)
"""What requests raises for the address of a proxy; `base_url` has been checked before."""


class FaultError(Exception):
    """A try failed, but another one may succeed."""


class PublicJobsClient:
    """The Public Jobs API over HTTP. Its methods may be called from any thread.

    Args:
        session: Sends the requests, authenticated and throttled.
        base_url: Where the API is, without `API_PATH`.
        page_size: Jobs per page of the list.
        timeout: Seconds to connect, and to wait for each part of a response.
        on_retry: Called before each further try of a request.
    """

    def __init__(
        self,
        session: requests.Session,
        base_url: str,
        *,
        page_size: int,
        timeout: float,
        on_retry: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._url = base_url.rstrip("/") + API_PATH
        self._page_size = page_size
        self._timeout = timeout
        self._on_retry = on_retry
        # Separate, so that a page never waits for a detail to be written.
        self._pages, self._details = Bodies(), Bodies()
        # Until the API has answered once, some faults mean that base_url is wrong.
        self._has_answered = False
        self._checking_key = threading.Lock()
        self._key_error: AccessError | None = None

    def page(self, number: int) -> Page:
        """Fetch one page of the list.

        Args:
            number: Counted from 1.

        Raises:
            PublicJobsError: The list cannot be read.
        """
        url = f"{self._url}/jobs"
        query = urlencode({"page": number, "pageSize": self._page_size})
        try:
            body, envelope = self._fetch(f"{url}?{query}", _is_page, self._pages)
            self._pages.release(body)
        except RetriesExhaustedError as error:
            msg = (
                f"The list of jobs cannot be read: {error}, after {MAX_TRIES} tries. Check "
                "base_url and the network, or run again later."
            )
            raise PageError(msg) from error
        except (NotFoundError, RequestRefusedError) as error:
            if number > 1:
                msg = f"Page {number} of the list of jobs cannot be read: {error}."
                raise PageError(msg) from error
            if isinstance(error, NotFoundError):
                raise NotTheApiError(url, "the response is 404") from error
            if error.status < HTTPStatus.BAD_REQUEST:
                raise NotTheApiError(url, f"it redirects ({error.status})") from error
            msg = f"The list of jobs cannot be read: {error}. Check base_url and page_size."
            raise PageError(msg) from error
        size = _count(envelope, "pageSize") or self._page_size
        return Page(envelope["data"], size, _count(envelope, "total"))

    def detail(self, job: JobRef) -> Detail:
        """Fetch the detail of one job.

        Raises:
            NotFoundError: The job is not published, or its publicId now belongs to another job.
            RequestRefusedError: The API refuses this request.
            RetriesExhaustedError: All tries failed.
            PublicJobsError: The run cannot continue.
        """
        url = f"{self._url}/jobs/{path_segment(job.public_id)}"
        try:
            body, document = self._fetch(url, lambda it: _is_detail(it, job), self._details)
        except AccessError as error:
            self._refuse_if_key_is_refused()
            path, status = path_of(url), error.status
            msg = f"{path}: the response is {status}, although the key can read the list"
            raise RequestRefusedError(msg, status) from error
        key = document.get("id")
        if isinstance(key, str) and key != job.id:
            self._details.release(body)
            del body, document  # otherwise the traceback of the error keeps them in memory
            msg = f"the publicId {job.public_id!r} now belongs to another job"
            raise NotFoundError(msg)
        return Detail(document, body.size, partial(self._details.release, body))

    def _refuse_if_key_is_refused(self) -> None:
        """Request the list, to find out whether the API refuses the key or a single job."""
        with self._checking_key:
            if self._key_error is None:
                try:
                    self.page(1)
                except AccessError as error:
                    self._key_error = error
            if self._key_error:
                raise self._key_error

    def _fetch(
        self, url: str, is_expected: Callable[[dict[str, Json]], bool], bodies: Bodies
    ) -> tuple[Body, dict[str, Json]]:
        """Request one JSON object, up to `MAX_TRIES` times.

        Args:
            url: Sent as it is.
            is_expected: Whether an object has the expected shape.
            bodies: Reads the body.

        Returns:
            The body, to be released, and its object.
        """

        def attempt() -> tuple[Body, dict[str, Json]]:
            body = self._send(url, bodies)
            if body.document is not None and is_expected(body.document):
                self._has_answered = True
                return body, body.document
            bodies.release(body)
            is_web_page = body.is_web_page
            del body  # otherwise the traceback of an exception keeps it in memory
            if is_web_page and not self._has_answered:
                raise NotTheApiError(url, "the response is a web page")
            msg = f"{path_of(url)}: the response is not the expected JSON"
            raise FaultError(msg)

        retrying = backoff.on_exception(
            backoff.expo,
            FaultError,
            max_tries=MAX_TRIES,
            factor=FIRST_WAIT,
            jitter=_jitter,
            on_backoff=self._log_retry,
            logger=None,
        )
        try:
            response: tuple[Body, dict[str, Json]] = retrying(attempt)()
        except FaultError as error:
            raise RetriesExhaustedError(str(error)) from error
        return response

    def _send(self, url: str, bodies: Bodies) -> Body:
        prepared = self._session.prepare_request(requests.Request("GET", url))
        # requests decodes %2E%2E to "..", which the next hop reads as the parent folder.
        prepared.url = url
        try:
            with self._session.send(
                prepared, stream=True, allow_redirects=False, timeout=self._timeout
            ) as response:
                self._check_status(response, url)
                return bodies.read(response)
        except BodyError as error:
            msg = f"{path_of(url)}: {error}"
            raise FaultError(msg) from error
        except requests.RequestException as error:
            raise self._fault(error, url) from error
        except OSError as error:  # what requests raises if the bundle is missing
            msg = f"The certificates in REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE are missing: {error}"
            raise NetworkError(msg) from error

    def _check_status(self, response: requests.Response, url: str) -> None:
        """Raise what a status means (API page, "Errors")."""
        status = response.status_code
        if status == HTTPStatus.OK:
            return
        if status == HTTPStatus.UNAUTHORIZED:
            raise AccessError(REMEDY_KEY, status)
        if status == HTTPStatus.FORBIDDEN:
            raise AccessError(REMEDY_PLAN, status)
        msg = f"{path_of(url)}: the response is {status} {self._quote(response.reason)}".rstrip()
        if status == HTTPStatus.NOT_FOUND:
            raise NotFoundError(msg)
        if 300 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:  # noqa: PLR2004
            raise RequestRefusedError(msg, status)
        raise FaultError(msg)

    def _fault(self, error: requests.RequestException, url: str) -> Exception:
        cause = root_cause(error)
        what = f"{type(cause).__name__}: {self._quote(cause)}"
        if isinstance(error, _WRONG_PROXY):
            msg = f"A proxy cannot be used ({what}). Check HTTPS_PROXY and ALL_PROXY."
            return NetworkError(msg)
        if isinstance(error, requests.exceptions.ProxyError):
            msg = f"The proxy for {host_of(url)} cannot be used ({what}). Check HTTPS_PROXY."
            return FaultError(msg) if self._has_answered else NetworkError(msg)
        if not self._has_answered and (lasting := lasting_fault(cause, host_of(url))):
            return NotTheApiError(url, lasting)
        return FaultError(f"{host_of(url)}{path_of(url)}: {what}")

    def _log_retry(self, details: Mapping[str, Any]) -> None:
        self._on_retry()
        logger.warning(
            "Try %d of %d failed: %s. Trying again in %.1f seconds.",
            details["tries"],
            MAX_TRIES,
            details["exception"],
            details["wait"],
        )

    def _quote(self, text: object) -> str:
        """Quote a server's words, which may be long, have many lines, or repeat the key."""
        key = getattr(self._session.auth, "key", "")
        words = " ".join(str(text).split())
        return (words.replace(key, "***") if key else words)[:200]


def _is_page(document: dict[str, Json]) -> bool:
    return isinstance(document.get("data"), list)


def _is_detail(document: dict[str, Json], job: JobRef) -> bool:
    # Which fields a detail always has is not documented (API page, "Job detail").
    return isinstance(document.get("id"), str) or document.get("publicId") == job.public_id


def _count(envelope: dict[str, Json], name: str) -> int | None:
    value = envelope.get(name)
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value < 0:
        return None
    return int(value) if value == int(value) else None


def _jitter(wait: float) -> float:
    return wait * random.uniform(0.75, 1.25)  # noqa: S311  # spreads retries, hides nothing
