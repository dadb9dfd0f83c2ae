"""What the tests of the tap rely on: a list, details and keys that change while they are read."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import requests
from click.testing import CliRunner
from public_jobs_sandbox.cli import main
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from sandbox.conftest import JOBS

if TYPE_CHECKING:
    from sandbox.conftest import Api

PUBLISHED = make_jobs(45)
PUBLIC_IDS = [job["publicId"] for job in PUBLISHED]


def public_ids(page: Any) -> list[str]:
    return [job["publicId"] for job in page["data"]]


def walk(api: Api) -> list[str]:
    return [it for number in (1, 2, 3) for it in public_ids(api.get(page=number).json())]


@pytest.mark.parametrize("options", [Options(limited=False, order="shuffled")])
def test_the_order_may_change_with_every_request(api: Api) -> None:
    first, second = (public_ids(api.get(pageSize=100).json()) for _ in range(2))

    assert first != second
    assert sorted(first) == sorted(second) == sorted(PUBLIC_IDS)


def test_the_list_drifts_between_two_pages(api: Api) -> None:
    api.sandbox.at_request(2, lambda: api.sandbox.unpublish(PUBLIC_IDS[0]))

    assert walk(api) == PUBLIC_IDS[:20] + PUBLIC_IDS[21:]


def test_a_public_id_is_found_only_as_one_segment_of_the_path(api: Api) -> None:
    api.sandbox.publish(PUBLISHED[0] | {"publicId": "a/b"})

    assert [api.get(f"{JOBS}/{path}").status_code for path in ("a%2Fb", "a/b")] == [200, 404]
    assert [seen.path for seen in api.sandbox.requests] == [f"{JOBS}/a%2Fb", f"{JOBS}/a/b"]


def test_a_key_shows_its_organisation_until_it_is_revoked(api: Api) -> None:
    old, other = api.sandbox.key, api.sandbox.organisations["Osprey Health"]
    new = api.sandbox.add_key()
    api.sandbox.revoke(old)
    keys = [old, new, other.key, api.sandbox.organisations["Lumen Books"].key]

    answers = [api.get(headers={"x-api-key": key}) for key in keys]

    assert [it.status_code for it in answers] == [401, 200, 200, 403]
    assert public_ids(answers[1].json()) == PUBLIC_IDS[:20]
    assert public_ids(answers[2].json()) == list(other.postings)


def test_the_command_serves_until_ctrl_c() -> None:
    code = "from public_jobs_sandbox.cli import main; main()"
    options = ["--port", "0", "--jobs", "3", "--limit", "2", "--fault", "http_503", "2"]
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        exports = dict(
            process.stdout.readline().removeprefix("export ").strip().split("=", 1)
            for _ in range(2)
        )
        answers = [
            requests.get(
                exports["TAP_PUBLIC_JOBS_BASE_URL"] + JOBS,
                headers={"x-api-key": exports["TAP_PUBLIC_JOBS_API_KEY"]},
                timeout=10,
            )
            for _ in range(3)
        ]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0

    assert [answer.status_code for answer in answers] == [200, 503, 429]
    assert answers[0].json()["total"] == 3


def test_a_taken_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "--port", str(port)])

    assert result.exit_code == 1
    assert result.output.startswith(f"Error: Cannot listen on port {port}: ")
    assert result.output.count("\n") == 1
