"""The session of a run: connections, rejections and https, on real sockets."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from api.conftest import PAGE, Answered, Connect, response
from api.simulated import FakeTime
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from requests import Response

from tap_public_jobs.api import transport
from tap_public_jobs.api.models import JobRef
from tap_public_jobs.api.throttle import Throttle
from tap_public_jobs.api.transport import is_rejection, log_pacing, retry_after
from tap_public_jobs.errors import PublicJobsError

JOB = JobRef("id-1", "job-1")
DETAIL = response({"id": "id-1"})


# Connections, and what they carry.


def test_plain_http_does_not_go_through_a_proxy(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is for this computer alone; a proxy would read the key."""
    _, proxy = answered(DETAIL)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("http_proxy", proxy.url)
    api, server = answered(DETAIL)

    api.detail(JOB)

    assert (len(server.heads), proxy.connections) == (1, 0)


# The limit, and rejections.


def test_a_limit_that_allows_a_burst_of_its_size_never_rejects(connect: Connect) -> None:
    """Real threads read the list and every detail, and no window is fuller than the limit."""
    limit, jobs = 10, 12  # even a busy computer sends two requests within a tenth of a second
    options = Options(limit_requests=limit, limit_period=1.0, latency=0.01, jitter=0.02)
    sandbox, throttle = Sandbox.demo(jobs, options=options), Throttle(limit, 1.0)
    with serving(sandbox) as url, ThreadPoolExecutor(16) as threads:
        api = connect(url, sandbox.key, throttle=throttle, page_size=100)
        refs = [JobRef(item["id"], item["publicId"]) for item in api.page(1).items]
        details = list(threads.map(api.detail, refs))

    assert sorted(it["id"] for it in details) == sorted(job.id for job in refs)
    assert [request.status for request in sandbox.requests] == [200] * (1 + jobs)
    assert (throttle.requests, throttle.rejections) == (1 + jobs, 0)


def rejection(*headers: str, status: str = "429 Too Many Requests") -> bytes:
    return response(b"{}", status, *headers)


@pytest.mark.parametrize(
    ("answer", "status", "pause"),
    [
        (rejection("Retry-After: 0", status="403 Forbidden"), 403, 1.0169),
        (rejection("Retry-After: 7"), 429, 8),
        (rejection("Retry-After: soon"), 429, 60),
        (rejection(), 429, 60),
    ],
)
def test_a_rejected_request_is_sent_again_and_is_no_failed_try(
    answered: Answered, caplog: pytest.LogCaptureFixture, answer: bytes, status: int, pause: float
) -> None:
    """A second later than the server asks: some servers round down."""
    time = FakeTime()
    throttle = time.throttle()
    api, server = answered(answer, answer, PAGE, throttle=throttle)

    assert api.page(2).total == 0
    assert server.targets == ["/jobs?page=2&pageSize=10"] * 3
    assert (throttle.requests, throttle.rejections, api.retries) == (3, 2, 0)
    assert time.waits == pytest.approx([pause, 60], abs=0.001)
    assert [it.message[:20] for it in caplog.records] == [f"The API answered {status}"] * 2


@pytest.mark.parametrize(
    ("status", "pause", "words"),
    [
        (429, 1501.0, "is its rate limit. Pausing until 03:11:01 UTC (1,501.0 s), then"),
        (503, 0.0, "may be its rate limit. Sending at most one request every 2 s."),
    ],
)
def test_what_may_be_a_rejection_is_logged_with_the_pause_and_the_new_pace(
    caplog: pytest.LogCaptureFixture, status: int, pause: float, words: str
) -> None:
    log_pacing(Throttle(60, 60, epoch=lambda: 9_960.0), status, (pause, 2.0))

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(f"The API answered {status}, which {words}")
    assert "ending at most one request every 2 s. No action is needed;" in record.getMessage()


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {}, True),
        (429, {"Retry-After": "soon"}, True),
        (400, {"retry-after": "1"}, True),
        (503, {"Retry-After": "1"}, True),
        (403, {"X-RateLimit-Remaining": "0"}, True),
        (503, {"ratelimit-remaining": "0"}, True),
        (403, {"RateLimit-Remaining": "1"}, False),
        (404, {"RateLimit-Remaining": "0"}, False),
        (403, {}, False),
        (503, {}, False),
        (500, {"Retry-After": "1"}, False),
        (302, {"Retry-After": "1"}, False),
    ],
)
def test_a_rejection_is_429_or_says_when_to_try_again_or_that_no_request_is_left(
    status: int, headers: dict[str, str], expected: object
) -> None:
    response = Response()
    response.status_code = status
    response.headers.update(headers)

    assert is_rejection(response) is expected


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3600", 3601),
        ("3601", None),
        ("9" * 5000, None),
        ("", None),
        ("Fri, 15 Jan 2010 08:00:00 GMT", 1),
        ("Fri, 15 Jan 9999 08:00:00 GMT", None),
        ("Fri, 15 Jan 9999999999 08:00:00 GMT", None),
    ],
)
def test_retry_after_is_an_hour_at_most_or_makes_no_sense(
    value: str, seconds: float | None
) -> None:
    """And a second is added, because some servers round down."""
    assert retry_after({"Retry-After": value}) == seconds


@pytest.mark.usefixtures("no_waiting")
def test_every_attempt_frees_its_slot_whatever_becomes_of_it(
    answered: Answered, caplog: pytest.LogCaptureFixture
) -> None:
    """With one slot, a request that kept it would stop the next one for ever.

    No fault but 503 may be a rejection.
    """
    throttle = FakeTime().throttle(limit=1)
    api, server = answered(
        lambda connection, _: connection.shutdown(socket.SHUT_RDWR),
        b"not http\r\n\r\n",
        response(b"", "500 Internal Server Error"),
        rejection("Retry-After: 0"),
        response(b"x", "200 OK", "Content-Encoding: gzip"),
        DETAIL,
        throttle=throttle,
    )

    assert api.detail(JOB) == {"id": "id-1"}
    learnt_from = [it.getMessage() for it in caplog.records if it.name == transport.__name__]
    assert [line[:23] for line in learnt_from] == ["The API answered 429, w"]
    assert throttle.requests == len(server.heads) == 6


@pytest.mark.parametrize("by", ["http", "https", "proxy"])
def test_a_connection_is_not_used_again_after_five_idle_seconds(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """A load balancer may have forgotten it; one that is active stays.

    Under https, the certificate may be that of an authority of your own.
    """
    time = FakeTime()
    monkeypatch.setattr(transport, "monotonic", lambda: time.now)
    api, server = answered(PAGE, DETAIL, by=by)
    assert api.page(1).total == 0
    opened = []
    for seconds in (0, 4, 4, 6, 4):
        time.now += seconds
        assert api.detail(JOB) == {"id": "id-1"}
        opened.append(server.connections)

    assert opened == [1, 1, 1, 2, 2]


@pytest.mark.parametrize("by", ["https", "proxy"])
@pytest.mark.usefixtures("tls")
def test_a_certificate_that_is_not_trusted_is_named_at_once_and_gets_no_key(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Also if it is that of a proxy which decrypts TLS."""
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    api, server = answered(PAGE, by=by)

    said = "its certificate is not trusted .*certificate verify failed.* set REQUESTS_CA_BUNDLE"
    with pytest.raises(PublicJobsError, match=said):
        api.page(1)
    assert [head.split(" ")[0] for head in server.heads] == ["CONNECT"] * (by == "proxy")
