"""Five rate limit algorithms, because the API does not document which one it uses.

The API page limits a key to 60 requests per minute and leaves the type of window open (*Limits*).
Each class is one common algorithm.
No class reads a clock: the caller passes the time in seconds.
Rejected requests are not counted.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

# Tolerance in seconds: `now + wait` may round to just before the time that `wait` aims at.
NOISE = 1e-6


class Limiter(Protocol):
    """Counts the requests of one key."""

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, if it is allowed.

        Returns:
            None if the request is allowed, otherwise the seconds until a retry can succeed.
        """


class SlidingLog:
    """Allows `limit` requests in any `period` seconds: the exact sliding window."""

    def __init__(self, limit: int, period: float) -> None:
        self._limit = limit
        self._period = period
        self._expiries: deque[float] = deque()

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, if it is allowed."""
        while self._expiries and self._expiries[0] <= now + NOISE:
            self._expiries.popleft()
        if len(self._expiries) < self._limit:
            self._expiries.append(now + self._period)
            return None
        return self._expiries[0] - now


class FixedWindow:
    """Allows `limit` requests per window; windows start at multiples of `period`."""

    def __init__(self, limit: int, period: float) -> None:
        self._limit = limit
        self._period = period
        self._window = -math.inf
        self._count = 0

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, if it is allowed."""
        window = math.floor((now + NOISE) / self._period)
        if window != self._window:
            self._window, self._count = window, 0
        if self._count < self._limit:
            self._count += 1
            return None
        return (window + 1) * self._period - now


class TokenBucket:
    """Starts with `limit` tokens, takes one per request and refills evenly over `period`."""

    def __init__(self, limit: int, period: float) -> None:
        self._capacity = float(limit)
        self._interval = period / limit
        self._tokens = self._capacity
        self._updated = -math.inf

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, if it is allowed."""
        refill = (now - self._updated) / self._interval
        self._tokens = min(self._capacity, self._tokens + refill)
        self._updated = now
        missing = (1 - self._tokens) * self._interval
        if missing <= NOISE:
            self._tokens -= 1
            return None
        return missing


class SlidingCounter:
    """Estimates a sliding window from two fixed ones, as if the previous one was used evenly.

    It can reject a client that respects the exact sliding window: a burst at the end of one
    window still counts almost fully at the start of the next.
    """

    def __init__(self, limit: int, period: float) -> None:
        self._limit = limit
        self._period = period
        self._window = 0
        self._previous = 0
        self._current = 0

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, if it is allowed."""
        window = math.floor((now + NOISE) / self._period)
        if window != self._window:
            self._previous = self._current if window == self._window + 1 else 0
            self._window, self._current = window, 0
        elapsed = now - window * self._period
        wait = self._allowed_from(self._previous, self._current) - elapsed
        if wait <= NOISE:
            self._current += 1
            return None
        if self._current < self._limit:
            return wait
        return self._period - elapsed + self._allowed_from(self._current, 0)

    def _allowed_from(self, previous: int, current: int) -> float:
        """Return how many seconds into a window the estimate first allows one more request."""
        left = self._limit - current - 1
        if left < 0:
            return math.inf
        if left >= previous:
            return 0.0
        return self._period * (1 - left / previous)


class LeakyBucket:
    """Allows one request every `period / limit` seconds, without bursts."""

    def __init__(self, limit: int, period: float) -> None:
        self._interval = period / limit
        self._next = -math.inf

    def hit(self, now: float) -> float | None:
        """Count a request at `now`, if it is allowed."""
        wait = self._next - now
        if wait <= NOISE:
            self._next = now + self._interval
            return None
        return wait


ALGORITHMS: dict[str, Callable[[int, float], Limiter]] = {
    "sliding_log": SlidingLog,
    "fixed_window": FixedWindow,
    "token_bucket": TokenBucket,
    "sliding_counter": SlidingCounter,
    "leaky_bucket": LeakyBucket,
}
