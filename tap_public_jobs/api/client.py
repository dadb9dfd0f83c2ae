"""The two operations of the API: what is requested, what a response means, what is retried.

Each question about a response is decided in one place. Is it a rejection for the rate limit?
`transport` repeats the request when the throttle allows it. Is it a fault, which may pass? Then
`_check_head` and `_fault` say so, and `_fetch` tries again. What does it mean for the run if no try
succeeds? `page` and `detail` say that, by the errors that they raise.
"""

import logging
import math
import re
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from urllib.parse import quote

import backoff
from requests import Response
from urllib3.exceptions import HTTPError

from tap_public_jobs.errors import NotFoundError, PageError, PublicJobsError, RequestError
from tap_public_jobs.limit.body import BodyError, read_object
from tap_public_jobs.limit.network import why_unreachable
from tap_public_jobs.limit.transport import MAX_SENDS, Session, is_rejection, place
from tap_public_jobs.lines import quoted, shortened
from tap_public_jobs.sync.source import MAX_TRIES, ONCE, JobRef, Json, Page

logger = logging.getLogger(__name__)

# The version is part of the path (API page, "Versioning").
API_PATH = "/api/public/v1"

# The headers that can carry the key, and how (API page, "Authentication", rule 3).
AUTH_HEADERS = {"Authorization": "Bearer {}", "x-api-key": "{}"}

# A body may take this many times the read timeout, which is for each part of it alone.
DEADLINE = 10

# Seconds before the second try at most, and twice as many before each further one; the real ones
# are drawn at random, and take about a minute in all.
FIRST_WAIT = 1.0

REMEDIES = {
    401: "Nothing more is loaded until you act. The API refused the key (401). Compare "
    "TAP_PUBLIC_JOBS_API_KEY in .env with the key that you were given; if it is right, create a "
    "new one in the portal under Settings → Integrations → API keys.",
    403: "Nothing more is loaded. The API answered 403. If this key never worked, the "
    "organisation's plan lacks the public API: ask for it. If it worked before, another client may "
    "use up the rate limit: use one key per integration, or lower rate_limit_requests.",
}
REMEDY_LIMIT = (
    "The tables are right, but not up to date. The API rejected a request "
    f"{MAX_SENDS} times in a row: {{}}. If it is not down for maintenance, another client may be "
    "using this key: use one key per integration, or lower rate_limit_requests. The next run "
    "resumes."
)
REMEDY_PAGE = (
    "The tables are right, but not up to date. Page {} of the list of jobs cannot be read: {}. If "
    "the API is down, no action is needed: the next run resumes. If it is up, check base_url and "
    "the network, or lower page_size if the body is too large."
)


class _FaultError(RequestError):
    """A try failed, but another one may succeed."""


class _RejectedError(RequestError):
    """The rate limit rejected every attempt."""


@dataclass
class PublicJobsClient:
    """The Public Jobs API over HTTP. Its methods may be called from any thread.

    Attributes:
        session: Sends the requests, authenticated and throttled.
        base_url: Where the API is, without `API_PATH`.
        page_size: Jobs per page of the list.
        timeout: Seconds to connect, and to wait for each part of a response.
        withheld: Fields that no answer has for the rest of the tap.
        retries: Further tries of requests that failed.
    """

    session: Session
    base_url: str
    page_size: int
    timeout: float
    withheld: frozenset[str] = frozenset()
    retries: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _key_checked_at: float = -math.inf  # when a refused detail last asked for page 1

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}{API_PATH}/jobs"

    def page(self, number: int) -> Page:
        """Fetch one page of the list.

        Args:
            number: Counted from 1.

        Raises:
            PageError: It cannot be read.
            PublicJobsError: The run cannot continue.
        """
        try:
            envelope = self._fetch(
                self._page_url(number), lambda page: isinstance(page.get("data"), list)
            )
        except RequestError as error:
            if isinstance(error, _RejectedError):
                raise PublicJobsError(REMEDY_LIMIT.format(error)) from error
            if error.status in REMEDIES:
                raise PublicJobsError(REMEDIES[error.status]) from error
            is_redirect = error.status in range(300, 400)
            if number == 1 and (is_redirect or isinstance(error, NotFoundError)):
                raise _not_the_api(error) from error
            msg = REMEDY_PAGE.format(number, error)
            raise PageError(msg, error.status) from error
        size = _count(envelope, "pageSize") or self.page_size
        items = [self._known(it) if isinstance(it, dict) else it for it in envelope["data"]]
        return Page(items, size, _count(envelope, "total"))

    def detail(self, job: JobRef, tries: int = MAX_TRIES) -> dict[str, Json]:
        """Fetch the detail of one job; numbers are `int` or `Decimal`.

        Args:
            job: With an empty id, whichever job has the publicId.
            tries: Of a request that fails; `ONCE` if it is expected to.

        Raises:
            NotFoundError: The job is not published, or its publicId now belongs to another job.
            RequestError: The API refuses this request, or all its tries failed.
            PublicJobsError: The run cannot continue.
        """
        url = f"{self._url}/{_path_segment(job.public_id)}"
        began = time.monotonic()
        try:
            document = self._fetch(
                url, lambda detail: _is_detail(detail, job), tries, witness=self._page_url(1)
            )
        except RequestError as error:
            if error.status in REMEDIES:  # for the key, or for this job alone
                self._check_key(began)
            raise
        job_id = document.get("id")
        if job.id and isinstance(job_id, str) and job_id != job.id:
            msg = f"the publicId {quoted(job.public_id)} now belongs to another job"
            raise NotFoundError(msg)
        return self._known(document)

    def _known(self, document: dict[str, Json]) -> dict[str, Json]:
        return {name: it for name, it in document.items() if name not in self.withheld}

    def _check_key(self, since: float) -> None:
        """Ask for page 1, unless it has been asked for since; details are refused many at once.

        Raises:
            PublicJobsError: The key is refused.
        """
        with self._lock:
            if self._key_checked_at >= since:
                return  # if the key is refused, the one who asks ends the run
            self._key_checked_at = time.monotonic()
        self.page(1)

    def _page_url(self, number: int) -> str:
        return f"{self._url}?page={number}&pageSize={self.page_size}"

    def _fetch(
        self,
        url: str,
        is_expected: Callable[[dict[str, Json]], bool],
        tries: int = MAX_TRIES,
        *,
        witness: str = "",
    ) -> dict[str, Json]:
        """Request one JSON object.

        Args:
            url: Sent as it is.
            is_expected: Whether an object has the expected shape.
            tries: As for `detail`.
            witness: As for `Session.send`, a URL.
        """
        once = tries == ONCE
        send = partial(self.session.fetch, url, self.timeout, witness=witness, once=once)
        retrying = backoff.on_exception(
            backoff.expo,
            _FaultError,
            max_tries=tries,
            factor=FIRST_WAIT,
            on_backoff=lambda details: self._log_retry(details | {"of": tries}),
            logger=None,
        )
        try:
            document: dict[str, Json] = retrying(self._try)(url, send, is_expected)
        except _FaultError as error:
            msg = str(error) if once else f"{error}, after {tries} tries"
            raise RequestError(msg, error.status) from error
        self.session.has_answered = True
        return document

    def _try(
        self,
        url: str,
        send: Callable[[], Response],
        is_expected: Callable[[dict[str, Json]], bool],
    ) -> dict[str, Json]:
        try:
            with send() as response:
                self._check_head(response)
                document = read_object(response, DEADLINE * self.timeout)
            if document is not None and is_expected(document):
                return document
            document = None  # as below: the traceback holds it
            fault: Exception = _FaultError(f"{place(url)}: the response is not the expected JSON")
        # ValueError and TypeError: requests cannot read an odd address of a proxy.
        except (BodyError, OSError, TypeError, ValueError, HTTPError, zlib.error) as error:
            fault = self._fault(error, url)
        raise fault  # outside of `except`: the traceback of a `BodyError` holds the body

    def _check_head(self, response: Response) -> None:
        """Raise an error for each status but 200 (API page, "Errors")."""
        status, where = response.status_code, place(response.url)
        if status == HTTPStatus.OK:
            if not self.session.has_answered and "html" in response.headers.get("Content-Type", ""):
                msg = f"{where}: the response is a web page"
                raise _not_the_api(msg)
            return
        reason = shortened(response.reason or "", 200)
        msg = f"{where}: the response is {status} {reason}".rstrip()
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
            raise NotFoundError(msg, status)
        if is_rejection(response):
            raise _RejectedError(msg, status)
        may_pass = status == HTTPStatus.REQUEST_TIMEOUT or self.session.may_be_limit(status)
        if 300 <= status < 500 and not may_pass:  # noqa: PLR2004
            raise RequestError(msg, status)
        raise _FaultError(msg, status)

    def _fault(self, error: Exception, url: str) -> Exception:
        cause: BaseException = error
        # The innermost cause: the messages of requests and urllib3 name objects in memory. Behind a
        # proxy, urllib3 keeps what it wraps only as an argument.
        while inner := cause.__cause__ or cause.__context__ or _wrapped(cause):
            cause = inner
        # One line, without the password of a proxy.
        said = shortened(re.sub("//.*@", "//…@", " ".join(str(cause).split())), 200)
        if why := why_unreachable(error, cause, has_answered=self.session.has_answered):
            host = url.split("/")[2]
            # An address that is wrong may have a password in any part.
            quoted_cause = "" if isinstance(error, ValueError) else f" ({said})"
            msg = f"Nothing was loaded: {host} cannot be reached, because {why}{quoted_cause}"
            return PublicJobsError(msg)
        return _FaultError(f"{place(url)}: {type(error).__name__}: {said}")

    def _log_retry(self, details: Mapping[str, Json]) -> None:
        with self._lock:
            self.retries += 1
        line = "Try %(tries)d of %(of)d failed: %(exception)s. Trying again in %(wait).1f s."
        logger.warning(line, details)


def _wrapped(error: BaseException) -> BaseException | None:
    return next((each for each in error.args if isinstance(each, BaseException)), None)


def _not_the_api(why: object) -> PublicJobsError:
    return PublicJobsError(
        "Nothing more is loaded until you act. base_url does not look like the Public Jobs API: "
        f"{why}. Set base_url to the part of the address before {API_PATH}."
    )


def _path_segment(public_id: str) -> str:
    """Encode a string as one segment of a path (RFC 3986, section 3.3).

    A segment of only dots would be read as this folder or its parent.
    """
    encoded = quote(public_id, safe="")
    return encoded.replace(".", "%2E") if not encoded.strip(".") else encoded


def _is_detail(document: dict[str, Json], job: JobRef) -> bool:
    # Which fields a detail always has is not documented (API page, "Job detail").
    return isinstance(document.get("id"), str) or document.get("publicId") == job.public_id


def _count(envelope: dict[str, Json], name: str) -> int | None:
    """Return a whole number up to a billion; None if there is none."""
    value = envelope.get(name)
    if isinstance(value, str) and value.isdecimal() and len(value) < 11:  # noqa: PLR2004
        value = int(value)  # some databases count as text
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return int(value) if 0 <= value <= 10**9 and value == int(value) else None
