"""Options for what the API page does not document and a client could notice."""

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from public_jobs_sandbox.limits import ALGORITHMS


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the sandbox behaves where the API page says "not shown".

    Attributes:
        limited: Whether there is a rate limit (*Limits*).
        limit_algorithm: How the rate limit counts requests: a key of `ALGORITHMS` (*Limits*).
        limit_requests: Requests that a key may make per `limit_period` (*Limits*: 60).
        limit_period: Length of a period in seconds (*Limits*: one minute).
        rejection_status: Status of the response to a request over the limit (*Errors*).
        retry_after: Retry-After header of that response (*Errors*): `seconds` or `date` for the
            true wait in that form, None for no header, any other text is sent as it is.
        latency: Seconds that each response takes, half of them before the request is counted and
            half after, as on a network that is equally slow in both directions.
        jitter: Longest random delay in seconds, added to `latency`; a random part of the delay
            comes before the request is counted.
        stall: Seconds until a stalled request gets a response (see the fault `stall`).
        undocumented_fields: Whether details have the five fields that the page describes but does
            not name (*Job detail*).
        omit_empty: Whether details leave out empty fields (*Job detail*).
        out_of_bounds: What happens if page or pageSize is outside its bounds: `reject` returns
            400, `clamp` uses the nearest bound (*List published jobs*, rule 3).
        max_page_size: Largest page that the server returns, without an error for larger ones; the
            pageSize of the response is the true one.
        order: Order of the list (*List published jobs*, rule 4): `stable` is the order of first
            publication, `newest_first` is its reverse, `shuffled` differs on each request.
        total: The total of the list (*List published jobs*, rule 5): `exact` counts the
            published jobs, a number is sent as it is.
        both_headers: Which header counts if both are sent with different values
            (*Authentication*, 9); `reject` returns 401.
        path_prefix: Path of the API below its host, a part of the base address
            (*Authentication*, 10), for example `/eu`.
        redirect_to: Target of the fault `redirect`: a path or a whole address.
        webhook_url: Receiver of webhooks (*Events*, as for all options below); None for no
            webhooks.
        webhook_payload: Shape of the payload: `flat` is `{"event", "publicId"}`, `nested` has the
            publicId two levels down, `batch` is a list of flat ones, `job` is the whole job,
            `renamed` has the publicId under another name, `internal_id` has the id instead.
        webhook_copies: How many times each delivery is sent.
        webhook_window: Number of changes to hold back and send together, in one delivery
            (`batch`) or in shuffled ones.
        webhook_pauses: Seconds before each retry of a delivery that was not answered with 2xx;
            there are as many retries as pauses.
        webhook_timeout: Seconds within which the receiver has to respond.
        webhook_secret: Key of the HMAC-SHA256 signature of the body; None for no signature.
        webhook_signature_header: Header with the signature, which is `sha256=` and hex digits.
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
            message = (
                f"Unknown limit algorithm {self.limit_algorithm!r}: use one of {list(ALGORITHMS)}"
            )
            raise ValueError(message)
        if self.webhook_url is not None:
            url = urlsplit(self.webhook_url)
            if url.scheme not in {"http", "https"} or not url.hostname:
                message = "webhook_url must begin with http:// or https:// and name a host"
                raise ValueError(message)
