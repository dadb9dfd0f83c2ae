"""Every fault reaches the client, and hits only the requests that it was planned for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import requests
from api.raw_server import unused_port
from public_jobs_sandbox.faults import KINDS
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox
    from sandbox.conftest import Api

JOBS = "/api/public/v1/jobs"


def statuses(api: Api, number: int) -> list[int]:
    return [api.get(JOBS).status_code for _ in range(number)]


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("reset", requests.ConnectionError, "Connection reset by peer"),
        ("cut_body", requests.exceptions.ChunkedEncodingError, "22 bytes read, 4074 more expected"),
        ("cut_chunked", requests.exceptions.ChunkedEncodingError, "Response ended prematurely"),
    ],
)
def test_a_broken_connection_is_an_error_of_that_kind(
    api: Api, kind: str, error: type[Exception], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    api.sandbox.fail_next(kind)

    with pytest.raises(error, match=words):
        api.get(JOBS)

    assert api.get(JOBS).status_code == 200
    assert [request.fault for request in api.sandbox.requests] == [kind, None]
    assert capfd.readouterr().err == "", "the server reports no error for a planned fault"


def test_a_reset_sends_no_response_and_a_cut_sends_the_start_of_one(api: Api) -> None:
    for kind in ("reset", "cut_body"):
        api.sandbox.fail_next(kind)
        with pytest.raises(requests.RequestException):
            api.get(JOBS)

    assert [request.status for request in api.sandbox.requests] == [None, 200]


@pytest.mark.parametrize(
    ("kind", "status", "content_type", "body"),
    [
        ("http_400", 400, "application/json", '{"error":"Bad request"}'),
        ("http_500", 500, "application/json", '{"error":"Internal server error"}'),
        ("http_502", 502, "text/html; charset=utf-8", "<h1>502</h1>"),
        ("http_503", 503, "text/html; charset=utf-8", "<h1>503</h1>"),
        ("http_504", 504, "text/html; charset=utf-8", "<h1>504</h1>"),
        ("html", 200, "text/html; charset=utf-8", "<html><body>Down for maintenance."),
        ("not_json", 200, "application/json", "upstream connect error"),
        ("wrong_shape", 200, "application/json", '{"data":5}'),
        ("json_list", 200, "application/json", "[1,2,3]"),
        ("json_null", 200, "application/json", "null"),
    ],
)
def test_a_wrong_response_is_complete(
    api: Api, kind: str, status: int, content_type: str, body: str
) -> None:
    api.sandbox.fail_next(kind)

    response = api.get(JOBS)

    assert response.status_code == status
    assert response.headers["content-type"] == content_type
    assert body in response.text
    assert api.sandbox.requests[-1].status == status


def test_an_empty_body_is_a_success_without_content(api: Api) -> None:
    api.sandbox.fail_next("empty_body")

    response = api.get(JOBS)

    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == "0"


@pytest.mark.parametrize("options", [Options(redirect_to="/moved/here")])
def test_a_redirect_leads_elsewhere(api: Api) -> None:
    api.sandbox.fail_next("redirect")

    response = api.get(JOBS)

    assert [request.status for request in api.sandbox.requests] == [302, 404]
    assert api.sandbox.requests[-1].path == "/moved/here"
    assert response.status_code == 404


def test_a_stalled_request_outlasts_the_timeout_of_its_client(sandbox: Sandbox) -> None:
    sandbox.fail_next("stall")
    arrived = threading.Event()
    sandbox.at_request(1, arrived.set)

    with serving(sandbox) as base_url:
        with pytest.raises(requests.ReadTimeout):
            requests.get(base_url + JOBS, headers={"x-api-key": sandbox.key}, timeout=(5, 0.1))
        assert arrived.wait(timeout=10)  # a busy server sees it after its client has left

    (request,) = sandbox.requests
    assert (request.fault, request.status) == ("stall", None)


@pytest.mark.parametrize("options", [Options(stall=0.01)])
def test_a_stalled_request_gets_a_response_in_the_end(api: Api) -> None:
    api.sandbox.fail_next("stall")

    assert statuses(api, 2) == [504, 200]


@pytest.mark.parametrize("options", [Options(), Options(latency=600)], ids=["stall", "latency"])
def test_the_server_stops_while_requests_wait(
    sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    """It writes nothing to stderr, and waiting clients get no response."""
    sandbox.fail_next("stall")
    arrived = threading.Event()
    sandbox.at_request(1, arrived.set)
    errors: list[Exception] = []

    def wait_for_an_answer(base_url: str) -> None:
        try:
            requests.get(base_url + JOBS, headers={"x-api-key": sandbox.key}, timeout=30)
        except requests.ConnectionError as error:
            errors.append(error)

    with serving(sandbox) as base_url:
        client = threading.Thread(target=wait_for_an_answer, args=(base_url,))
        client.start()
        assert arrived.wait(timeout=10)
    client.join(timeout=10)

    assert len(errors) == 1
    assert sandbox.requests[0].status is None
    assert capfd.readouterr().err == ""


def test_the_server_stops_while_connections_are_kept_open(
    sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    with requests.Session() as session, unused_port() as port:
        with serving(sandbox, port) as base_url:
            assert session.get(base_url + JOBS, timeout=10).status_code == 401
        with pytest.raises(requests.ConnectionError, match="Connection refused"):
            session.get(base_url + JOBS, timeout=10)

    assert capfd.readouterr().err == ""


def test_a_fault_hits_as_often_as_planned(api: Api) -> None:
    api.sandbox.fail_next("http_503", times=2)
    api.sandbox.fail_next("http_500")

    assert statuses(api, 4) == [503, 503, 500, 200]


def test_a_fault_without_an_end_lasts_until_recovery(api: Api) -> None:
    api.sandbox.fail_next("http_503", times=None)
    assert statuses(api, 3) == [503, 503, 503]

    api.sandbox.recover()

    assert statuses(api, 1) == [200]


def test_a_fault_can_be_limited_to_a_path(api: Api) -> None:
    public_id = next(iter(api.sandbox.organisation.postings))
    api.sandbox.fail_next("http_503", path=public_id)

    assert api.get(JOBS).status_code == 200
    assert api.detail(public_id).status_code == 503
    assert api.detail(public_id).status_code == 200


def test_a_fault_can_be_limited_to_requests_by_a_function(api: Api) -> None:
    api.sandbox.fail_next("http_503", times=None, path=lambda seen: seen.query.get("page") == "2")

    assert [api.get(JOBS, params={"page": page}).status_code for page in (1, 2, 3, 2)] == [
        200,
        503,
        200,
        503,
    ]


def test_a_fault_can_hit_every_nth_request(api: Api) -> None:
    api.sandbox.fail_every("http_502", 3)

    assert statuses(api, 7) == [200, 200, 502, 200, 200, 502, 200]


@pytest.mark.parametrize("options", [Options(limit_requests=2)])
def test_refused_requests_meet_no_fault_and_those_that_meet_one_are_counted(api: Api) -> None:
    api.sandbox.fail_next("http_503")

    assert api.get(JOBS, headers={}).status_code == 401
    assert statuses(api, 3) == [503, 200, 429]


def test_an_unknown_fault_cannot_be_planned(api: Api) -> None:
    with pytest.raises(ValueError, match="Unknown fault 'earthquake'") as refusal:
        api.sandbox.fail_next("earthquake")

    assert all(kind in str(refusal.value) for kind in KINDS)
