"""Each algorithm allows requests up to the limit, rejects more, and returns when to retry."""

from __future__ import annotations

import pytest
from public_jobs_sandbox.limits import ALGORITHMS

LIMIT, PERIOD = 4, 60.0


@pytest.mark.parametrize(
    ("algorithm", "times", "expected"),
    [
        pytest.param(
            "sliding_log",
            [0, 10, 20, 30, 59, 60, 61],
            [None, None, None, None, 1, None, 9],
            id="sliding_log: the oldest request expires after a period",
        ),
        pytest.param(
            "fixed_window",
            [59, 59, 59, 59, 59, 60, 60, 60, 60, 61],
            [None, None, None, None, 1, None, None, None, None, 59],
            id="fixed_window: two bursts fit around a multiple of the period",
        ),
        pytest.param(
            "token_bucket",
            [0, 0, 0, 0, 0, 15, 16, 45, 45, 45],
            [None, None, None, None, 15, None, 14, None, None, 15],
            id="token_bucket: a burst, then one more every 15 s",
        ),
        pytest.param(
            "sliding_counter",
            [59, 59, 59, 59, 59, 60, 75, 75, 90],
            [None, None, None, None, 16, 15, None, 15, None],
            id="sliding_counter: a burst still counts in the next window",
        ),
        pytest.param(
            "sliding_counter",
            [0, 0, 0, 0, 120, 120, 120, 120],
            [None] * 8,
            id="sliding_counter: an idle window resets the count",
        ),
        pytest.param(
            "leaky_bucket",
            [0, 0, 14, 15, 29, 30, 300, 301],
            [None, 15, 1, None, 1, None, None, 14],
            id="leaky_bucket: one request every 15 s, and no burst after a pause",
        ),
    ],
)
def test_each_algorithm_counts_in_its_own_way(
    algorithm: str, times: list[float], expected: list[float | None]
) -> None:
    limiter = ALGORITHMS[algorithm](LIMIT, PERIOD)

    assert [limiter.hit(time) for time in times] == expected
