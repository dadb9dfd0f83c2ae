"""The rate limit of one API key: when the next request may be sent.

`Throttle` decides, with an injected clock and no HTTP; the transport applies its decisions to every
attempt, retries included.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Paced requests are this much further apart than the limit needs, for clocks that differ.
MARGIN = 1.003

# Requests in flight after the first response, until this many more have come.
FEW = 3


class ThrottleClosedError(Exception):
    """The run is over: no further request may be sent."""


class Throttle:
    """Grants requests so that the server never sees more than `limit` in any `period` seconds.

    The server counts a request at an unknown moment between its sending and the receipt of its
    response.
    So a request holds one of `limit` slots from its sending until `period` after the receipt, and
    whatever the network's delays, no window at the server, fixed or sliding, counts more than
    `limit` of them.

    How the API measures its limit is not documented (API page, "Limits"), and some ways of
    measuring reject even that.
    Two lessons are enough for all of them:

    1. After a rejection all requests pause, then go out evenly, `MARGIN * period / (limit - 1)`
       apart: a server that estimates its window from the one before allows one request less.
    2. If one is rejected again, for instance because the network let two requests catch up with
       each other, all pause for a whole period and then go out one at a time, each that interval
       after the response to the one before: they are then as far apart at the server.

    All methods may be called from any thread.

    Args:
        limit: Requests per period.
        period: Seconds.
        clock: Monotonic time in seconds.
        wait: Called with the lock held and the seconds to wait, or None to wait until another
            request ends. It may return early. The default really waits, and releases the lock.
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
        self._received: deque[float] = deque()  # times of responses whose requests hold a slot
        self._not_before = -math.inf
        self._lessons = 0
        self._last_lesson_at = -math.inf

    def acquire(self) -> float:
        """Wait until a request may be sent, and count it as sent.

        Returns:
            The time of sending by the throttle's clock, to pass to `answered` or `rejected`.

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
                self._in_flight += 1
                self._not_before = now + self._interval
            return delay

    def answered(self, sent: float) -> None:
        """Free the slot of a request, one period from now.

        Args:
            sent: What `acquire` returned. A request without a response ends here too: it may have
                reached the server all the same.
        """
        with self._changed:
            self._end(sent)
            self._answered += 1

    def rejected(self, sent: float, retry_after: float | None = None) -> tuple[float, float] | None:
        """Pause all requests because the server rejected this one for the rate limit.

        Args:
            sent: What `acquire` returned.
            retry_after: Seconds that the server asked to wait, if it did.

        Returns:
            If this taught a lesson, the seconds of the pause and between two requests after it.
        """
        with self._changed:
            now = self._end(sent)
            self.rejections += 1
            # One more rejection of the burst that taught the last lesson teaches nothing.
            is_lesson = sent > self._last_lesson_at
            if is_lesson:
                self._lessons += 1
                self._last_lesson_at = now
            pause = self._period if retry_after is None else retry_after
            if self._lessons > 1:  # what the server asked for was not enough
                pause = max(pause, self._period)
            pause = max(pause, self._interval)
            self._not_before = max(self._not_before, now + pause)
            return (pause, self._interval) if is_lesson else None

    def close(self) -> None:
        """Let no further request through; those that wait get `ThrottleClosedError`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def _interval(self) -> float:
        # Under a limit of 1 such a server needs an empty window between two requests.
        return MARGIN * self._period / max(self._limit - 1, 0.5) if self._lessons else 0.0

    @property
    def _most_in_flight(self) -> int:
        # A limit that allows no burst rejects the second request. Until that is known, it should
        # cost few rejections, not one for each worker.
        if self._lessons > 1 or self._answered == 0:
            return 1
        return FEW if self._answered <= FEW else self._limit

    def _delay(self, now: float) -> float:
        if self._in_flight >= self._most_in_flight:
            return math.inf
        if now < self._not_before:
            return self._not_before - now
        while self._received and self._received[0] + self._period < now:
            self._received.popleft()
        if self._in_flight + len(self._received) < self._limit:
            return 0.0
        if not self._received:
            return math.inf
        # A slot is free strictly after its time: at the very end of a period it still counts.
        free_at = self._received[0] + self._period
        return free_at - now + math.ulp(free_at)

    def _end(self, sent: float) -> float:
        now = self._clock()
        self._in_flight -= 1
        self._received.append(now)
        if self._lessons > 1 and sent > self._last_lesson_at:
            self._not_before = max(self._not_before, now + self._interval)
        self._changed.notify_all()
        return now
