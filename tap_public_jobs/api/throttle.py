"""The rate limit of one API key: when the next request may be sent.

`Throttle` decides, with an injected clock and no HTTP; the transport applies its decisions to every
attempt, retries included.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING

from tap_public_jobs.api.models import HeldSlots

if TYPE_CHECKING:
    from collections.abc import Callable

# Requests in flight after the first response, until this many more have come.
FEW = 3

# Responses that may be rejections count as faults if they are at most one in this many.
FEW_IN = 16


@dataclass(eq=False)
class Throttle:
    """Grants requests so that the server never sees more than `limit` in any `period` seconds.

    The server counts a request at an unknown moment between its sending and the receipt of its
    response.
    So a request holds one of `limit` slots from its sending until `period` after the receipt, and
    whatever the network's delays, no window at the server, fixed or sliding, counts more than
    `limit` of them.
    A run that begins with the slots that the run before it held keeps this promise for both.

    How the API measures its limit is not documented (API page, "Limits"), and some ways of
    measuring reject even that.
    Two lessons are enough for all of them:

    1. After a rejection all requests pause, then go out evenly, `period / (limit - 1)` apart: a
       server that estimates its window from the one before allows one request less.
    2. If one is rejected again, for instance because the network let two requests catch up with
       each other, all pause for a whole period and then go out one at a time, each that interval
       after the response to the one before: they are then as far apart at the server.

    A response that may be a rejection or a fault teaches the same without a pause: the first one to
    send evenly; more than `FEW`, and more than one in `FEW_IN`, to send one at a time.
    Several in a row count as one, because a server that is down is no limit.

    All methods may be called from any thread.

    Attributes:
        limit: Requests per period.
        period: Seconds.
        held: The slots that the last run held at its end; None if that is unknown.
        epoch: Returns seconds since the epoch.
        clock: Returns monotonic time in seconds.
        wait: Called with the lock held and the seconds to wait, or None to wait until another
            request ends. It may return early. The default really waits, and releases the lock.
        requests: Requests sent.
        rejections: How many of them were rejected.
        reason: What it was closed with; None while it is open.
    """

    limit: int
    period: float
    _: KW_ONLY
    held: InitVar[HeldSlots | None] = None
    epoch: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float | None], object] | None = None
    requests: int = 0
    rejections: int = 0
    reason: BaseException | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _in_flight: int = 0
    _answered: int = 0
    _received: deque[float] = field(default_factory=deque)  # of responses that hold a slot
    _not_before: float = -math.inf
    _lessons: int = 0
    _step: int = 0  # sends 1: evenly, 2: one at a time
    _doubts: int = 0  # responses that may be rejections, one for each row of them
    _is_up: bool = True
    _last_lesson_at: float = -math.inf

    def __post_init__(self, held: HeldSlots | None) -> None:
        """Hold the slots of the last run."""
        if held:
            # After a clock was set back, the last response seems to be yet to come.
            age = max(0.0, self.epoch() - held.last_response_at)
            self._received.extend([self.clock() - age] * min(held.number, self.limit))

    def acquire(self) -> float:
        """Wait until a request may be sent, and count it as sent.

        Returns:
            The time of sending by the throttle's clock, to pass to `rejected`.

        Raises:
            BaseException: What the throttle was closed with.
        """
        with self._changed:
            while (delay := self.try_acquire()) != 0:
                (self.wait or self._changed.wait)(None if delay == math.inf else delay)
            return self.clock()

    def try_acquire(self) -> float:
        """Count a request as sent if one may be sent now.

        Returns:
            0.0 if the request may be sent, else the seconds after which to ask again; infinity if
            that depends on a request in flight.

        Raises:
            BaseException: What the throttle was closed with.
        """
        with self._changed:
            if self.reason:
                raise self.reason
            now = self.clock()
            delay = self._delay(now)
            if delay == 0:
                self.requests += 1
                self._in_flight += 1
                self._not_before = now + self._interval
            return delay

    def answered(self, *, is_doubtful: bool = False) -> tuple[float, float] | None:
        """Free the slot of a request, one period from now.

        A request without a response ends here too: it may have reached the server all the same.

        Args:
            is_doubtful: Whether the response may be a rejection.

        Returns:
            As `rejected` does, with a pause of no seconds.
        """
        with self._changed:
            now = self._end()
            if not is_doubtful:
                self._answered += 1
                self._is_up = True
                return None
            self._doubts += self._is_up
            self._is_up = False
            is_limit = self._doubts > max(FEW, self._answered / FEW_IN)
            before, self._step = self._step, max(self._step, 1 + is_limit)
            self._not_before = max(self._not_before, now + self._interval)
            return (0.0, self._interval) if self._step > before else None

    def rejected(self, sent: float, retry_after: float | None = None) -> tuple[float, float] | None:
        """Pause all requests because the server rejected this one for the rate limit.

        Args:
            sent: What `acquire` returned.
            retry_after: Seconds that the server asked to wait, if it did.

        Returns:
            The seconds of the pause, and between two requests after it; None if that is no news.
        """
        with self._changed:
            now = self._end()
            self.rejections += 1
            # One more rejection of the burst that taught the last lesson teaches nothing.
            is_lesson = sent > self._last_lesson_at
            if is_lesson:
                self._lessons += 1
                self._step = max(self._step, self._lessons)
                self._last_lesson_at = now
            pause = self.period if retry_after is None else retry_after
            if self._lessons > 1:  # what the server asked for was not enough
                pause = max(pause, self.period)
            pause = max(pause, self._interval)
            is_much_longer = now + pause > self._not_before + self.period
            self._not_before = max(self._not_before, now + pause)
            return (pause, self._interval) if is_lesson or is_much_longer else None

    def can_learn_from(self, sent: float) -> bool:
        """Return whether a rejection of this request is a lesson, or of the burst of the last."""
        return self._lessons < 2 or sent <= self._last_lesson_at  # noqa: PLR2004

    def held_slots(self) -> HeldSlots | None:
        """Return the slots that the next run must hold; None if no request was ever sent.

        A request in flight counts as answered now.
        """
        with self._changed:
            if not (self._in_flight or self._received):
                return None
            now = self.clock()
            last = now if self._in_flight else self._received[-1]
            number = self._in_flight + sum(it + self.period >= last for it in self._received)
            return HeldSlots(math.floor(self.epoch() - (now - last)) + 1, number)

    def close(self, reason: BaseException) -> None:
        """Let no further request through: those that wait, or come later, raise the reason."""
        with self._changed:
            self.reason = reason
            self._changed.notify_all()

    @property
    def seconds_each(self) -> float:
        """The seconds that each of many requests takes, by the limit and by what it has taught."""
        return max(self.period / self.limit, self._interval)

    @property
    def _interval(self) -> float:
        if not self._step:
            return 0.0
        # Under a limit of 1 such a server needs an empty window between two requests.
        return self.period / max(self.limit - 1, 0.5)

    @property
    def _most_in_flight(self) -> int:
        # A limit that allows no burst rejects the second request. Until that is known, it should
        # cost few rejections, not one for each worker.
        if self._step > 1 or self._answered == 0:
            return 1
        return FEW if self._answered <= FEW else self.limit

    def _delay(self, now: float) -> float:
        if self._in_flight >= self._most_in_flight:
            return math.inf
        if now < self._not_before:
            return self._not_before - now
        while self._received and self._received[0] + self.period < now:
            self._received.popleft()
        if self._in_flight + len(self._received) < self.limit:
            return 0.0
        if not self._received:
            return math.inf
        # A slot is free strictly after its time: at the very end of a period it still counts.
        free_at = self._received[0] + self.period
        return free_at - now + math.ulp(free_at)

    def _end(self) -> float:
        now = self.clock()
        self._in_flight -= 1
        self._received.append(now)
        if self._step > 1:
            self._not_before = max(self._not_before, now + self._interval)
        self._changed.notify_all()
        return now
