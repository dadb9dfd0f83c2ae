"""Faults happen on the connection as a client would meet them, and where they were planned."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import requests
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from sandbox.conftest import JOBS

if TYPE_CHECKING:
    from public_jobs_sandbox.state import Sandbox
    from sandbox.conftest import Api


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
        api.get()

    assert api.statuses(1) == [200]
    assert [seen.status for seen in api.sandbox.requests] == [None if kind == "reset" else 200, 200]
    assert capfd.readouterr().err == "", "the server reports no error for a planned fault"


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("http_400", 400, '{"error":"Bad request"}'),
        ("http_502", 502, "<html><head><title>502</title></head><body><h1>502</h1></body></html>"),
        ("empty_body", 200, ""),
        ("wrong_shape", 200, '{"data":5}'),
    ],
)
def test_a_wrong_response_is_complete(api: Api, kind: str, status: int, body: str) -> None:
    api.sandbox.fail_next(kind)

    response = api.get()

    assert (response.status_code, response.text) == (status, body)


@pytest.mark.parametrize("options", [Options(), Options(latency=600)], ids=["stall", "latency"])
def test_a_request_waits_until_its_client_or_the_server_ends(
    sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    sandbox.fail_next("stall", times=2)
    arrived = threading.Event()
    sandbox.at_request(2, arrived.set)
    errors: list[Exception] = []

    def get(base_url: str, timeout: float) -> None:
        try:
            requests.get(base_url + JOBS, headers={"x-api-key": sandbox.key}, timeout=timeout)
        except requests.RequestException as error:
            errors.append(error)

    with serving(sandbox) as base_url:
        get(base_url, timeout=0.1)
        client = threading.Thread(target=get, args=(base_url, 30))
        client.start()
        assert arrived.wait(timeout=10)
    client.join(timeout=10)

    assert [type(error) for error in errors] == [requests.ReadTimeout, requests.ConnectionError]
    assert [seen.status for seen in sandbox.requests] == [None, None]
    assert capfd.readouterr().err == ""


def test_a_fault_hits_what_it_was_planned_for_until_recovery(api: Api) -> None:
    public_id = next(iter(api.sandbox.organisation.postings))
    api.sandbox.fail_next("http_404", path=public_id)
    api.sandbox.fail_next("http_500", times=2)
    api.sandbox.fail_next("http_503", times=None, path=lambda seen: seen.query.get("page") == "2")

    assert api.statuses(3) == [500, 500, 200]
    assert [api.get(f"{JOBS}/{public_id}").status_code for _ in range(2)] == [404, 200]
    assert [api.get(page=page).status_code for page in (2, 1, 2)] == [503, 200, 503]
    api.sandbox.recover()
    api.sandbox.fail_every("http_502", 3)
    assert [api.get(page=2).status_code for _ in range(7)] == [200, 200, 502, 200, 200, 502, 200]


@pytest.mark.parametrize("options", [Options(limit_requests=2)])
def test_refused_requests_meet_no_fault_and_those_that_meet_one_are_counted(api: Api) -> None:
    api.sandbox.fail_next("http_503")

    assert api.get(headers={}).status_code == 401
    assert api.statuses(3) == [503, 200, 429]
