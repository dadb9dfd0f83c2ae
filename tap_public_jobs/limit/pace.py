"""What rejections teach: how far apart to send requests, or one at a time. Knows no clock."""

import math
from dataclasses import dataclass

# Requests in flight after the first response, until this many more have come.
FEW = 3

# Responses that may be rejections count as faults if they are at most one in this many.
FEW_IN = 16

# The part of the shortest round trip by which a request goes out earlier.
EARLY = 0.9

# How many lessons there are about the server. Further ones are about other clients of the key.
LESSONS = 3

# By how much of the interval each of those slows down, and how many count with those three.
SLOWER, MOST_LESSONS = 0.25, 11


@dataclass
class Pace:
    """How far apart requests are sent: at first, as fast as the limit allows.

    How a server measures its limit is rarely documented, and some ways of measuring reject even a
    run that never sends more than `limit` requests per `period`.
    These lessons are enough for all of them, whatever the network:

    1. After a rejection requests go out evenly, `period / (limit - 1)` apart: a server that
       estimates its window from the one before allows one request less.
    2. If one is rejected again, for instance because the network let two requests catch up with
       each other where no burst is allowed, they go out one at a time, so that they are the even
       interval apart at the server: each that long after the response to the one before, less most
       of the shortest round trip.
    3. After one more rejection, nothing is taken off, which is right whatever the network.

    What is rejected after that, is so because another client of the key takes a part of the limit.
    Each such rejection adds a quarter to the interval, until it is three times as long, and each
    period without one takes a quarter away. Each is also followed by a pause of two intervals, and
    of twice as many after each further one in a row, up to a period.

    The first response that may be a rejection or a fault counts as a rejection. Later ones count
    only once there are more than `FEW`, and more than one per `FEW_IN` answers.
    Several in a row count as one, because a server that is down is no limit. They teach nothing
    about other clients, because jobs that are always refused would slow down the rest.

    Attributes:
        limit: Requests per period.
        period: Seconds.
        lessons: How many rejections taught something, but for those whose time is over.
        in_a_row: How many rejections have taught something since a later request was answered.
        last_answered: When the last request was sent of those that were answered.
    """

    limit: int
    period: float
    lessons: int = 0
    in_a_row: int = 0
    last_answered: float = -math.inf
    _answers: int = 0
    _doubts: int = 0  # responses that may be rejections, one for each row of them
    _is_up: bool = True
    _last_lesson_at: float = -math.inf
    _shortest: float = math.inf  # round trip

    @property
    def interval(self) -> float:
        """The seconds between two requests now."""
        # Under a limit of 1, a server that estimates its window needs an empty one in between.
        shortest = self.period / max(self.limit - 1, 0.5) if self.lessons else 0.0
        return shortest * (1 + SLOWER * max(0, self.lessons - LESSONS))

    @property
    def pause(self) -> float:
        """The seconds of the pause after the third lesson or a further one."""
        return min(self.period, math.ldexp(self.interval, min(self.in_a_row, 60)))

    @property
    def after_response(self) -> float:
        """The seconds from a response to the next request."""
        if not self._is_one_at_a_time:
            return 0.0
        return self.interval - (EARLY * self._shortest if self.lessons < LESSONS else 0.0)

    @property
    def most_in_flight(self) -> int:
        """How many requests may be in flight."""
        # A limit without bursts rejects the second request. To find that out should cost few
        # rejections, not one for each worker.
        if self._is_one_at_a_time or self._answers == 0:
            return 1
        return FEW if self._answers <= FEW else self.limit

    @property
    def _is_one_at_a_time(self) -> bool:
        return self.lessons >= 2  # noqa: PLR2004

    def note_round_trip(self, seconds: float) -> None:
        """Note how long a response took."""
        self._shortest = min(self._shortest, seconds)

    def note_answer(self, sent: float) -> None:
        """Note a response that is no rejection."""
        self._answers += 1
        self.last_answered = max(self.last_answered, sent)
        self._is_up = True
        if not self.has_learned_since(sent):
            self.in_a_row = 0
        if self.lessons > LESSONS and sent > self._last_lesson_at + self.period:
            self.lessons -= 1  # the others may have gone
            self._last_lesson_at = sent

    def note_doubt(self, sent: float, now: float) -> bool:
        """Note a response that may be a rejection; returns whether it is a lesson."""
        self._doubts += self._is_up
        self._is_up = False
        is_limit = self._doubts > max(FEW, self._answers / FEW_IN)
        is_news = self.lessons < LESSONS and (is_limit or not self.lessons)
        return is_news and self.note_rejection(sent, now)

    def note_rejection(self, sent: float, now: float) -> bool:
        """Note a rejection; returns whether it is a lesson.

        One more rejection of the burst that taught the last lesson teaches nothing.
        """
        if self.has_learned_since(sent):
            return False
        # One more in a row does not show what others take.
        if self.lessons < (LESSONS if self.in_a_row else MOST_LESSONS):
            self.lessons += 1
        self.in_a_row += 1
        self._last_lesson_at = now
        return True

    def has_learned_since(self, sent: float) -> bool:
        """Return whether there was a lesson since a request was sent."""
        return sent <= self._last_lesson_at
