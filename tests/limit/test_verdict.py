"""What a response says, by its status and its headers."""

import time
from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from tap_public_jobs.limit.verdict import (
    FEW_TRIES,
    MAX_TRIES,
    Absent,
    Answer,
    Fault,
    Rejection,
    judge,
)

FEW = Fault("why", 0, FEW_TRIES)
ALL = Fault("why", 0, MAX_TRIES)
DOUBT = Fault("why", 0, MAX_TRIES, may_be_limit=True)


def verdict_of(status: int, headers: dict[str, str], *, key_has_worked: bool = True) -> object:
    found = CaseInsensitiveDict(headers)
    return judge("why", status, found, absent={404}, key_has_worked=key_has_worked)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {"Retry-After": "1", "RateLimit-Remaining": "0"}, Answer),
        (404, {}, Absent),
        (404, {"Retry-After": "1", "RateLimit-Remaining": "0"}, Absent),
        (401, {}, FEW),
        (401, {"Retry-After": "1"}, FEW),
        (410, {"Retry-After": "1"}, FEW),  # here, nobody asked for what may be absent
        *((status, {}, FEW) for status in (300, 304, 399, 400, 408, 421, 423, 425, 499)),
        (302, {"Retry-After": "1"}, FEW),
        (403, {}, DOUBT),
        (403, {"RateLimit-Remaining": "1"}, DOUBT),
        (503, {}, DOUBT),
        *((status, {}, ALL) for status in (103, 204, 206, 299, 500, 502, 504, 599)),
        (500, {"Retry-After": "1"}, ALL),
        (429, {}, Rejection),
        (403, {"X-RateLimit-Remaining": "0"}, Rejection),
        (503, {"ratelimit-remaining": "0"}, Rejection),
        (400, {"retry-after": "1"}, Rejection),
        (503, {"Retry-After": "1"}, Rejection),
    ],
)
def test_a_response_is_an_answer_a_rejection_or_a_fault(
    status: int, headers: dict[str, str], expected: Any
) -> None:
    """A fault is tried three times if the request is to blame, else eight times."""
    verdict = verdict_of(status, headers)

    if isinstance(expected, Fault):
        assert verdict == Fault("why", status, expected.tries, may_be_limit=expected.may_be_limit)
    else:
        assert type(verdict) is expected


def test_a_403_is_about_a_key_that_never_worked() -> None:
    assert verdict_of(403, {}, key_has_worked=False) == Fault("why", 403, FEW_TRIES)


NOON = 1_700_000_000.0


@pytest.mark.parametrize(
    ("said", "date", "wait"),
    [
        ("0", "", 1),
        ("3600", "", 3601),
        ("Tue, 14 Nov 2023 22:13:50 GMT", "", 31),
        # The server's clock is half an hour ahead of this one, or behind it.
        ("Tue, 14 Nov 2023 22:43:50 GMT", "Tue, 14 Nov 2023 22:43:20 GMT", 31),
        ("Tue, 14 Nov 2023 21:43:50 GMT", "Tue, 14 Nov 2023 21:43:20 GMT", 31),
        ("Tuesday, 14-Nov-23 22:13:50 GMT", "no date", 31),
        ("Fri, 15 Jan 2010 08:00:00 GMT", "", 1),
        # An hour at most, or it makes no sense.
        ("3601", "", None),
        ("9" * 5000, "", None),
        ("Fri, 15 Jan 9999 08:00:00 GMT", "", None),
        ("Fri, 15 Jan 9999999999 08:00:00 GMT", "", None),
        ("soon", "", None),
        ("-1", "", None),
        ("", "", None),
    ],
)
def test_a_rejection_says_how_long_to_wait_a_second_more_because_some_servers_round_down(
    monkeypatch: pytest.MonkeyPatch, said: str, date: str, wait: float | None
) -> None:
    """A date counts from that of the response, because clocks differ."""
    monkeypatch.setattr(time, "time", lambda: NOON)

    assert verdict_of(429, {"Retry-After": said, "Date": date}) == Rejection("why", 429, wait)
