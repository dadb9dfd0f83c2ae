"""The session of a run: connections, rejections and https, on real sockets."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from api.raw_server import PAGE, answering, raw_server, response
from requests import Response

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.api.throttle import MARGIN, Throttle
from tap_public_jobs.api.transport import MAX_REJECTIONS, is_rejection, retry_after
from tap_public_jobs.errors import (
    PublicJobsError,
    RateLimitedError,
)

if TYPE_CHECKING:
    import ssl

    from api.conftest import Connect

JOB = JobRef("id-1", "job-1")
DETAIL = response({"id": "id-1"})


# Connections, and what they carry.


def test_plain_http_does_not_go_through_a_proxy(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is for this computer alone; a proxy would read the key."""
    with raw_server(answering(DETAIL)) as proxy, raw_server(answering(DETAIL)) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        connect(server.url).detail(JOB)

    assert (len(server.heads), proxy.connections) == (1, 0)


# Rejections.


def rejection(*headers: str, status: str = "429 Too Many Requests") -> bytes:
    return response(b"{}", status, *headers)


@pytest.mark.parametrize(
    "answer",
    [
        rejection("Retry-After: 0", status="403 Forbidden"),
        rejection("Retry-After: soon"),
        rejection(),
    ],
)
def test_a_rejected_request_is_sent_again_and_is_no_failed_try(
    connect: Connect, answer: bytes
) -> None:
    retries: list[int] = []
    paces: list[tuple[float, float]] = []
    throttle = Throttle(1000, 0.01)
    with raw_server(answering(answer, answer, DETAIL)) as server:
        api = connect(
            server.url,
            throttle=throttle,
            on_pacing=lambda *pace: paces.append(pace),
            on_retry=lambda: retries.append(1),
        )
        assert api.detail(JOB) == {"id": "id-1"}

    assert server.targets == ["/jobs/job-1"] * 3
    assert (throttle.requests, throttle.rejections) == (3, 2)
    assert [interval for _, interval in paces] == [pytest.approx(MARGIN * 0.01 / 999)] * 2
    assert retries == []


REJECTED = rejection("Retry-After: 0", status="503 Service Unavailable")


def test_a_list_that_is_rejected_ten_times_too_ends_the_run_with_the_remedy(
    connect: Connect,
) -> None:
    throttle = Throttle(1000, 0.001)
    with raw_server(answering(REJECTED)) as server:
        api = connect(server.url, throttle=throttle)
        with pytest.raises(RateLimitedError, match="10 times in a row") as caught:
            api.detail(JOB)

    assert "Use one key per integration" in str(caught.value)
    assert server.targets == [
        *["/jobs/job-1"] * MAX_REJECTIONS,
        *["/jobs?page=1&pageSize=10"] * MAX_REJECTIONS,
    ]
    assert throttle.rejections == 2 * MAX_REJECTIONS


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {}, True),
        (429, {"Retry-After": "soon"}, True),
        (403, {"retry-after": "1"}, True),
        (503, {"Retry-After": "1"}, True),
        (403, {}, False),
        (503, {}, False),
        (500, {"Retry-After": "1"}, False),
        (302, {"Retry-After": "1"}, False),
    ],
)
def test_a_rejection_is_429_or_says_when_to_try_again(
    status: int, headers: dict[str, str], expected: object
) -> None:
    response = Response()
    response.status_code = status
    response.headers.update(headers)

    assert is_rejection(response) is expected


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3600", 3600),
        ("3601", None),
        ("9" * 5000, None),
        ("", None),
        ("Fri, 15 Jan 2010 08:00:00 GMT", 0),
        ("Fri, 15 Jan 9999 08:00:00 GMT", None),
    ],
)
def test_retry_after_is_an_hour_at_most_or_makes_no_sense(
    value: str, seconds: float | None
) -> None:
    assert retry_after({"Retry-After": value}) == seconds


@pytest.mark.usefixtures("no_waiting")
def test_every_attempt_frees_its_slot_whatever_becomes_of_it(connect: Connect) -> None:
    """With one slot, a request that kept it would stop the next one for ever."""
    throttle = Throttle(1, 0.001)

    def answer(connection: socket.socket, _: str) -> None:
        if len(server.heads) == 1:
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.sendall(answers.pop(0))

    answers = [
        b"not http\r\n\r\n",
        rejection("Retry-After: 0"),
        response(b"", "500 Internal Server Error"),
        response(b"x", "200 OK", "Content-Encoding: gzip"),
        DETAIL,
    ]
    with raw_server(answer) as server:
        assert connect(server.url, throttle=throttle).detail(JOB) == {"id": "id-1"}

    assert answers == []
    assert throttle.requests == len(server.heads) == 6


# https.


@pytest.mark.usefixtures("_trusted")
def test_https_works_with_an_authority_of_your_own_and_keeps_its_connection(
    connect: Connect, tls: ssl.SSLContext
) -> None:
    with raw_server(answering(PAGE, DETAIL), tls) as server:
        api = connect(server.url)
        assert api.page(1).total == 0
        assert api.detail(JOB) == {"id": "id-1"}

    assert (len(server.heads), server.connections) == (2, 1)


def test_a_certificate_that_is_not_trusted_is_named_at_once_and_gets_no_key(
    connect: Connect, tls: ssl.SSLContext
) -> None:
    with (
        raw_server(answering(PAGE), tls) as server,
        pytest.raises(PublicJobsError, match="certificate verify failed") as caught,
    ):
        connect(server.url).page(1)

    assert "set REQUESTS_CA_BUNDLE" in str(caught.value)
    assert server.heads == []
