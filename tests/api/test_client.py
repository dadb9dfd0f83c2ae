"""What is requested, what a response means, and what is retried."""

import random
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from unittest import mock
from urllib.parse import quote

import pytest
from harness import paths
from limit.simulated import FakeTime
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from raw_server import DETAIL, JOB, PAGE, Answered, Connect, response, unused_port

from tap_public_jobs import lines
from tap_public_jobs.api.client import API_PATH as API
from tap_public_jobs.errors import (
    NotFoundError,
    PageError,
    RequestError,
    TapError,
)
from tap_public_jobs.limit import transport
from tap_public_jobs.limit.throttle import Throttle
from tap_public_jobs.limit.transport import MAX_REJECTIONS
from tap_public_jobs.limit.verdict import FEW_TRIES, MAX_TRIES
from tap_public_jobs.lines import shortened
from tap_public_jobs.sync.source import JobRef, Page

KEY = "pj_5f3de1c7a902"

# Faults of the sandbox that another try may mend, once the API has answered.
TRANSIENT = [
    "reset", "cut_body", "cut_chunked", "http_500", "http_502", "http_503", "http_504",
    "empty_body", "not_json", "html", "wrong_shape", "json_list", "json_null",
]  # fmt: skip


# What is requested, and what comes back.


@pytest.mark.parametrize(
    ("size", "total", "expected"),
    [
        ("5", "7", (5, 7)),
        ('"1000000000"', "1e9", (10**9, 10**9)),
        ("0", "null", (10, None)),
        ('"5"', '"130"', (5, 130)),
        ('"5.0"', "-1", (10, None)),
        ('"99999999999"', '"-1"', (10, None)),
        ("true", "1000000001", (10, None)),
        ("1e-999999", "1e9999999999999999999", (10, None)),  # to convert one would take hours
    ],
)
def test_numbers_that_make_no_sense_are_no_numbers(
    answered: Answered, size: str, total: str, expected: tuple[int, int | None]
) -> None:
    api, _ = answered(response(f'{{"data": [], "pageSize": {size}, "total": {total}}}'.encode()))

    assert api.page(1) == Page([], *expected)


A_PROXY = "http://proxy.example.com"

HOSTILE = [
    "a/b", "../../admin", "..", ".", "...", "?page=2", "#top", "%2F", "%2e%2e", "100%", "a b",
    "+", "&=;", "ä-ö-ü", "日本語", "🙂", "'\"`", "<b>", "\\", "\x00", "\x01", "\r\nX: y", " ",
    "x" * 300, "jobs", "null", "{id}", "//host/x", "http://host/", "@:,!$*()[]~_-",
]  # fmt: skip


def test_public_ids_of_any_characters_are_one_path_segment_below_any_base_url(
    connect: Connect,
) -> None:
    """It may have a path, and end with slashes."""
    sandbox = Sandbox(Options(limited=False, path_prefix="/eu"))
    template = Sandbox.demo(jobs=1).organisation.published()[0].job
    for number, public_id in enumerate(HOSTILE):
        sandbox.publish(template | {"id": str(number), "publicId": public_id})
    with serving(sandbox) as url:
        api = connect(url + "//", sandbox.key)
        assert api.page(1).total == len(HOSTILE)
        details = [api.detail(JobRef(str(n), it)) for n, it in enumerate(HOSTILE)]

    assert [detail["publicId"] for detail in details] == HOSTILE
    dots = {".": "%2E", "..": "%2E%2E", "...": "%2E%2E%2E"}
    segments = [dots.get(it, quote(it, safe="")) for it in HOSTILE]
    jobs = f"/eu{API}/jobs"
    assert [it.path for it in sandbox.requests] == [jobs, *(f"{jobs}/{it}" for it in segments)]


# What is retried.


@pytest.mark.parametrize("kind", TRANSIENT)
def test_a_fault_is_tried_eight_times_and_described(
    connect: Connect, base_url: str, sandbox: Sandbox, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    api = connect(base_url, sandbox.key)
    first = api.page(1).items[0]
    job = JobRef(first["id"], first["publicId"])
    sandbox.fail_next(kind, times=3 * MAX_TRIES + 2)

    with pytest.raises(RequestError, match=r".*, after 8 tries$") as detail:
        api.detail(job)
    with pytest.raises(PageError, match=r"Page 2 of the list .*, after 8 tries\.") as page:
        api.page(2)
    with pytest.raises(RequestError, match=r".*, after 3 tries$"):
        api.detail(job, 3)
    assert api.detail(job)["id"] == job.id

    each = [f"/jobs/{job.public_id}"] * MAX_TRIES
    second = ["/jobs?page=2"] * MAX_TRIES
    assert paths(sandbox.requests) == ["/jobs?page=1", *each, *second, *each[:3], *each]
    assert f"{API}/jobs/{job.public_id}: " in str(detail.value)
    assert f"{API}/jobs?page=2&pageSize=10: " in str(page.value)
    assert "\n" not in f"{detail.value}{page.value}"
    assert api.retries == 3 * (MAX_TRIES - 1) + 2
    said = [it.levelname for it in caplog.records if it.message.startswith("Try ")]
    assert said == ["WARNING"] * api.retries
    assert re.match(r"Try 7 of 8 failed: .+\. Trying again in \d+\.\d s\.", caplog.messages[-1])


@pytest.mark.parametrize(
    "answer",
    [
        # Odd ones, and those that a gateway, a cache or a lock answers in passing.
        *(
            response(b"", f"{it} No")
            for it in (103, 204, 299, 304, 302, 400, 408, 421, 423, 425, 451, 499, 599)
        ),
        # A detail, and another object with an id, whose status says that they are none.
        DETAIL.replace(b"200 OK", b"500 Oops"),
        response({"id": "id-1", "error": "down"}, "500 Oops"),
        # Objects that show neither key of the job.
        *(response(it) for it in ({}, {"id": 1}, {"publicId": "job-2"}, {"data": {"id": "id-1"}})),
        b"",  # None in time.
    ],
)
def test_other_answers_that_may_pass_are_retried(answered: Answered, answer: bytes) -> None:
    api, server = answered(answer, DETAIL, timeout=10.0 if answer else 0.5)

    assert api.detail(JOB)["id"] == "id-1"
    assert len(server.heads) > 1  # a busy computer may be late more than once


@pytest.mark.parametrize(
    "status", [301, 304, 307, 400, 401, 403, 404, 410, 418, 421, 423, 425, 451, 500, 503]
)
def test_what_an_api_says_in_passing_on_page_1_ends_no_run(answered: Answered, status: int) -> None:
    """Nor does a web page, as of a gateway that restarts, even in a first run."""
    passing = response(b"<html>", f"{status} No", "Content-Type: text/html")
    page = response(b"<html>", "200 OK", "Content-Type: text/html")
    api, server = answered(passing, page, PAGE, throttle=Throttle(1000, 0.001))

    assert api.page(1) == Page([], 10, 0)
    assert (len(server.heads), api.retries) == (3, 2)


def test_waits_between_tries_double_and_vary(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is drawn from everything up to twice the longest one before."""
    monkeypatch.setattr(random, "uniform", lambda low, high: low + 0.75 * (high - low))
    time = FakeTime()
    api, _ = answered(response(b"", "500 Oops"), throttle=time.throttle())
    monkeypatch.setattr(transport, "FIRST_WAIT", 1.0)

    with pytest.raises(RequestError):
        api.detail(JOB)

    assert time.waits == [0.75 * longest for longest in (1, 2, 4, 8, 16, 32, 64)]


# What is refused.


NOT_THE_API = (
    "The tables are right, but not up to date. base_url does not look like the Public Jobs API: 127"
    rf".*{API}/jobs\?page=1&pageSize=10: {{}}, after 3 tries\. Set base_url to .* {API};"
)
UNREAD = "Page {} of the list of jobs cannot be read: .*response is {} No, after {} tries"


@pytest.mark.parametrize(
    ("number", "answer", "error", "said"),
    [
        (1, "401 No", TapError, r"the key \(401\)\. Compare TAP_PUBLIC_JOBS_API_KEY in"),
        (
            1,
            "403 No",
            TapError,
            r"API answered 403 \(.*page=1.*\)\. .* plan lacks the public API: ask",
        ),
        (1, "404 No", TapError, NOT_THE_API.format("the response is 404 No")),
        (1, "304 No", TapError, NOT_THE_API.format("the response is 304 No")),
        (1, "399 No", TapError, NOT_THE_API.format("the response is 399 No")),
        (1, "200 OK", TapError, NOT_THE_API.format("the response is a web page")),
        (1, "400 No", PageError, UNREAD.format(1, 400, 3)),
        (1, "423 No", PageError, UNREAD.format(1, 423, 3)),
        (4, "404 No", PageError, UNREAD.format(4, 404, 3)),
        (4, "302 No", PageError, UNREAD.format(4, 302, 3)),
        (1, "500 No", PageError, UNREAD.format(1, 500, 8)),
        (4, "206 No", PageError, UNREAD.format(4, 206, 8)),
    ],
)
def test_a_page_that_stays_refused_is_an_error_with_its_remedy(
    answered: Answered, number: int, answer: str, error: type[TapError], said: str
) -> None:
    """After three tries if the request is to blame, which takes some two seconds.

    Whether a page after the first one matters depends on how far the list goes.
    """
    api, server = answered(response(b"", f"{answer}", "Content-Type: text/html"))

    with pytest.raises(error, match=said) as caught:
        api.page(number)

    assert type(caught.value) is error
    if isinstance(caught.value, PageError):
        assert caught.value.status == int(answer[:3])
    assert len(server.heads) == (MAX_TRIES if "8 tries" in said else FEW_TRIES)


def refusal(status: str) -> bytes:
    return response(b"{}", f"{status} No", *["RateLimit-Remaining: 0"] * (status == "503"))


@pytest.mark.parametrize(("status", "tries"), [("401", FEW_TRIES), ("403", MAX_TRIES)])
def test_a_refused_detail_whose_list_is_answered_is_this_one_job(
    answered: Answered, status: str, tries: int
) -> None:
    """A 403 may be the rate limit, so it is tried again, as a bare 503 is."""
    answers = [PAGE, *[refusal(status)] * tries, PAGE]
    api, server = answered(*answers, throttle=Throttle(1000, 0.001))
    api.page(1)

    with pytest.raises(
        RequestError, match=rf"{API}/jobs/job-1: the response is {status}"
    ) as caught:
        api.detail(JOB)

    assert caught.value.status == int(status)
    page = "/jobs?page=1&pageSize=10"
    assert server.targets == [page, *["/jobs/job-1"] * tries, page]


def test_a_key_that_is_refused_after_a_job_was_ends_the_run(answered: Answered) -> None:
    refused = [refusal("401")] * FEW_TRIES
    api, _ = answered(*refused, PAGE, *refused, refusal("401"), throttle=Throttle(1000, 0.001))

    with pytest.raises(RequestError, match="the response is 401"):
        api.detail(JOB)
    with pytest.raises(TapError, match="The API refused the key"):
        api.detail(JOB)


@pytest.mark.parametrize(("key_has_worked", "lessons"), [(True, 1), (False, 0)])
def test_a_403_may_be_the_limit_if_the_key_has_worked_in_an_earlier_run(
    answered: Answered, key_has_worked: bool, lessons: int
) -> None:
    """Then the throttle learns from it."""
    throttle = Throttle(1000, 0.001)
    api, _ = answered(refusal("403"), PAGE, throttle=throttle, key_has_worked=key_has_worked)

    assert api.page(1).total == 0
    assert throttle._pace.lessons == lessons


def test_a_403_is_about_a_key_that_never_worked(answered: Answered) -> None:
    """Also if something else than the API's data came before it."""
    throttle = Throttle(1000, 0.001)
    api, server = answered(response(b"", "500 Oops"), refusal("403"), throttle=throttle)

    with pytest.raises(TapError, match="If this key never worked"):
        api.page(1)
    assert len(server.heads) == FEW_TRIES
    assert throttle._pace.lessons == 0


def test_details_that_are_refused_at_once_ask_for_page_1_together(answered: Answered) -> None:
    api, _ = answered(PAGE)
    all_sent, error = threading.Barrier(8), RequestError("refused", 401)

    def refuse(*_: object, **__: object) -> None:
        all_sent.wait()
        raise error

    def detail(_: int) -> str:
        with pytest.raises(RequestError, match="refused"):
            api.detail(JOB)
        return "refused"

    with (
        mock.patch.object(api.session, "fetch", refuse),
        mock.patch.object(api, "page") as page,
        ThreadPoolExecutor(8) as pool,
    ):
        assert [*pool.map(detail, range(8))] == ["refused"] * 8

    page.assert_called_once_with(1)


def test_a_detail_that_is_always_rejected_is_this_one_job(answered: Answered) -> None:
    """No other request is sent to find out whose fault it is."""
    api, server = answered(refusal("503"), throttle=FakeTime().throttle())

    with pytest.raises(RequestError, match="the response is 503"):
        api.detail(JOB)

    assert server.targets == ["/jobs/job-1"] * MAX_REJECTIONS


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("401", "The API refused the key"),
        ("403", "The API answered 403"),
        ("503", "10 times in a row: .* is 503 No. If it is not down .*: use one key per"),
    ],
)
def test_a_page_that_is_refused_ends_the_run(answered: Answered, status: str, said: str) -> None:
    """Also page 1 after a detail that is refused."""
    api, _ = answered(refusal(status), throttle=Throttle(1000, 0.001))

    fetch = partial(api.page, 2) if status == "503" else partial(api.detail, JOB)
    with pytest.raises(TapError, match=said):
        fetch()


@pytest.mark.parametrize(
    "status",
    ["300 Any", "499 Client Closed", "404 No", "410 Gone", f"451 Not\x0b  here {'x' * 1000}"],
)
def test_any_other_3xx_or_4xx_that_stays_refuses_one_detail(
    answered: Answered, status: str
) -> None:
    """404 and 410 answer that the job is not published. What a server says is quoted in short."""
    api, server = answered(response(b"", status, "Location: http://["))  # which is not even read

    with pytest.raises(RequestError) as caught:
        api.detail(JOB)

    is_absent = status[:3] in {"404", "410"}
    said = f"{status[:3]} {shortened(status[4:], 200)}{'' if is_absent else ', after 3 tries'}"
    assert f"{server.url}{API}/jobs/job-1: the response is {said}" == f"http://{caught.value}"
    assert caught.value.status == int(status[:3])
    assert isinstance(caught.value, NotFoundError) is is_absent
    assert server.targets == ["/jobs/job-1"] * (1 if is_absent else FEW_TRIES)


def test_a_redirect_is_not_followed_to_another_host(answered: Answered) -> None:
    """It would carry the key to wherever it points."""
    _, thief = answered(DETAIL)
    moved = response(b"", "302 Found", f"Location: {thief.url}{API}/jobs/job-1")
    api, server = answered(moved)

    with pytest.raises(RequestError, match="302 Found"):
        api.detail(JOB)
    with pytest.raises(TapError, match=r"does not look like .* 302 Found"):
        api.page(1)

    assert thief.connections == 0
    assert len(server.heads) == 2 * FEW_TRIES


def test_the_detail_of_another_job_is_no_detail_of_this_one(answered: Answered) -> None:
    """Two rows would have one key. A publicId that a webhook named may belong to any job."""
    api, server = answered(response({"id": "id-2", "publicId": "job-1"}))

    with pytest.raises(NotFoundError, match="'job-1' now belongs to another job"):
        api.detail(JOB)
    assert api.detail(JobRef("", "job-1"))["id"] == "id-2"
    assert server.targets == ["/jobs/job-1"] * 2


@pytest.mark.parametrize(
    "document",
    [{"id": "id-1"}, {"id": None, "publicId": "job-1"}, {"id": "id-1", "publicId": "renamed"}],
)
def test_a_detail_may_omit_one_of_its_keys(answered: Answered, document: dict[str, Any]) -> None:
    """Which fields a detail always has is not documented."""
    api, _ = answered(response(document))

    assert api.detail(JOB) == document


# What is not the API.


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("http", r"nothing listens at that port: .* correct base_url \(.*Connection refused\)"),
        ("https", r"it does not answer with TLS: correct base_url.* \(\[SSL: WRONG_VERSION.*\)"),
    ],
)
def test_what_listens_at_another_address_is_named_with_the_setting_to_correct(
    connect: Connect, base_url: str, caplog: pytest.LogCaptureFixture, scheme: str, said: str
) -> None:
    """In a first run after three tries, and in a line of the log after each."""
    said = f"127.* cannot be reached, because {said}"
    with unused_port() as port, pytest.raises(PageError, match=f"{said}, after 3 tries"):
        connect(f"http://127.0.0.1:{port}" if scheme == "http" else f"https{base_url[4:]}").page(1)

    assert [bool(re.match(f"Try . of 3 failed: {said}", it)) for it in caplog.messages] == [
        True
    ] * 2


@pytest.mark.parametrize(
    ("setting", "code", "said", "looked_up"),
    [
        ("", socket.EAI_NONAME, "jobs.example.com:8443 cannot be .* its name is unknown: ", True),
        ("", socket.EAI_AGAIN, "jobs.example.com:8443 cannot be .* its name is unknown: ", True),
        (f"HTTPS_PROXY={A_PROXY}", socket.EAI_NONAME, "the proxy did not connect", True),
        ("ALL_PROXY=ftp://me:sesame@x", 0, "an address is wrong: correct HTTPS_PROXY, ALL", False),
        ("HTTPS_PROXY=http://me:sesame@x:99999", 0, "an address is wrong: correct HTTPS_", False),
        ("HTTPS_PROXY=http://me:sesame#x@y", 0, "an address is wrong: correct HTTPS_PROXY", False),
        ("ALL_PROXY=socks5://x", 0, "the proxy is no HTTP proxy: correct HTTPS_PROXY or A", False),
        ("REQUESTS_CA_BUNDLE=no.pem", 0, "certificates are not found: set REQUESTS_CA_B", False),
        (f"CURL_CA_BUNDLE={__file__}", 0, "certificates are not found: set REQUESTS_CA_B", None),
    ],
)
def test_what_the_network_lacks_is_named(
    connect: Connect,
    answered: Answered,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    code: int,
    said: str,
    looked_up: bool | None,
) -> None:
    """After three tries in a first run, and after eight if the API has answered before."""
    host = "proxy.example.com" if A_PROXY in setting else "jobs.example.com"
    base_url = "https://jobs.example.com:8443/eu"
    if looked_up is None:
        base_url = f"https{answered(PAGE)[1].url[4:]}"
    if setting:
        monkeypatch.setenv(*setting.split("=", 1))
    for key_has_worked, tries in ((False, FEW_TRIES), (True, MAX_TRIES)):
        look_up = mock.Mock(side_effect=socket.gaierror(code, "Not known"))
        if looked_up is not None:
            monkeypatch.setattr(socket, "getaddrinfo", look_up)

        with pytest.raises(PageError, match=f"{said}.*, after {tries} tries") as caught:
            connect(base_url, key_has_worked=key_has_worked).page(1)
        assert "sesame" not in str(caught.value)
        asked_for = [call.args[0] for call in look_up.call_args_list]
        assert [it for it in asked_for if "example.com" in it] == [host] * tries * bool(looked_up)


@pytest.mark.parametrize(
    ("proxy", "base_url"),
    [
        ("http://me:sesame@", "https://jobs.example.com"),
        ("http://me:ses[ame@x", "https://jobs.example.com"),
        ("http://me:€@x", "https://jobs.example.com"),
        ("", "https://[::1.2]"),
    ],
)
def test_an_odd_address_is_an_error_in_one_line(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, proxy: str, base_url: str
) -> None:
    """Of some, requests fails to read the parts."""
    monkeypatch.setenv("HTTPS_PROXY", proxy)

    with pytest.raises(TapError, match=r"after . tries") as caught:
        connect(base_url).page(1)
    assert "ses" not in str(caught.value)


# What a server says.


@pytest.mark.parametrize(
    "answer",
    [
        response(b"", f"500 {KEY} {KEY}"),
        response(b"", f"418 {'x' * 195}{KEY}"),
        f"Bearer {KEY}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\nTransfer-Encoding: {KEY}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{KEY}\r\n".encode(),
    ],
)
@mock.patch.object(lines, "_secrets", [KEY])
def test_no_error_and_no_log_line_repeats_the_key(
    answered: Answered, caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    def answer_and_close(connection: socket.socket, _: str) -> None:
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_RDWR)

    api, _ = answered(answer_and_close, key=KEY)
    with pytest.raises(TapError) as page:
        api.page(1)
    with pytest.raises(RequestError) as detail:
        api.detail(JOB)

    said = f"{page.value}{detail.value}{caplog.text}"
    assert KEY[:8] not in said
    assert f"{API}/jobs" in said
