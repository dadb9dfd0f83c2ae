"""What the tests of the tap rely on: a list, details and keys that change while they are read."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest
import requests
from click.testing import CliRunner
from public_jobs_sandbox.cli import main
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs, summary
from sandbox.conftest import JOBS

if TYPE_CHECKING:
    from sandbox.conftest import Api

PUBLISHED = make_jobs(45)
PUBLIC_IDS = [job["publicId"] for job in PUBLISHED]


def public_ids(page: Any) -> list[str]:
    return [job["publicId"] for job in page["data"]]


def walk(api: Api) -> list[str]:
    return [it for number in (1, 2, 3) for it in public_ids(api.get(page=number).json())]


def test_the_list_has_the_summaries_of_the_published_jobs(api: Api) -> None:
    assert api.get().json() == {
        "data": [summary(job) for job in PUBLISHED[:20]],
        "page": 1,
        "pageSize": 20,
        "total": 45,
    }
    assert walk(api) == PUBLIC_IDS
    assert api.get(page=4).json() == {"data": [], "page": 4, "pageSize": 20, "total": 45}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(limited=False, max_page_size=10), PUBLIC_IDS[:10]),
        (Options(limited=False, order="newest_first"), PUBLIC_IDS[::-1]),
    ],
    ids=["short pages", "newest first"],
)
def test_options_change_the_list(api: Api, expected: list[str]) -> None:
    assert public_ids(api.get(pageSize=100).json()) == expected


@pytest.mark.parametrize("options", [Options(limited=False, order="shuffled")])
def test_the_order_may_change_with_every_request(api: Api) -> None:
    first, second = (public_ids(api.get(pageSize=100).json()) for _ in range(2))

    assert first != second
    assert sorted(first) == sorted(second) == sorted(PUBLIC_IDS)


def test_the_list_drifts_between_two_pages(api: Api) -> None:
    api.sandbox.at_request(2, lambda: api.sandbox.unpublish(PUBLIC_IDS[0]))

    assert walk(api) == PUBLIC_IDS[:20] + PUBLIC_IDS[21:]


def test_an_edit_shows_in_both_operations_and_publishes_nothing(api: Api) -> None:
    path = f"{JOBS}/{PUBLIC_IDS[0]}"
    api.sandbox.edit(PUBLIC_IDS[0], minSalary=72000.10, roleOverview="Roses.")

    assert '"minSalary":72000.1,' in api.get().text
    detail = PUBLISHED[0] | {"minSalary": 72000.1, "roleOverview": "Roses."}
    assert api.get(path).json() == detail
    api.sandbox.unpublish(PUBLIC_IDS[0])
    api.sandbox.edit(PUBLIC_IDS[0], jobTitle="Gardener")
    assert api.get(path).status_code == 404
    api.sandbox.publish(PUBLIC_IDS[0])
    assert api.get(path).json() == detail | {"jobTitle": "Gardener"}


def test_unknown_unpublished_and_foreign_jobs_are_indistinguishable(api: Api) -> None:
    api.sandbox.unpublish(PUBLIC_IDS[0])
    foreign = next(iter(api.sandbox.organisations["Osprey Health"].postings))

    answers = [api.get(f"{JOBS}/{it}") for it in ("no-such-job", PUBLIC_IDS[0], foreign)]

    assert [it.status_code for it in answers] == [404] * 3
    assert len({(it.content, str(it.headers)) for it in answers}) == 1


@pytest.mark.parametrize("public_id", ["a/b", "a b", "what?", "100%", "..", "naïve", "東京", "+"])
@pytest.mark.parametrize("options", [Options(limited=False, path_prefix="/eu")])
def test_any_public_id_is_found_below_any_path_if_it_is_encoded(api: Api, public_id: str) -> None:
    api.sandbox.publish(PUBLISHED[0] | {"publicId": public_id})
    path = f"/eu{JOBS}/{quote(public_id, safe='').replace('.', '%2E')}"

    # requests would normalise the path.
    address = urlsplit(api.base_url)
    with contextlib.closing(http.client.HTTPConnection(address.netloc, timeout=10)) as connection:
        connection.request("GET", path, headers={"x-api-key": api.sandbox.key})
        assert connection.getresponse().status == 200

    assert (address.path, api.sandbox.requests[-1].path) == ("/eu", path)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer {key}"}, 200),
        ({"x-api-key": "{key}"}, 200),
        ({}, 401),
        ({"Authorization": "{key}"}, 401),
        ({"Authorization": "Basic {key}"}, 401),
        ({"x-api-key": "Bearer {key}"}, 401),
    ],
    ids=str,
)
def test_a_key_is_accepted_in_either_header(api: Api, headers: dict[str, str], status: int) -> None:
    sent = {name: value.format(key=api.sandbox.key) for name, value in headers.items()}

    assert api.get(headers=sent).status_code == status


def test_a_key_shows_its_organisation_until_it_is_revoked(api: Api) -> None:
    old, other = api.sandbox.key, api.sandbox.organisations["Osprey Health"]
    new = api.sandbox.add_key()
    api.sandbox.revoke(old)
    keys = [old, new, other.key, api.sandbox.organisations["Lumen Books"].key]

    answers = [api.get(headers={"x-api-key": key}) for key in keys]

    assert [it.status_code for it in answers] == [401, 200, 200, 403]
    assert public_ids(answers[1].json()) == PUBLIC_IDS[:20]
    assert public_ids(answers[2].json()) == list(other.postings)


def test_a_longer_list_of_jobs_starts_with_the_shorter_one() -> None:
    assert make_jobs(50)[:45] == PUBLISHED
    assert not {job["id"] for job in make_jobs(45, seed=8)} & {job["id"] for job in PUBLISHED}


def test_the_command_serves_until_ctrl_c() -> None:
    code = "from public_jobs_sandbox.cli import main; main()"
    options = ["--port", "0", "--jobs", "3", "--limit", "2", "--fault", "http_503", "2"]
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", *options], stdout=subprocess.PIPE, text=True
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
