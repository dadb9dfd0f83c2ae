"""The session of a run: connections, https, and what a refusal means.

A run never takes a limit for a job's own fault, and a job stops no run.
"""

import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from random import Random, seed

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limit.simulated import Api, FakeTime
from public_jobs_sandbox.limits import ALGORITHMS, SlidingCounter
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from raw_server import DETAIL, JOB, PAGE, Answered, Connect, response
from typing_extensions import override

from tap_public_jobs.errors import TapError
from tap_public_jobs.limit import transport
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.limit.verdict import FEW_TRIES, MAX_TRIES
from tap_public_jobs.sync.source import JobRef

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


def test_no_other_password_is_sent_in_place_of_the_key(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password sesame\n")
    monkeypatch.setenv("NETRC", str(netrc))
    api, server = answered(DETAIL, by="https")

    api.detail(JOB)

    assert "\r\nAuthorization: Bearer a-key\r\n" in server.heads[0]


def test_a_cookie_goes_with_the_requests_after_it(answered: Answered) -> None:
    """With it, a load balancer sends them all to one replica, whose pages belong together."""
    page = response({"data": [], "total": 0}, "200 OK", "Set-Cookie: replica=2; Path=/")
    api, server = answered(page, DETAIL, DETAIL)

    api.page(1)
    api.detail(JOB)
    api.detail(JOB)

    assert ["Cookie: replica=2" in head for head in server.heads] == [False, True, True]


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
        assert api.detail(JOB)["id"] == "id-1"
        opened.append(server.connections)

    assert opened == [1, 1, 1, 2, 2]


@pytest.mark.parametrize("by", ["https", "proxy"])
@pytest.mark.usefixtures("tls")
def test_a_certificate_that_is_not_trusted_is_named_and_gets_no_key(
    answered: Answered, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Also if it is that of a proxy which decrypts TLS."""
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    api, server = answered(PAGE, by=by)

    said = "its certificate is not trusted.* set REQUESTS_CA_BUNDLE .*certificate verify failed"
    with pytest.raises(TapError, match=said):
        api.page(1)
    tries = FEW_TRIES if by == "proxy" else 0
    assert [head.split(" ")[0] for head in server.heads] == ["CONNECT"] * tries


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


@pytest.mark.parametrize(
    ("status", "header", "pause"),
    [
        (429, "", 60),
        (429, "Retry-After: soon", 60),
        (400, "retry-after: 1", 2),
        (503, "Retry-After: 1", 2),
        (403, "X-RateLimit-Remaining: 0", 60),
        (503, "ratelimit-remaining: 0", 60),
        (403, "Retry-After: 0", 60 / 59),  # never less than the even pace
        (429, "Retry-After: 3600", 3601),
    ],
)
def test_a_rejected_request_is_sent_again_and_is_no_failed_try(
    answered: Answered, caplog: pytest.LogCaptureFixture, status: int, header: str, pause: float
) -> None:
    """After a pause, in which nothing is sent, and after others, which may go first."""
    time = FakeTime()
    throttle = time.throttle()
    rejection = response(b"{}", f"{status} No", *filter(None, [header]))
    api, server = answered(rejection, rejection, PAGE, throttle=throttle)

    assert api.page(2).total == 0
    assert server.targets == ["/jobs?page=2&pageSize=10"] * 3
    assert (throttle.requests, throttle.rejections, api.retries) == (3, 2, 0)
    assert time.waits == pytest.approx([pause, max(pause, 60) + 60 / 59])
    assert [it.levelname for it in caplog.records] == ["WARNING"] * 2
    verb, until = "is" if status == 429 else "may be", timedelta(seconds=int(pause))
    assert caplog.messages[0].startswith(
        f"The API answered {status}, which {verb} its rate limit. Pausing until 0{until} UTC "
        f"({pause:,.1f} s), then sending at most one request every 1.02 s. No action is needed;"
    )


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
        response(b"", "503 No"),
        response(b"", "429 No", "Retry-After: 0"),
        response(b"x", "200 OK", "Content-Encoding: gzip"),
        DETAIL,
        throttle=throttle,
    )

    assert api.detail(JOB)["id"] == "id-1"
    assert [it.partition(" its rate")[0] for it in caplog.messages if "its rate limit" in it] == [
        "The API answered 503, which may be",
        "The API answered 429, which is",
    ]
    assert throttle.requests == len(server.heads) == 7


def test_a_429_pauses_for_a_period_until_the_api_has_answered(answered: Answered) -> None:
    """After a reset, too; then for an interval, which is enough for a limit without bursts."""
    time = FakeTime()
    reset, rejection = lambda it, _: it.shutdown(socket.SHUT_RDWR), response(b"", "429 No")
    api, _ = answered(reset, rejection, PAGE, rejection, PAGE, throttle=time.throttle())

    api.page(1)
    assert [*time.waits] == [60]
    api.page(1)
    assert len([it for it in time.waits if it > 59]) == 1


# A refusal: the limit or a single job.


JOBS = 40
PAGE_1 = "jobs?page=1&pageSize=100"

# Statuses of rejections, and headers, in which `{}` is the whole seconds until the next one.
BARE: tuple[int, dict[str, str]] = (403, {})
REJECTIONS = [
    BARE,
    (403, {"X-RateLimit-Remaining": "0"}),
    (429, {}),
    (429, {"Retry-After": "{}"}),
    (503, {"Retry-After": "{}"}),
    (503, {"X-RateLimit-Remaining": "0"}),
]
tenths = st.integers(0, 20).map(lambda it: it / 10)


def limited(limit: int) -> st.SearchStrategy[Api]:
    """An API that counts in any way, and allows what the run expects or half of it.

    Not half of it with a bare 403, which may be about the job, so that a job has eight tries: by
    chance, all those of a healthy job may be rejected, and it fails until the next run.
    """
    names = st.sampled_from([f"job-{it}" for it in range(JOBS)])
    return st.builds(
        Api,
        algorithm=st.sampled_from(sorted(ALGORITHMS)),
        limit=st.just(limit),
        period=st.just(float(limit)),
        threads=st.integers(1, 10),
        delays=st.lists(st.tuples(tenths, tenths), min_size=1, max_size=20),
        others=st.sampled_from([0, limit - limit // 2]),
        reject_with=st.sampled_from(REJECTIONS),
        bad=st.dictionaries(names, st.sampled_from([401, 403, 429]), max_size=3),
        time=st.builds(FakeTime, st.floats(0, 20)),
    ).filter(lambda api: not api.others or api.reject_with != BARE)


@given(api=st.integers(4, 12).flatmap(limited))
def test_whatever_a_limit_rejects_with_only_the_jobs_that_are_always_refused_fail(api: Api) -> None:
    """Even if the limit is half of what the run expects."""
    api.read(JOBS)

    assert sorted(api.refused) == sorted(api.bad)
    assert sorted(api.fetched + api.refused) == sorted(f"job-{it}" for it in range(JOBS))


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_bare_403_beside_another_client_fails_hardly_a_job_and_none_before_eight_tries(
    algorithm: str,
) -> None:
    """As `limited` says, which leaves that to chance; here, the waits are always the same."""
    seed(0)
    api = Api(algorithm, others=30, threads=6, reject_with=BARE)

    api.read(300)

    assert len(api.refused) <= 1
    assert [it for it in api.refused if api.seen.count((it, 403)) != MAX_TRIES] == []
    assert sorted(api.fetched + api.refused) == sorted(f"job-{it}" for it in range(300))


@pytest.mark.parametrize("number", [0, 59, 150, 299])
@pytest.mark.parametrize(
    ("status", "sent", "most", "most_if_last"),
    [(401, 3, 1.02, 1.02), (423, 3, 1.02, 1.02), (403, 8, 1.5, 1.5), (429, 10, 1.25, 2.8)],
)
def test_a_single_job_that_is_refused_costs_a_run_little(
    number: int, status: int, sent: int, most: float, most_if_last: float
) -> None:
    """A 403 costs the backoff of eight tries, which is random, and two minutes at most.

    A 429 costs nine periods if no other request is left to show that the limit has room.
    """
    name = f"job-{number}"
    api = Api("sliding_log", bad={name: status})
    healthy = Api("sliding_log")

    seconds = api.read(300)

    assert seconds < (most_if_last if number == 299 else most) * healthy.read(300)
    assert api.refused == [name]
    assert len(api.fetched) == 299
    assert api.seen.count((name, status)) == sent


def test_a_job_that_is_always_rejected_slows_no_other() -> None:
    """Those that are answered in between show that the limit has room."""
    api = Api("sliding_log", bad={"job-150": 429})

    api.read(300)

    assert api.throttle._pace.lessons == 1


@pytest.mark.parametrize("reject_with", [(429, {"Retry-After": "{}"}), (429, {}), (503, {})])
@pytest.mark.parametrize(
    ("round_trip", "noise", "pages", "most"),
    [(0.3, 0, 1, 1.06), (0.5, 0, 3, 1.06), (0.6, 0, 3, 1.06), (0.3, 0.06, 3, 1.15)],
)
def test_a_limit_without_bursts_costs_little_more_than_the_least_time(
    reject_with: tuple[int, dict[str, str]],
    round_trip: float,
    noise: float,
    pages: int,
    most: float,
) -> None:
    """Whether it says how long to wait or not; an interval for each request is the least time.

    If the network lets even requests catch up with each other, that pauses no whole period.
    """
    random = Random(0)  # noqa: S311  # always the same
    each = round_trip / 2
    delays = [(each + random.uniform(0, noise), each + random.uniform(0, noise)) for _ in range(97)]
    api = Api("leaky_bucket", delays=delays, reject_with=reject_with)

    assert api.read(300, pages=pages) < most * (299 + pages)
    assert len(api.fetched) == 300
    assert sum(status != 200 for _, status in api.seen) <= 20


class CountsRejections(SlidingCounter):
    """A sliding counter that counts what it rejects, as HAProxy's `http_req_rate` does."""

    @override
    def hit(self, now: float) -> float | None:
        wait = super().hit(now)
        self._current += wait is not None
        return wait


def test_a_limit_that_counts_what_it_rejects_rejects_few_requests() -> None:
    into_a_window = FakeTime(1010.0)
    api = Api(threads=1, limiter=CountsRejections(60, 60.0), time=into_a_window)

    assert api.read(180) < 190
    assert sum(status != 200 for _, status in api.seen) <= 4
