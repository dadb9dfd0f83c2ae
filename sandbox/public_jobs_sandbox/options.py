"""Options for what the API page does not document and a client could notice."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the sandbox behaves where the API page says "not shown".

    Attributes:
        limited: Whether there is a rate limit (*Limits*).
        limit_algorithm: How the rate limit counts requests: a key of `ALGORITHMS` (*Limits*).
        limit_requests: Requests that a key may make per `limit_period` (*Limits*: 60).
        limit_period: Length of a period in seconds (*Limits*: one minute).
        reject_with: Status of a rejection, and a header after it (*Errors*), in which `{}` becomes
            the whole seconds until a retry can succeed.
        latency: Seconds that each response takes, half of them before the request is counted and
            half after, as on a network that is equally slow in both directions.
        jitter: Longest random delay in seconds, added to `latency`; a random part of the delay
            comes before the request is counted.
        path_prefix: Path of the API below its host, a part of the base address
            (*Authentication*, 10), for example `/eu`.
        webhook_url: Where to send a webhook about each change (*Events*); None for no webhooks.
    """

    limited: bool = True
    limit_algorithm: str = "sliding_log"
    limit_requests: int = 60
    limit_period: float = 60.0
    reject_with: str = "429 Retry-After: {}"
    latency: float = 0.0
    jitter: float = 0.0
    path_prefix: str = ""
    webhook_url: str | None = field(default=None, repr=False)
