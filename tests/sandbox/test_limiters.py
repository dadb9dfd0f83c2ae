"""Each algorithm allows requests up to the limit, rejects more, and returns when to retry."""

import pytest
from public_jobs_sandbox.limits import ALGORITHMS

LIMIT, PERIOD = 4, 60.0


# Times of requests, in seconds; behind a colon, how long a rejected one has to wait.
@pytest.mark.parametrize(
    ("algorithm", "requests"),
    [
        # The oldest request expires after a period.
        ("sliding_log", "0 10 20 30 59:1 60 61:9"),
        # Two bursts fit around a multiple of the period.
        ("fixed_window", "59 59 59 59 59:1 60 60 60 60 61:59"),
        # A burst, then one more every 15 s.
        ("token_bucket", "0 0 0 0 0:15 15 16:14 45 45 45:15"),
        # A burst still counts in the next window, and an idle window resets the count.
        ("sliding_counter", "59 59 59 59 59:16 60:15 75 75:15 90"),
        ("sliding_counter", "0 0 0 0 120 120 120 120"),
        # One request every 15 s, and no burst after a pause.
        ("leaky_bucket", "0 0:15 14:1 15 29:1 30 300 301:14"),
    ],
)
def test_each_algorithm_counts_in_its_own_way(algorithm: str, requests: str) -> None:
    limiter = ALGORITHMS[algorithm](LIMIT, PERIOD)

    for time, _, wait in (it.partition(":") for it in requests.split()):
        assert limiter.hit(float(time)) == (float(wait) if wait else None)
