"""What the API page leaves open, as choices: every `not shown` that a client could notice."""

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from public_jobs_sandbox.limits import ALGORITHMS


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the sandbox behaves where the API page says "not shown".

    Attributes:
        limited: Whether there is a rate limit at all (*Limits*).
        limit_algorithm: A key of `ALGORITHMS`: the type of the rate limit's window (*Limits*).
        limit_requests: Requests that a key may make per `limit_period` (*Limits*: 60).
        limit_period: Seconds over which requests are counted (*Limits*: one minute).
        rejection_status: Status of an answer to a request beyond the limit (*Errors*).
        retry_after: The Retry-After header of such an answer (*Errors*): `seconds` or `date` for
            a true hint in that form, None for no header, any other text is sent as it is.
        latency: Seconds that every answer takes: half of them pass before the request is counted,
            half after it, as on a network whose two ways are alike.
        jitter: Up to so many seconds more, at random, and a random part of them before the
            request is counted.
        stall: Seconds before a stalled request is answered (see the fault `stall`).
        undocumented_fields: Whether details carry the five fields that the page describes but
            does not name (*Job detail*).
        omit_empty: Whether details leave out fields without a value (*Job detail*).
        out_of_bounds: Whether page and pageSize outside their bounds are answered with 400 or
            moved to the nearest bound (*List published jobs*, rule 3).
        max_page_size: Pages are silently never longer than this; the answered pageSize tells.
        order: Order of the list (*List published jobs*, rule 4): `stable` is the order of first
            publication, `shuffled` is another one on each request.
        total: The total of the list (*List published jobs*, rule 5): `exact` counts the
            published jobs, a number is sent as it is.
        both_headers: Which header counts when both are sent with different values
            (*Authentication*, 9); `reject` answers 401.
        path_prefix: Path at which the API lives, part of its base address
            (*Authentication*, 10), such as `/eu`.
        redirect_to: Where the fault `redirect` points: a path or a whole address.
        webhook_url: Where changes of jobs are told (*Events*, like all that follow); None for
            nowhere.
        webhook_payload: What is told: `flat` is `{"event", "publicId"}`, `nested` has the
            publicId two levels down, `batch` is a list of flat ones, `job` is the whole job,
            `renamed` has the publicId under another name, `internal_id` has the id in its place.
        webhook_copies: How many times each delivery is sent.
        webhook_window: So many changes are held back, and then told together, in one delivery
            (`batch`) or in shuffled ones.
        webhook_pauses: Seconds before each further try of a delivery that is not answered 2xx;
            as many as there are retries.
        webhook_timeout: Seconds within which the receiver has to answer.
        webhook_secret: Key of the HMAC-SHA256 signature of the body; None for no signature.
        webhook_signature_header: The header with the signature, written `sha256=` and hex digits.
    """

    limited: bool = True
    limit_algorithm: str = "sliding_log"
    limit_requests: int = 60
    limit_period: float = 60.0
    rejection_status: int = 429
    retry_after: str | None = "seconds"
    latency: float = 0.0
    jitter: float = 0.0
    stall: float = 600.0
    undocumented_fields: bool = True
    omit_empty: bool = False
    out_of_bounds: Literal["reject", "clamp"] = "reject"
    max_page_size: int = 100
    order: Literal["stable", "newest_first", "shuffled"] = "stable"
    total: Literal["exact"] | int = "exact"
    both_headers: Literal["authorization", "x-api-key", "reject"] = "authorization"
    path_prefix: str = ""
    redirect_to: str = "/elsewhere"
    webhook_url: str | None = field(default=None, repr=False)
    webhook_payload: Literal["flat", "nested", "batch", "job", "renamed", "internal_id"] = "flat"
    webhook_copies: int = 1
    webhook_window: int = 1
    webhook_pauses: tuple[float, ...] = (0.5, 1.0, 2.0)
    webhook_timeout: float = 5.0
    webhook_secret: str | None = field(default=None, repr=False)
    webhook_signature_header: str = "X-Hub-Signature-256"

    def __post_init__(self) -> None:
        if self.limit_algorithm not in ALGORITHMS:
            message = f"No limit algorithm {self.limit_algorithm!r}: use one of {list(ALGORITHMS)}"
            raise ValueError(message)
        if self.webhook_url is not None:
            url = urlsplit(self.webhook_url)
            if url.scheme not in {"http", "https"} or not url.hostname:
                message = "webhook_url must begin with http:// or https:// and name a host"
                raise ValueError(message)
