"""A clock that only waiting moves."""

from dataclasses import dataclass, field
from typing import Any

from tap_public_jobs.api.throttle import Throttle


@dataclass
class FakeTime:
    """Time that passes only while a throttle waits, and how long it waited."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    def wait(self, seconds: float | None) -> None:
        assert seconds is not None
        self.waits.append(seconds)
        self.now += seconds

    def throttle(self, limit: int = 60, period: float = 60.0, **options: Any) -> Throttle:
        return Throttle(
            limit, period, clock=lambda: self.now, epoch=lambda: 0.0, wait=self.wait, **options
        )
