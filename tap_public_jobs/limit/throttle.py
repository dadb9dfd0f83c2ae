"""The rate limit of one API key: when the next request may be sent.

`Throttle` decides, with an injected clock and no HTTP; the transport applies its decisions to every
attempt, retries included.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import NamedTuple

from tap_public_jobs.limit.pace import LESSONS, Pace


class HeldSlots(NamedTuple):
    """How much of the rate limit a run had used when its last response came.

    Attributes:
        last_response_at: Seconds since the epoch, rounded up.
        number: The requests that it had sent, and whose responses were not yet a period old.
    """

    last_response_at: int
    number: int


@dataclass(eq=False)
class Throttle:
    """Grants requests so that the server never sees more than `limit` in any `period` seconds.

    The server counts a request at an unknown moment between its sending and the receipt of its
    response.
    So a request holds one of `limit` slots from its sending until `period` after the receipt, and
    whatever the network's delays, no window at the server, fixed or sliding, counts more than
    `limit` of them.
    A run that begins with the slots that the last run held keeps this promise for both.

    Rejections teach a slower `Pace`, after a pause.

    All methods may be called from any thread.

    Attributes:
        limit: Requests per period.
        period: Seconds.
        held: The slots that the last run held at its end; None if that is unknown.
        epoch: Returns seconds since the epoch.
        clock: Returns monotonic time in seconds.
        changed: What threads wait on; tests inject one that does not block.
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
    changed: threading.Condition = field(default_factory=threading.Condition)
    requests: int = 0
    rejections: int = 0
    reason: BaseException | None = None
    _in_flight: int = 0
    _received: deque[float] = field(default_factory=deque)  # of responses that hold a slot
    _not_before: float = -math.inf

    def __post_init__(self, held: HeldSlots | None) -> None:
        """Hold the slots of the last run."""
        self._pace = Pace(self.limit, self.period)
        if held:
            # After a clock was set back, the last response seems to be yet to come.
            age = max(0.0, self.epoch() - held.last_response_at)
            self._received.extend([self.clock() - age] * min(held.number, self.limit))
        self._of_last_run = len(self._received)
        self._held_until = self._received[-1] + self.period if self._received else -math.inf

    def acquire(self, earliest: float = -math.inf) -> float:
        """Wait until a request may be sent, and count it as sent.

        Args:
            earliest: When this request may be sent at the earliest, by the clock.

        Returns:
            The time of sending by the throttle's clock, to pass to `answered` or `rejected`, one of
            which, or `unanswered`, has to follow.

        Raises:
            BaseException: What the throttle was closed with.
        """
        with self.changed:
            while not self.reason and (delay := earliest - self.clock()) > 0:
                self.changed.wait(delay)
            while (delay := self.try_acquire()) != 0:
                self.changed.wait(None if delay == math.inf else delay)
            return self.clock()

    def try_acquire(self) -> float:
        """Count a request as sent if one may be sent now.

        Returns:
            0.0 if the request may be sent, else the seconds after which to ask again; infinity if
            that depends on another request.

        Raises:
            BaseException: What the throttle was closed with.
        """
        with self.changed:
            if self.reason:
                raise self.reason
            now = self.clock()
            delay = self._delay(now)
            if delay == 0:
                self.requests += 1
                self._in_flight += 1
                self._not_before = now + self._pace.interval
            return delay

    def answered(self, sent: float, *, is_doubtful: bool = False) -> tuple[float, float] | None:
        """Free the slot of a request, one period from now, and learn from its response.

        Args:
            sent: What `acquire` returned.
            is_doubtful: Whether the response may be a rejection.

        Returns:
            As `rejected` does, with a pause of no seconds.
        """
        with self.changed:
            now = self._end(sent)
            if not is_doubtful:
                self._pace.note_answer(sent)
                return None
            is_lesson = self._pace.note_doubt(sent, now)
            self._not_before = max(self._not_before, now + self._pace.interval)
            return (0.0, self._pace.interval) if is_lesson else None

    def unanswered(self) -> None:
        """Free the slot of a request without a response, which the server may have counted.

        It teaches nothing: whether the limit has room, only a response can show.
        """
        with self.changed:
            self._end(None)

    @property
    def resumes_at(self) -> float:
        """When the next request may be sent at the earliest, by the clock."""
        return max(self._not_before, self.clock())

    def rejected(
        self, sent: float, retry_after: float | None = None, *, again_since: float = math.inf
    ) -> tuple[float, float] | None:
        """Free the slot of a request as `answered` does, and learn that the limit rejected it.

        Args:
            sent: What `acquire` returned.
            retry_after: Seconds that the server asked to wait, if it did.
            again_since: When the same request was rejected before; infinity if it was not. If
                another one that was sent since has been answered, the limit has room, and the
                rejection teaches nothing.

        Returns:
            The seconds of the pause, and between two requests after it; None if nothing is new.
        """
        with self.changed:
            now = self._end(sent)
            self.rejections += 1
            if self._pace.last_answered > again_since:
                return None
            if retry_after is None and self._pace.last_answered > -math.inf:
                # An interval is enough, if the limit allows no bursts. If it is not, the next pause
                # is a whole period.
                retry_after = 0.0
            was_enough = not self._pace.in_a_row  # what the server asked for
            is_lesson = self._pace.note_rejection(sent, now)
            pause = max(retry_after or 0.0, self._pace.interval)
            if is_lesson and self._pace.lessons >= LESSONS:
                pause = max(pause, self._pace.pause)
            elif is_lesson and not (was_enough and retry_after is not None):
                pause = max(pause, self.period)
            is_much_longer = now + pause > self._not_before + self.period
            self._not_before = max(self._not_before, now + pause)
            return (pause, self._pace.interval) if is_lesson or is_much_longer else None

    def held_slots(self) -> HeldSlots | None:
        """Return the slots that the next run must hold; None if no request was ever sent.

        A request in flight counts as answered now.
        """
        with self.changed:
            if not (self._in_flight or self._received):
                return None
            now = self.clock()
            last = now if self._in_flight else self._received[-1]
            number = self._in_flight + sum(at + self.period >= last for at in self._received)
            return HeldSlots(math.floor(self.epoch() - (now - last)) + 1, number)

    def held_up(self, requests: int) -> float:
        """Return for how many seconds the slots of the last run hold up further requests."""
        is_full = self._of_last_run + self.requests + requests > self.limit
        return max(0.0, self._held_until - self.clock()) if is_full else 0.0

    def close(self, reason: BaseException) -> None:
        """Let no further request through: those that wait, or come later, raise the reason."""
        with self.changed:
            self.reason = reason
            self.changed.notify_all()

    @property
    def seconds_each(self) -> float:
        """The seconds that each of many requests takes, by the limit and by the lessons learnt."""
        return max(self.period / self.limit, self._pace.interval)

    def _delay(self, now: float) -> float:
        if self._in_flight >= self._pace.most_in_flight:
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

    def _end(self, sent: float | None) -> float:
        now = self.clock()
        self._in_flight -= 1
        self._received.append(now)
        if sent is not None:
            self._pace.note_round_trip(now - sent)
        self._not_before = max(self._not_before, now + self._pace.after_response)
        self.changed.notify_all()
        return now
