"""The rate limit of one API key: when the next request may be sent.

`Throttle` decides, with an injected clock and no HTTP; `ThrottledAdapter` applies its decisions to
every attempt of a `requests` session, retries included.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from datetime import timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter
from typing_extensions import override

from tap_public_jobs.errors import RateLimitedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from requests import PreparedRequest, Response

MARGIN = 1.003
"""Paced requests are this much further apart than the limit needs, for clocks that differ."""

MAX_REJECTIONS = 10
"""Rejections in a row of one request that end the run."""

GIVEN_BACK = 0.95
"""Of the fastest round trip: how much earlier than a period after an answer its slot is free."""

DRIFT = 0.0005
"""By how much the server's clock may run faster than ours, for what is given back."""

ENOUGH_ANSWERS = 20
"""Answers after which the fastest of them tells what the network takes at least."""

FEW = 3
"""Requests in flight after the first answer, until so many more have come."""

LONGEST_RETRY_AFTER = 3600.0
"""Seconds. No limit per minute needs a longer pause; a larger Retry-After is an error."""


class ThrottleClosedError(Exception):
    """The run is over: no further request may be sent."""


class Throttle:
    """Grants requests so that the server never sees more than `limit` in any `period` seconds.

    The server counts a request at an unknown moment between its sending and the receipt of its
    answer. So a request holds one of `limit` slots from its sending until `period` after the
    receipt, and whatever the network's delays, no window at the server, fixed or sliding, counts
    more than `limit` of them.

    That costs a round trip a period. But an answer takes some time to come back and the request
    that reuses its slot takes some time to get there, and the two together hardly less than the
    fastest round trip. So after a first period a slot is free that much earlier, less a reserve
    (`_given_back`). What is guaranteed then:

    - If the way there of any request and the way back of any other together take no less than
      what is given back, still no window counts more than `limit`.
    - Whatever the network does, no window that is shorter by what is given back counts more.

    How the API measures its limit is not documented (API page, "Limits"), and some ways of
    measuring refuse even the strict form. Two lessons are enough for all of them, and after the
    first nothing is given back:

    1. After a rejection all requests pause, then go out evenly, `MARGIN * period / (limit - 1)`
       apart: a server that estimates its window from the one before needs the one less.
    2. Refused again after that, for instance because the network let two requests catch up with
       each other, they pause for a whole period and then go out one at a time, each that long
       after the answer to the one before: so far apart at the server too.

    All methods may be called from any thread.

    Args:
        limit: Requests per period.
        period: Seconds.
        clock: Monotonic time in seconds.
        wait: Called with the lock held and the seconds to wait, or None to wait until another
            request ends. It may return early. By default waits for real, and lets go of the lock.
    """

    def __init__(
        self,
        limit: int,
        period: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float | None], object] | None = None,
    ) -> None:
        self.requests = 0
        self.rejections = 0
        self._limit = limit
        self._period = period
        self._clock = clock
        self._changed = threading.Condition()
        self._wait = wait or self._changed.wait
        self._closed = False
        self._in_flight = 0
        self._answered = 0
        self._seconds = 0.0  # that the answered requests took together
        self._fastest = math.inf
        self._strict_until = math.inf
        self._received: deque[float] = deque()  # when answers came whose requests hold a slot
        self._not_before = -math.inf
        self._lessons = 0
        self._last_lesson_at = -math.inf

    def acquire(self) -> float:
        """Wait until a request may be sent, and count it as sent.

        Returns:
            The time of sending by the throttle's clock, to be given back to `answered` or
            `rejected`.

        Raises:
            ThrottleClosedError: The throttle was closed.
        """
        with self._changed:
            while (delay := self.try_acquire()) != 0:
                self._wait(None if delay == math.inf else delay)
            return self._clock()

    def try_acquire(self) -> float:
        """Count a request as sent if one may be sent now.

        Returns:
            0.0 if the request may be sent, else the seconds after which to ask again; infinity if
            that depends on a request in flight.

        Raises:
            ThrottleClosedError: The throttle was closed.
        """
        with self._changed:
            if self._closed:
                raise ThrottleClosedError
            now = self._clock()
            delay = self._delay(now)
            if delay == 0:
                self.requests += 1
                self._strict_until = min(self._strict_until, now + self._period)
                self._in_flight += 1
                self._not_before = now + self._interval
            return delay

    def answered(self, sent: float) -> float:
        """Free the slot of a request, one period from now.

        Args:
            sent: What `acquire` returned. A request that got no answer ends here too: it may have
                reached the server all the same.

        Returns:
            Seconds that the request took.
        """
        with self._changed:
            took = self._end(sent) - sent
            self._answered += 1
            self._seconds += took
            self._fastest = min(self._fastest, took)
            return took

    def rejected(self, sent: float, retry_after: float | None = None) -> None:
        """Pause all requests because the server refused this one for the rate limit.

        Args:
            sent: What `acquire` returned.
            retry_after: Seconds that the server asked to wait, if it did.
        """
        with self._changed:
            now = self._end(sent)
            self.rejections += 1
            if sent > self._last_lesson_at:  # not one more of a burst that has taught its lesson
                self._lessons += 1
                self._last_lesson_at = now
            pause = self._period if retry_after is None else retry_after
            if self._lessons > 1:  # what the server asked for was not enough
                pause = max(pause, self._period)
            self._not_before = max(self._not_before, now + max(pause, self._interval))

    def close(self) -> None:
        """Let no further request through; those that wait get `ThrottleClosedError`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def _interval(self) -> float:
        # Under a limit of 1 such a server wants an empty window between two requests.
        return MARGIN * self._period / max(self._limit - 1, 0.5) if self._lessons else 0.0

    @property
    def _most_in_flight(self) -> int:
        # A limit without any burst shows itself at the second request. Until then it should cost
        # few rejections, and not one for each worker.
        if self._lessons > 1 or self._answered == 0:
            return 1
        return FEW if self._answered <= FEW else self._limit

    @property
    def _given_back(self) -> float:
        if self._lessons or self._answered < ENOUGH_ANSWERS:
            return 0.0
        # The more the round trips differ, the further even the fastest may be from what the
        # network takes at least.
        reserve = (self._seconds / self._answered - self._fastest) / 2
        return max(0.0, GIVEN_BACK * (self._fastest - reserve) - DRIFT * self._period)

    def _delay(self, now: float) -> float:
        if self._in_flight >= self._most_in_flight:
            return math.inf
        if now < self._not_before:
            return self._not_before - now
        while self._received and self._free_at(self._received[0]) < now:
            self._received.popleft()
        if self._in_flight + len(self._received) < self._limit:
            return 0.0
        if not self._received:
            return math.inf
        # A slot is free strictly after its time: at the very end of a period it still counts.
        free_at = self._free_at(self._received[0])
        return free_at - now + math.ulp(free_at)

    def _free_at(self, received: float) -> float:
        strictly = received + self._period
        return min(strictly, max(strictly - self._given_back, self._strict_until))

    def _end(self, sent: float) -> float:
        now = self._clock()
        self._in_flight -= 1
        self._received.append(now)
        if self._lessons > 1 and sent > self._last_lesson_at:
            self._not_before = max(self._not_before, now + self._interval)
        self._changed.notify_all()
        return now


class ThrottledAdapter(HTTPAdapter):
    """Sends each request when the throttle lets it, and again for as long as it is rejected.

    Args:
        throttle: The limit that all requests of this adapter share.
        connections: Connections kept open at once.
    """

    def __init__(self, throttle: Throttle, *, connections: int) -> None:
        self.throttle = throttle
        super().__init__(pool_connections=1, pool_maxsize=connections)

    @override
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send a request; a rejection is waited out and never reaches the caller.

        Raises:
            RateLimitedError: The request was rejected `MAX_REJECTIONS` times in a row.
        """
        for _ in range(MAX_REJECTIONS):
            sent = self.throttle.acquire()
            try:
                response = super().send(request, *args, **kwargs)
            except BaseException:
                self.throttle.answered(sent)
                raise
            if not is_rejection(response):
                # Else requests would count the wait for a slot as the server's time.
                took = self.throttle.answered(sent)
                request.register_hook("response", _took(took))  # type: ignore[no-untyped-call]
                return response
            self.throttle.rejected(sent, retry_after(response.headers))
            response.close()
        msg = (
            f"The API rejected {request.path_url} for the rate limit {MAX_REJECTIONS} times in a "
            "row: another client may be using this key. Use one key per integration, or lower "
            "rate_limit_requests."
        )
        raise RateLimitedError(msg)


def _took(seconds: float) -> Callable[..., None]:
    def set_elapsed(response: Response, **_: Any) -> None:  # noqa: ANN401  # requests' signature
        response.elapsed = timedelta(seconds=seconds)

    return set_elapsed


def is_rejection(response: Response) -> bool:
    """Tell whether an answer means "too many requests".

    The status of a rejection is not documented (API page, "Errors"). It is taken to be 429, or any
    client error or 503 that says when to try again.
    """
    status = response.status_code
    return status == HTTPStatus.TOO_MANY_REQUESTS or (
        "Retry-After" in response.headers
        and (400 <= status < 500 or status == HTTPStatus.SERVICE_UNAVAILABLE)  # noqa: PLR2004
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how long the server asks to wait (RFC 9110, section 10.2.3).

    Args:
        headers: The response's headers; names are compared without regard to case.

    Returns:
        Seconds from now, or None if the header is absent or makes no sense: not a number or date,
        negative, or longer than `LONGEST_RETRY_AFTER`.
    """
    value = headers.get("Retry-After", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, headers.get("Date", ""))
    return seconds if 0 <= seconds <= LONGEST_RETRY_AFTER else None


def _seconds_until(date: str, server_now: str) -> float:
    # The server's own Date is the clock that its Retry-After was written by.
    try:
        moment = parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return math.nan
    try:
        now = parsedate_to_datetime(server_now).timestamp()
    except (ValueError, OverflowError):
        now = time.time()
    return moment - now + 1.0  # an HTTP-date has no fractions of a second
