"""A sandbox can be changed while it is served, and its log shows each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import requests
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from sandbox.conftest import Api

JOBS = "/api/public/v1/jobs"
PUBLIC_IDS = [job["publicId"] for job in make_jobs(45)]


def walk(api: Api) -> list[str]:
    """Read pages of 20 until one is not full."""
    public_ids: list[str] = []
    page = 1
    while True:
        data = api.list(page=page, pageSize=20)["data"]
        public_ids += [job["publicId"] for job in data]
        if len(data) < 20:
            return public_ids
        page += 1


class TestNewSandbox:
    def test_the_same_seed_gives_the_same_sandbox(self) -> None:
        first, second = Sandbox.demo(30, seed=5), Sandbox.demo(30, seed=5)

        assert first.key == second.key
        assert list(first.organisation.postings) == list(second.organisation.postings)
        assert first.key != Sandbox.demo(30, seed=6).key

    def test_the_demo_publishes_as_many_jobs_as_requested_and_hides_others(self) -> None:
        organisation = Sandbox.demo(30).organisation

        assert len(organisation.published()) == 30
        assert len(organisation.postings) == 33

    def test_a_new_sandbox_has_a_key_and_no_jobs(self) -> None:
        sandbox = Sandbox(Options(limited=False))

        with serving(sandbox) as base_url:
            response = requests.get(base_url + JOBS, headers={"x-api-key": sandbox.key}, timeout=10)

        assert response.json() == {"data": [], "page": 1, "pageSize": 20, "total": 0}

    def test_an_unknown_limit_algorithm_is_refused(self) -> None:
        with pytest.raises(ValueError, match="Unknown limit algorithm 'dice': use one of"):
            Options(limit_algorithm="dice")


class TestChanges:
    def test_an_unpublished_job_is_hidden_and_returns_to_its_place(self, api: Api) -> None:
        public_id = PUBLIC_IDS[3]

        api.sandbox.unpublish(public_id)
        assert walk(api) == PUBLIC_IDS[:3] + PUBLIC_IDS[4:]
        assert api.detail(public_id).status_code == 404

        api.sandbox.publish(public_id)
        assert walk(api) == PUBLIC_IDS
        assert api.detail(public_id).status_code == 200

    def test_a_new_job_is_listed_last(self, api: Api) -> None:
        job = make_jobs(1, seed=99)[0]

        api.sandbox.publish(job)

        assert walk(api) == [*PUBLIC_IDS, job["publicId"]]
        assert api.detail(job["publicId"]).json() == job

    def test_an_edit_shows_in_both_operations(self, api: Api) -> None:
        before = api.detail(PUBLIC_IDS[0]).json()

        api.sandbox.edit(PUBLIC_IDS[0], jobTitle="Gardener", roleOverview="Roses.")

        assert api.list()["data"][0]["jobTitle"] == "Gardener"
        expected = before | {"jobTitle": "Gardener", "roleOverview": "Roses."}
        assert api.detail(PUBLIC_IDS[0]).json() == expected

    def test_an_edit_does_not_publish(self, api: Api) -> None:
        api.sandbox.unpublish(PUBLIC_IDS[0])

        api.sandbox.edit(PUBLIC_IDS[0], jobTitle="Gardener")

        assert api.detail(PUBLIC_IDS[0]).status_code == 404

    def test_a_job_unpublished_between_two_pages_hides_another(self, api: Api) -> None:
        api.sandbox.at_request(2, lambda: api.sandbox.unpublish(PUBLIC_IDS[0]))

        assert walk(api) == PUBLIC_IDS[:20] + PUBLIC_IDS[21:]

    @pytest.mark.parametrize("options", [Options(limited=False, order="newest_first")])
    def test_a_job_published_between_two_pages_puts_another_on_both(self, api: Api) -> None:
        newest_first = PUBLIC_IDS[::-1]
        api.sandbox.at_request(2, lambda: api.sandbox.publish(make_jobs(1, seed=99)[0]))

        assert walk(api) == newest_first[:20] + newest_first[19:]

    def test_a_key_can_be_revoked_before_a_chosen_request(self, api: Api) -> None:
        key = api.sandbox.key
        api.sandbox.at_request(3, lambda: api.sandbox.revoke(key))

        for _ in range(4):
            api.get(JOBS)

        assert [request.status for request in api.sandbox.requests] == [200, 200, 401, 401]


class TestLog:
    def test_a_request_is_logged_as_it_was_sent(self, api: Api) -> None:
        headers = {"x-api-key": api.sandbox.key, "X-Extra": "Yes"}

        api.get(f"{JOBS}/a%2Fb", headers=headers, params={"page": 2})

        (seen,) = api.sandbox.requests
        assert (seen.number, seen.method, seen.path) == (1, "GET", f"{JOBS}/a%2Fb")
        assert seen.query == {"page": "2"}
        assert seen.headers["x-api-key"] == api.sandbox.key
        assert seen.headers["x-extra"] == "Yes"
        assert (seen.organisation, seen.status, seen.fault) == ("Halden Robotics", 404, None)
        assert seen.time == seen.counted == 1_000_020.0

    def test_requests_that_never_reach_an_operation_are_logged_too(self, api: Api) -> None:
        api.get(JOBS, headers={})
        api.get("/elsewhere")
        api.session.post(api.base_url + JOBS, timeout=10)

        logged = [(seen.method, seen.path, seen.status) for seen in api.sandbox.requests]
        assert logged == [("GET", JOBS, 401), ("GET", "/elsewhere", 404), ("POST", JOBS, 405)]
        assert {(seen.organisation, seen.counted) for seen in api.sandbox.requests} == {
            (None, None)
        }

    @pytest.mark.parametrize("options", [Options(latency=0.02, jitter=0.02)])
    def test_delayed_requests_are_counted_and_answered_too(self, api: Api) -> None:
        assert api.detail(PUBLIC_IDS[0]).json()["publicId"] == PUBLIC_IDS[0]
        assert api.sandbox.requests[0].status == 200
