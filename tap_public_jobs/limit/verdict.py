"""What a response says: an answer, a rejection by the limit, or a fault.

`judge` decides it once for each response, and everything else goes by the type that it returns.
A 404 is `Absent` if the caller asked for what may be absent, a 429 is a `Rejection`, and a 403 is a
`Rejection` if its headers say so, or else a `Fault`: of few tries, or of all once the key has
worked.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus

# Tries of a request that fails.
MAX_TRIES = 8
# Of one that probably fails again: it has before, or the response blames it.
FEW_TRIES = 3

# Seconds. No limit per minute needs a longer pause; a larger Retry-After is ignored as a mistake.
LONGEST_RETRY_AFTER = 3600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The server sends what was asked for."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The server answers that there is no such thing.

    Attributes:
        why: The request, and what came back.
        status: The HTTP status.
    """

    why: str
    status: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """The limit has no room, and may have some later.

    Attributes:
        why: The request, and what came back.
        status: The HTTP status.
        wait: Seconds that the server asks to wait; None if it does not say.
    """

    why: str
    status: int
    wait: float | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Anything else, which may have passed at the next try.

    Attributes:
        why: The request, and what came back, or why nothing did.
        status: The HTTP status; None if there was none, or its body failed.
        tries: How many are worth it.
        may_be_limit: Whether it may be a rejection.
    """

    why: str
    status: int | None = None
    tries: int = MAX_TRIES
    may_be_limit: bool = False


Verdict = Answer | Absent | Rejection | Fault


def judge(
    why: str,
    status: int,
    headers: Mapping[str, str],
    *,
    absent: Collection[int] = (),
    key_has_worked: bool,
) -> Verdict:
    """Say what a response is, by its status and its headers.

    How a limit rejects is rarely documented. A rejection is a 429, any client error or 503 that
    says when to try again, or a 403 or 503 when no request is left. 401, 404 and 410 are never one,
    because they are about the key and the resource, whatever headers a gateway adds.

    A 403 or 503 without more is the default of some limits, too. But of a key that never worked, a
    403 is about the key.

    Args:
        why: The request and its status, for a message.
        status: The HTTP status.
        headers: Of the response.
        absent: The statuses that answer that there is no such thing; empty if that is no answer.
        key_has_worked: Whether the server has ever answered this key.
    """
    if status == HTTPStatus.OK:
        return Answer()
    if status in absent:
        return Absent(why, status)
    left = headers.get("RateLimit-Remaining", headers.get("X-RateLimit-Remaining"))
    if status not in {401, 404, 410} and (
        status == HTTPStatus.TOO_MANY_REQUESTS
        or (left == "0" and status in {403, 503})
        or ("Retry-After" in headers and status in {*range(400, 500), 503})
    ):
        return Rejection(why, status, _retry_after(headers))
    if status in ({403, 503} if key_has_worked else {503}):
        return Fault(why, status, may_be_limit=True)
    return Fault(why, status, FEW_TRIES if status in range(300, 500) else MAX_TRIES)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asks to wait, and add one: some servers round down.

    A date counts from the time that the response itself shows, because clocks differ.

    Returns:
        None if the header is absent or makes no sense: neither digits nor a date, or longer than
        `LONGEST_RETRY_AFTER`.
    """
    said = headers.get("Retry-After", "").strip()
    if said.isdecimal():
        seconds = float(said)
    elif (until := _epoch(said)) is not None:
        now = _epoch(headers.get("Date", ""))
        seconds = max(0.0, until - (time.time() if now is None else now))
    else:
        return None
    return seconds + 1 if seconds <= LONGEST_RETRY_AFTER else None


def _epoch(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (OverflowError, ValueError):
        return None
