"""The two operations of the API: what is requested, and what its answers mean for a run.

`limit/` sends each request until it has an answer or is out of tries. The errors that `page` and
`detail` raise then say what a missing answer means for the run.
"""

import math
import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import quote

from tap_public_jobs.errors import (
    NotFoundError,
    PageError,
    RejectedError,
    RequestError,
    TapError,
)
from tap_public_jobs.limit.transport import MAX_REJECTIONS, Query, Session
from tap_public_jobs.limit.verdict import MAX_TRIES
from tap_public_jobs.lines import quoted
from tap_public_jobs.singer.naming import field_of
from tap_public_jobs.sync.source import JobRef, Json, Page

# The version is part of the path (API page, "Versioning").
API_PATH = "/api/public/v1"

# The headers that can carry the key, and how (API page, "Authentication", rule 3).
AUTH_HEADERS = {"Authorization": "Bearer {}", "x-api-key": "{}"}

# A detail with one of these is not published (API page, "Get a single published job", rule 1).
ABSENT = frozenset({404, 410})

# If page 1 stays one of these, the server is probably another one; 200 is a web page.
ELSEWHERE = ABSENT.union(range(200, 400))

REMEDIES = {
    401: "Nothing more is loaded until you act. The API refused the key (401). Compare "
    "TAP_PUBLIC_JOBS_API_KEY in .env with the key that you were given; if it is right, create a "
    "new one in the portal under Settings → Integrations → API keys.",
    403: "Nothing more is loaded. The API answered 403 ({}). If this key never worked, the "
    "organisation's plan lacks the public API: ask for it. If it worked before, another client may "
    "use up the rate limit: use one key per integration, or lower rate_limit_requests. If no other "
    "client uses it, a firewall may refuse this computer or user_agent.",
}
REMEDY_LIMIT = (
    "The tables are right, but not up to date. The API rejected a request "
    f"{MAX_REJECTIONS} times in a row: {{}}. If it is not down for maintenance, another client may "
    "be using this key: use one key per integration, or lower rate_limit_requests. The next run "
    "resumes."
)
REMEDY_ADDRESS = (
    "The tables are right, but not up to date. base_url does not look like the Public Jobs API: "
    f"{{}}. Set base_url to the part of the address before {API_PATH}; if it is right, the API may "
    "be down, and the next run resumes."
)
REMEDY_PAGE = (
    "The tables are right, but not up to date. Page {} of the list of jobs cannot be read: {}. If "
    "the API is down, no action is needed: the next run resumes. If it is up, check base_url and "
    "the network, or lower page_size if the body is too large."
)


@dataclass
class PublicJobsClient:
    """The Public Jobs API over HTTP. Its methods may be called from any thread.

    Attributes:
        session: Sends the requests, authenticated and throttled.
        base_url: Where the API is, without `API_PATH`.
        page_size: Jobs per page of the list.
        withheld: Fields that no answer has for the rest of the tap.
    """

    session: Session
    base_url: str
    page_size: int
    withheld: frozenset[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _key_checked_at: float = -math.inf  # when a refused detail last asked for page 1

    @property
    def retries(self) -> int:
        """Further tries of requests that failed."""
        return self.session.retries

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}{API_PATH}/jobs"

    def page(self, number: int) -> Page:
        """Fetch one page of the list.

        Args:
            number: Counted from 1.

        Raises:
            PageError: It cannot be read.
            TapError: The run cannot continue.
        """
        url = f"{self._url}?page={number}&pageSize={self.page_size}"
        try:
            envelope = self.session.fetch(Query(url, _is_page))
        except RejectedError as error:
            raise TapError(REMEDY_LIMIT.format(error)) from error
        except RequestError as error:
            if error.status in REMEDIES:
                raise TapError(REMEDIES[error.status].format(error)) from error
            if number == 1 and error.status in ELSEWHERE:
                raise TapError(REMEDY_ADDRESS.format(error)) from error
            raise PageError(REMEDY_PAGE.format(number, error), error.status) from error
        size = _count(envelope, "pageSize") or self.page_size
        items = [
            self._without_withheld(it) if isinstance(it, dict) else it for it in envelope["data"]
        ]
        return Page(items, size, _count(envelope, "total"))

    def detail(self, job: JobRef, tries: int = MAX_TRIES) -> dict[str, Json]:
        """Fetch the detail of one job; numbers are `int` or `Decimal`.

        Args:
            job: With an empty id, whichever job has the publicId.
            tries: Of a request that fails.

        Raises:
            NotFoundError: The job is not published, or its publicId now belongs to another job.
            RequestError: The API refuses this request, or all its tries failed.
            TapError: The run cannot continue.
        """
        url = f"{self._url}/{_path_segment(job.public_id)}"
        began = time.monotonic()
        try:
            query = Query(url, lambda detail: _is_detail(detail, job), ABSENT)
            document = self.session.fetch(query, tries)
        except RequestError as error:
            if error.status in REMEDIES:  # for the key, or for this job alone
                self._check_key(began)
            raise
        job_id = document.get("id")
        if job.id and isinstance(job_id, str) and job_id != job.id:
            msg = f"the publicId {quoted(job.public_id)} now belongs to another job"
            raise NotFoundError(msg)
        return self._without_withheld(document)

    def _without_withheld(self, document: dict[str, Json]) -> dict[str, Json]:
        if not self.withheld:
            return document
        return {name: it for name, it in document.items() if field_of(name) not in self.withheld}

    def _check_key(self, since: float) -> None:
        """Ask for page 1, unless it has been asked for since; details are refused many at once.

        Raises:
            TapError: The key is refused.
        """
        with self._lock:
            if self._key_checked_at >= since:
                return  # if the key is refused, the one who asks ends the run
            self._key_checked_at = time.monotonic()
        self.page(1)


def _path_segment(public_id: str) -> str:
    """Encode a string as one segment of a path (RFC 3986, section 3.3).

    A segment of only dots would be read as this folder or its parent.
    """
    encoded = quote(public_id, safe="")
    return encoded.replace(".", "%2E") if not encoded.strip(".") else encoded


def _is_page(document: dict[str, Json]) -> bool:
    return isinstance(document.get("data"), list)


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
