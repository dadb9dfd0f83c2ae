"""The two operations follow the API page, and the options where the page is silent."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import SUMMARY_FIELDS, UNDOCUMENTED_FIELDS, make_jobs

if TYPE_CHECKING:
    from sandbox.conftest import Api

JOBS = "/api/public/v1/jobs"
PUBLISHED = make_jobs(45)
PUBLIC_IDS = [job["publicId"] for job in PUBLISHED]


def raw_get(api: Api, path: str) -> http.client.HTTPResponse:
    """GET a path unchanged; requests would normalise it."""
    connection = http.client.HTTPConnection(urlsplit(api.base_url).netloc, timeout=10)
    try:
        connection.request("GET", path, headers={"x-api-key": api.sandbox.key})
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


class TestList:
    def test_without_parameters_the_first_20_jobs_are_listed(self, api: Api) -> None:
        answer = api.list()

        assert answer == {
            "data": [{field: job[field] for field in SUMMARY_FIELDS} for job in PUBLISHED[:20]],
            "page": 1,
            "pageSize": 20,
            "total": 45,
        }

    def test_walking_all_pages_gives_each_published_job_once(self, api: Api) -> None:
        pages = [api.list(page=page, pageSize=20) for page in (1, 2, 3)]

        assert [len(page["data"]) for page in pages] == [20, 20, 5]
        assert [job["publicId"] for page in pages for job in page["data"]] == PUBLIC_IDS

    def test_a_page_after_the_last_is_empty(self, api: Api) -> None:
        assert api.list(page=4) == {"data": [], "page": 4, "pageSize": 20, "total": 45}

    def test_an_organisation_without_published_jobs_has_an_empty_list(self, api: Api) -> None:
        for public_id in PUBLIC_IDS:
            api.sandbox.unpublish(public_id)

        assert api.list() == {"data": [], "page": 1, "pageSize": 20, "total": 0}

    def test_a_key_sees_the_jobs_of_its_own_organisation(self, api: Api) -> None:
        other = api.sandbox.organisations["Osprey Health"]

        answer = api.get(JOBS, headers={"x-api-key": other.key}).json()

        assert {job["publicId"] for job in answer["data"]} == set(other.postings)
        assert set(other.postings).isdisjoint(PUBLIC_IDS)

    @pytest.mark.parametrize(
        "params",
        [
            {"page": 0},
            {"page": -1},
            {"page": "two"},
            {"page": ""},
            {"page": 1.5},
            {"page": "٣"},
            {"page": "9" * 5000},
            {"pageSize": 0},
            {"pageSize": 101},
            {"pageSize": "all"},
        ],
        ids=lambda params: str(params)[:20],
    )
    def test_parameters_out_of_bounds_are_rejected(
        self, api: Api, params: dict[str, object]
    ) -> None:
        response = api.get(JOBS, params=params)

        assert response.status_code == 400
        assert response.json()["error"].startswith(f"{next(iter(params))} must be")

    @pytest.mark.parametrize("options", [Options(limited=False, out_of_bounds="clamp")])
    @pytest.mark.parametrize(
        ("params", "page", "page_size"),
        [
            ({"page": 0}, 1, 20),
            ({"page": "two"}, 1, 20),
            ({"pageSize": 0}, 1, 1),
            ({"pageSize": 500}, 1, 100),
            ({"page": 2, "pageSize": "all"}, 2, 20),
        ],
    )
    def test_parameters_out_of_bounds_may_be_moved_to_the_nearest_bound(
        self, api: Api, params: dict[str, object], page: int, page_size: int
    ) -> None:
        answer = api.list(**params)

        assert (answer["page"], answer["pageSize"]) == (page, page_size)

    @pytest.mark.parametrize("options", [Options(limited=False, max_page_size=10)])
    def test_pages_may_be_silently_shorter_than_requested(self, api: Api) -> None:
        answer = api.list(page=2, pageSize=100)

        assert answer["pageSize"] == 10
        assert [job["publicId"] for job in answer["data"]] == PUBLIC_IDS[10:20]

    @pytest.mark.parametrize("options", [Options(limited=False, total=7)])
    def test_the_total_may_be_wrong(self, api: Api) -> None:
        answer = api.list(pageSize=100)

        assert answer["total"] == 7
        assert len(answer["data"]) == 45

    @pytest.mark.parametrize("options", [Options(limited=False, order="newest_first")])
    def test_the_newest_job_may_come_first(self, api: Api) -> None:
        assert [job["publicId"] for job in api.list(pageSize=100)["data"]] == PUBLIC_IDS[::-1]

    @pytest.mark.parametrize("options", [Options(limited=False, order="shuffled")])
    def test_the_order_may_change_with_every_request(self, api: Api) -> None:
        first, second = (
            [job["publicId"] for job in api.list(pageSize=100)["data"]] for _ in range(2)
        )

        assert first != second
        assert sorted(first) == sorted(second) == sorted(PUBLIC_IDS)


class TestDetail:
    def test_a_published_job_is_returned_in_full(self, api: Api) -> None:
        response = api.detail(PUBLIC_IDS[0])

        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        assert response.json() == PUBLISHED[0]

    def test_numbers_are_written_in_their_shortest_form(self, api: Api) -> None:
        api.sandbox.edit(PUBLIC_IDS[0], minSalary=62500.5, maxSalary=72000.10, yearsExperience=3)

        body = api.detail(PUBLIC_IDS[0]).text

        assert '"minSalary":62500.5,"maxSalary":72000.1,' in body
        assert '"yearsExperience":3,' in body

    def test_unknown_unpublished_and_foreign_jobs_are_indistinguishable(self, api: Api) -> None:
        api.sandbox.unpublish(PUBLIC_IDS[0])
        foreign = next(iter(api.sandbox.organisations["Osprey Health"].postings))

        answers = [api.detail(public_id) for public_id in ("no-such-job", PUBLIC_IDS[0], foreign)]

        assert [answer.status_code for answer in answers] == [404, 404, 404]
        assert {answer.content for answer in answers} == {b'{"error":"Not found"}'}
        # The Date header shows only the time of day.
        headers = [
            [(name, value) for name, value in answer.headers.items() if name != "date"]
            for answer in answers
        ]
        assert headers[0] == headers[1] == headers[2]

    @pytest.mark.parametrize(
        "public_id",
        ["a/b", "a b", "what?", "#1", "100%", "%2F", "..", ".", "naïve", "東京", "a\nb", "+", ";"],
    )
    def test_any_public_id_can_be_requested_if_it_is_encoded(
        self, api: Api, public_id: str
    ) -> None:
        api.sandbox.publish(PUBLISHED[0] | {"publicId": public_id})
        encoded = quote(public_id, safe="").replace(".", "%2E")

        response = raw_get(api, f"{JOBS}/{encoded}")

        assert response.status == 200
        assert api.sandbox.requests[-1].path == f"{JOBS}/{encoded}"

    @pytest.mark.parametrize(
        "path",
        [f"{JOBS}/a/b", f"{JOBS}/", f"{JOBS}/..", "/api/public%2Fv1/jobs", "/", f"/x{JOBS}"],
    )
    def test_other_paths_get_404_even_if_a_public_id_contains_a_slash(
        self, api: Api, path: str
    ) -> None:
        api.sandbox.publish(PUBLISHED[0] | {"publicId": "a/b"})

        assert raw_get(api, path).status == 404

    @pytest.mark.parametrize("options", [Options(limited=False, undocumented_fields=False)])
    def test_the_undocumented_fields_may_be_absent(self, api: Api) -> None:
        detail = api.detail(PUBLIC_IDS[0]).json()

        assert set(detail) == set(PUBLISHED[0]) - set(UNDOCUMENTED_FIELDS)

    @pytest.mark.parametrize("options", [Options(limited=False, omit_empty=True)])
    def test_detail_fields_without_a_value_may_be_absent(self, api: Api) -> None:
        api.sandbox.edit(
            PUBLIC_IDS[0], educationLevel="", knockoutQuestions=[], location="", yearsExperience=0
        )

        detail = api.detail(PUBLIC_IDS[0]).json()

        assert "educationLevel" not in detail
        assert "knockoutQuestions" not in detail
        assert detail["location"] == ""
        assert detail["yearsExperience"] == 0


class TestAuthentication:
    @pytest.mark.parametrize("path", [JOBS, f"{JOBS}/{PUBLIC_IDS[0]}"])
    @pytest.mark.parametrize(
        "headers",
        [{"Authorization": "Bearer {key}"}, {"x-api-key": "{key}"}],
        ids=["Authorization", "x-api-key"],
    )
    def test_a_key_is_accepted_in_either_header(
        self, api: Api, headers: dict[str, str], path: str
    ) -> None:
        headers = {name: value.format(key=api.sandbox.key) for name, value in headers.items()}

        assert api.get(path, headers=headers).status_code == 200

    @pytest.mark.parametrize("path", [JOBS, f"{JOBS}/{PUBLIC_IDS[0]}"])
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Authorization": ""},
            {"Authorization": "{key}"},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer  {key}"},
            {"Authorization": "Basic {key}"},
            {"Authorization": "Bearer pj_unknown"},
            {"x-api-key": ""},
            {"x-api-key": "Bearer {key}"},
        ],
        ids=str,
    )
    def test_a_missing_or_malformed_key_gets_401(
        self, api: Api, headers: dict[str, str], path: str
    ) -> None:
        headers = {name: value.format(key=api.sandbox.key) for name, value in headers.items()}

        response = api.get(path, headers=headers)

        assert response.status_code == 401
        assert response.json() == {"error": "API key missing, malformed or revoked"}

    def test_a_revoked_key_gets_401_at_once_and_its_replacement_works(self, api: Api) -> None:
        old = api.sandbox.key
        new = api.sandbox.add_key()
        assert api.get(JOBS, headers={"x-api-key": old}).status_code == 200

        api.sandbox.revoke(old)

        assert api.get(JOBS, headers={"x-api-key": old}).status_code == 401
        assert api.get(JOBS, headers={"x-api-key": new}).status_code == 200

    @pytest.mark.parametrize("path", [JOBS, f"{JOBS}/no-such-job"])
    def test_a_plan_without_the_api_gets_403(self, api: Api, path: str) -> None:
        key = api.sandbox.organisations["Lumen Books"].key

        assert api.get(path, headers={"x-api-key": key}).status_code == 403

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (Options(both_headers="authorization"), ("Halden Robotics", 200)),
            (Options(both_headers="x-api-key"), ("Osprey Health", 200)),
            (Options(both_headers="reject"), (None, 401)),
        ],
        ids=["authorization", "x-api-key", "reject"],
    )
    def test_an_option_decides_between_two_headers_with_different_keys(
        self, api: Api, expected: tuple[str | None, int]
    ) -> None:
        other = api.sandbox.organisations["Osprey Health"].key

        api.get(JOBS, headers={"Authorization": f"Bearer {api.sandbox.key}", "x-api-key": other})

        seen = api.sandbox.requests[-1]
        assert (seen.organisation, seen.status) == expected


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_the_interface_is_read_only(api: Api, method: str) -> None:
    response = api.session.request(method, api.base_url + JOBS, timeout=10)

    assert response.status_code == 405
    assert response.headers["allow"] == "GET"


@pytest.mark.parametrize("options", [Options(limited=False, path_prefix="/eu")])
def test_the_api_can_have_a_path_prefix(api: Api) -> None:
    assert api.base_url.endswith("/eu")
    assert api.detail(PUBLIC_IDS[0]).json() == PUBLISHED[0]
    assert api.sandbox.requests[-1].path == f"/eu{JOBS}/{PUBLIC_IDS[0]}"
