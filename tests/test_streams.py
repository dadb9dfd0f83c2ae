"""The streams against the sandbox: the records they write and the requests they make."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from harness import captured, catalog_of, json_text, paths, sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import summary
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from requests.adapters import HTTPAdapter
from singer_sdk.typing import DEFAULT_JSONSCHEMA_VALIDATOR

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import (
    AccessError,
    PublicJobsError,
)
from tap_public_jobs.sync import plan
from tap_public_jobs.sync.state import STREAMS
from tap_public_jobs.tap import ORDER, TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from requests import PreparedRequest, Response

    from tap_public_jobs.streams import PublicJobsStream

Config = dict[str, Any]
UNDOCUMENTED = {
    "keyResponsibilities",
    "requiredSkills",
    "preferredQualifications",
    "benefitsDescription",
    "workAuthorizationRequirements",
}


def published(sandbox: Sandbox) -> list[dict[str, Any]]:
    """The jobs that the API shows, in the listing's order, numbers as the wire has them."""
    return [
        json.loads(posting.detail_json(), parse_float=Decimal)
        for posting in sandbox.organisation.published()
    ]


def detail(job: dict[str, Any]) -> dict[str, Any]:
    """The record of a job's detail."""
    others = {name: job[name] for name in job if name in UNDOCUMENTED}
    columns = {name: job[name] for name in job if name not in UNDOCUMENTED}
    columns["knockoutQuestions"] = json_text(columns["knockoutQuestions"])
    return columns | {"additionalFields": json_text(others) if others else None}


def details(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """The records of all details, by id."""
    return {job["id"]: detail(job) for job in published(sandbox)}


def keys(records: Iterable[dict[str, Any]]) -> list[str]:
    return [record["publicId"] for record in records]


def test_every_job_arrives_whole_and_in_the_order_of_the_list(
    sandbox: Sandbox, config: Config
) -> None:
    output = sync(config)

    jobs = published(sandbox)
    constant = {"additionalFields": None}
    assert output.records("jobs") == [summary(job) | constant for job in jobs]
    assert output.rows("job_details") == details(sandbox)
    assert len(jobs) == 25


def test_each_page_and_each_detail_is_asked_for_once(sandbox: Sandbox, config: Config) -> None:
    sync(config)

    asked = paths(sandbox.requests)
    assert asked[:3] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]
    assert sorted(asked[3:]) == sorted(f"/jobs/{job['publicId']}" for job in published(sandbox))


def test_records_fit_the_schemas(config: Config) -> None:
    output = sync(config)

    for stream in ("jobs", "job_publications", "job_details"):
        (schema,) = [message["schema"] for message in output.of("SCHEMA", stream)]
        validator = DEFAULT_JSONSCHEMA_VALIDATOR(schema)
        assert [list(validator.iter_errors(record)) for record in output.records(stream)] == [
            []
        ] * 25


def test_messages_come_in_an_order_that_no_crash_makes_wrong(config: Config) -> None:
    """A stream is activated after its last record, and history never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "FEWEST_BETWEEN_CHECKPOINTS", 10)
        output = sync(config)

    assert output.order == [
        "SCHEMA jobs",
        "RECORD jobs",
        "ACTIVATE_VERSION jobs",
        "STATE",
        "SCHEMA job_publications",
        "RECORD job_publications",
        "STATE",
        "SCHEMA job_details",
        *["RECORD job_details", "STATE"] * 2,  # after 10 and 20
        "RECORD job_details",
        "ACTIVATE_VERSION job_details",
        "STATE",
    ]
    for stream in ("jobs", "job_details"):
        versions = {message["version"] for message in output.of("RECORD", stream)}
        assert versions == {output.of("ACTIVATE_VERSION", stream)[0]["version"]}
    assert not any("version" in message for message in output.of("RECORD", "job_publications"))


@pytest.mark.parametrize("refresh", ["all", "changed", "notified"])
@pytest.mark.parametrize("naming", ["source", "snake_case"])
def test_each_stream_has_one_schema_and_whole_records(
    sandbox: Sandbox, config: Config, tmp_path: Path, refresh: str, naming: str
) -> None:
    """A second SCHEMA with fewer columns loses rows on many targets. Also after churn."""
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    gone, edited = published(sandbox)[3:5]
    config |= {"detail_refresh": refresh, "column_naming": naming, "changes_url": url}
    ChangeLog(url).append([])
    first = sync(config)
    sandbox.unpublish(gone["publicId"])
    sandbox.edit(edited["publicId"], jobTitle="Chief of Everything")
    ChangeLog(url).append([gone["publicId"], edited["publicId"]])

    second = sync(config, state=first.state)

    for output in (first, second):
        for stream in ("jobs", "job_publications", "job_details"):
            (schema,) = [message["schema"] for message in output.of("SCHEMA", stream)]
            assert output.records(stream)
            assert all(
                record.keys() == schema["properties"].keys() for record in output.records(stream)
            )


def test_versions_grow_even_if_the_clock_does_not(config: Config) -> None:
    state = sync(config).state
    state["bookmarks"]["jobs"]["sync"]["versions"]["jobs"] = 4_000_000_000

    output = sync(config, state=state)

    assert output.of("ACTIVATE_VERSION", "jobs")[0]["version"] == 4_000_000_001
    assert output.of("ACTIVATE_VERSION", "job_details")[0]["version"] < 4_000_000_000
    assert output.state["bookmarks"]["jobs"]["sync"]["versions"]["jobs"] == 4_000_000_001


def test_activation_can_be_turned_off(config: Config) -> None:
    output = sync(config | {"emit_activate_version_messages": False})

    assert output.of("ACTIVATE_VERSION") == []
    assert [message for message in output.of("RECORD") if "version" in message] == []


def test_an_organisation_without_jobs_costs_one_request_per_run() -> None:
    """No run activates: nothing tells it from a list that is empty by mistake."""
    sandbox = Sandbox()
    with serving(sandbox) as url:
        config = {"api_key": sandbox.key, "base_url": url}
        first = sync(config)
        second = sync(config, state=first.state)

    assert first.of("RECORD") == second.of("RECORD") == []
    assert first.of("ACTIVATE_VERSION") == second.of("ACTIVATE_VERSION") == []
    assert paths(sandbox.requests) == ["/jobs?page=1"] * 2


@pytest.mark.parametrize(
    ("auth_header", "sent", "other"),
    [("Authorization", "authorization", "x-api-key"), ("x-api-key", "x-api-key", "authorization")],
)
def test_the_key_travels_in_the_chosen_header_alone(
    sandbox: Sandbox, config: Config, auth_header: str, sent: str, other: str
) -> None:
    sync(config | {"auth_header": auth_header, "user_agent": "acme-etl/1"})

    value = f"Bearer {sandbox.key}" if sent == "authorization" else sandbox.key
    assert {request.headers.get(sent) for request in sandbox.requests} == {value}
    assert not any(other in request.headers for request in sandbox.requests)
    assert {request.headers["user-agent"] for request in sandbox.requests} == {"acme-etl/1"}


def test_a_path_prefix_and_a_trailing_slash_are_part_of_the_base_url() -> None:
    sandbox = Sandbox.demo(jobs=3, options=Options(path_prefix="/eu"))
    with serving(sandbox) as url:
        output = sync({"api_key": sandbox.key, "base_url": url + "/"})

    assert sorted(keys(output.records("job_details"))) == sorted(keys(published(sandbox)))
    assert {r.path.partition("/jobs")[0] for r in sandbox.requests} == {"/eu/api/public/v1"}


def test_numbers_keep_their_decimal_form_and_odd_values_are_kept_apart() -> None:
    sandbox = Sandbox.demo(jobs=1)
    public_id = published(sandbox)[0]["publicId"]
    sandbox.edit(public_id, minSalary=72000.1, maxSalary="a lot", knockoutQuestions="none", x=1)
    with serving(sandbox) as url:
        output = sync({"api_key": sandbox.key, "base_url": url})

    (record,) = output.records("job_details")
    assert record["minSalary"] == Decimal("72000.1")
    assert record["maxSalary"] is None
    assert record["knockoutQuestions"] is None
    others = json.loads(record["additionalFields"])
    assert {name: others[name] for name in others if name not in UNDOCUMENTED} == {
        "maxSalary": "a lot", "knockoutQuestions": "none", "x": 1,
    }  # fmt: skip


def test_a_declared_column_takes_its_field_out_of_the_others(
    sandbox: Sandbox, config: Config
) -> None:
    """As Meltano's `schema` extra declares it: in the catalog."""
    catalog = catalog_of(config)
    for entry in catalog["streams"]:
        entry["schema"]["properties"]["requiredSkills"] = {
            "type": ["array", "null"],
            "items": {"type": "string"},
        }

    output = sync(config, catalog=catalog)

    rows = output.rows("job_details")
    for job in published(sandbox):
        record = rows[job["id"]]
        assert record["requiredSkills"] == job["requiredSkills"]
        others = json.loads(record["additionalFields"])
        assert "requiredSkills" not in others
        assert others["keyResponsibilities"] == job["keyResponsibilities"]


def select(catalog: dict[str, Any], **selected: bool) -> dict[str, Any]:
    """Select streams, or columns named `stream__column`."""
    for name, value in selected.items():
        stream, _, column = name.partition("__")
        breadcrumb = ["properties", column] if column else []
        (entry,) = [entry for entry in catalog["streams"] if entry["stream"] == stream]
        (metadata,) = [it for it in entry["metadata"] if it["breadcrumb"] == breadcrumb]
        metadata["metadata"]["selected"] = value
    return catalog


def test_jobs_alone_costs_the_listing_alone(sandbox: Sandbox, config: Config) -> None:
    output = sync(config, catalog=select(catalog_of(config), jobs=True, job_details=False))

    assert keys(output.records("jobs")) == keys(published(sandbox))
    assert output.of("SCHEMA", "job_details") == []
    assert paths(sandbox.requests) == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


def test_job_details_alone_reads_the_listing_for_itself(sandbox: Sandbox, config: Config) -> None:
    output = sync(config, catalog=select(catalog_of(config), jobs=False, job_details=True))

    assert output.of("RECORD", "jobs") == []
    assert sorted(keys(output.records("job_details"))) == sorted(keys(published(sandbox)))
    assert len(sandbox.requests) == 28
    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["job_details"]


@pytest.mark.parametrize("stream", ["jobs", "job_publications", "job_details"])
def test_a_stream_that_the_catalog_leaves_out_is_not_selected(config: Config, stream: str) -> None:
    catalog = catalog_of(config)
    catalog["streams"] = [entry for entry in catalog["streams"] if entry["stream"] == stream]

    output = sync(config, catalog=catalog)

    assert {message["stream"] for message in output.of("RECORD")} == {stream}
    assert [message["stream"] for message in output.of("SCHEMA")] == [stream]


def test_deselected_columns_are_in_neither_schema_nor_records(config: Config) -> None:
    catalog = select(catalog_of(config), jobs__jobTitle=False, job_details__additionalFields=False)

    output = sync(config, catalog=catalog)

    assert "jobTitle" not in output.of("SCHEMA", "jobs")[0]["schema"]["properties"]
    assert {frozenset(r) & {"jobTitle", "location"} for r in output.records("jobs")} == {
        frozenset({"location"})
    }
    assert not any("additionalFields" in record for record in output.records("job_details"))


def test_stream_maps_rename_drop_and_hash(sandbox: Sandbox, config: Config) -> None:
    maps = {
        "jobs": {"title": "jobTitle", "jobTitle": "__NULL__", "hash": "md5(publicId)"},
        "job_details": {"__alias__": "details"},
    }

    output = sync(config | {"stream_maps": maps})

    first = output.records("jobs")[0]
    assert first["title"] == published(sandbox)[0]["jobTitle"]
    assert "jobTitle" not in first
    assert len(first["hash"]) == 32
    assert sorted(keys(output.records("details"))) == sorted(keys(published(sandbox)))
    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["jobs", "details"]


def test_flattening_loses_nothing(sandbox: Sandbox, config: Config) -> None:
    output = sync(config | {"flattening_enabled": True, "flattening_max_depth": 2})

    rows = output.rows("job_details")
    for job in published(sandbox):
        record = rows[job["id"]]
        assert job["jobTitle"] == record["jobTitle"]
        assert record["additionalFields"] == detail(job)["additionalFields"]


def test_a_page_size_clamped_by_the_server_loses_no_job(sandbox: Sandbox, config: Config) -> None:
    sandbox.options = dataclasses.replace(sandbox.options, max_page_size=4)

    output = sync(config)

    assert keys(output.records("jobs")) == keys(published(sandbox))
    assert len(output.of("ACTIVATE_VERSION")) == 2
    assert len(sandbox.requests) == 7 + 25


def test_a_job_unpublished_after_the_listing_is_skipped_and_counted(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    gone = published(sandbox)[20]["publicId"]
    sandbox.at_request(4, lambda: sandbox.unpublish(gone))

    with caplog.at_level("INFO"):
        output = sync(config)

    assert gone in keys(output.records("jobs"))
    assert sorted(keys(output.records("job_details"))) == sorted(keys(published(sandbox)))
    assert len(output.of("ACTIVATE_VERSION")) == 2
    assert "1 unpublished during the run" in caplog.text
    assert paths(sandbox.requests)[-3:] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


@pytest.mark.parametrize(
    "fault",
    [
        "reset", "cut_body", "cut_chunked", "not_json", "html", "wrong_shape", "empty_body",
        "http_500", "http_502", "http_503", "http_504",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("no_waiting")
def test_a_passing_fault_costs_one_more_request_and_no_record(
    sandbox: Sandbox, config: Config, fault: str
) -> None:
    """Once on a page of the list, and once on a detail."""
    third = published(sandbox)[2]["publicId"]
    sandbox.fail_next(fault, path=lambda request: request.query.get("page") == "2")
    sandbox.fail_next(fault, path=third)

    output = sync(config)

    assert keys(output.records("jobs")) == keys(published(sandbox))
    assert output.rows("job_details") == details(sandbox)
    assert len(output.of("ACTIVATE_VERSION")) == 2
    asked = paths(sandbox.requests)
    assert asked[:4] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=2", "/jobs?page=3"]
    assert asked.count(f"/jobs/{third}") == 2
    assert len(asked) == 30


@pytest.mark.usefixtures("no_waiting")
def test_an_answer_that_never_comes_is_given_up_and_asked_for_again(
    sandbox: Sandbox, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a second after it was asked for: a busy sandbox may take that for any other answer."""
    third = published(sandbox)[2]["publicId"]
    sandbox.fail_next("stall", path=third)
    send, timeouts = HTTPAdapter.send, list[float]()

    def impatient(
        adapter: HTTPAdapter, request: PreparedRequest, *, timeout: float, **kwargs: Any
    ) -> Response:
        is_first = str(request.url).endswith(third) and timeouts.count(0.5) == 0
        timeouts.append(0.5 if is_first else timeout)
        return send(adapter, request, timeout=timeouts[-1], **kwargs)

    monkeypatch.setattr(HTTPAdapter, "send", impatient)

    output = sync(config | {"request_timeout_seconds": 60})

    assert sorted(keys(output.records("job_details"))) == sorted(keys(published(sandbox)))
    assert len(sandbox.requests) == 29
    assert sorted(timeouts) == [0.5] + [60.0] * 28


@pytest.mark.usefixtures("no_waiting")
def test_a_detail_that_fails_all_its_tries_costs_that_row_alone(
    sandbox: Sandbox, config: Config
) -> None:
    broken = published(sandbox)[2]["publicId"]
    sandbox.fail_next("http_500", times=None, path=broken)

    with captured() as output, pytest.raises(PublicJobsError) as caught:
        TapPublicJobs(config=config).sync_all()

    assert f"the detail of '{broken}' is missing" in str(caught.value)
    assert "500 Internal Server Error" in str(caught.value)
    rest = details(sandbox)
    rest.pop(published(sandbox)[2]["id"])
    assert output.rows("job_details") == rest
    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["jobs"]
    assert paths(sandbox.requests).count(f"/jobs/{broken}") == 8


@pytest.mark.usefixtures("no_waiting")
def test_a_list_that_stays_down_ends_the_run(sandbox: Sandbox, config: Config) -> None:
    sandbox.fail_next("http_503", times=None, path=lambda request: bool(request.query))

    with captured() as output, pytest.raises(PublicJobsError, match="after 8 tries"):
        TapPublicJobs(config=config).sync_all()

    assert output.of("ACTIVATE_VERSION") == []
    assert paths(sandbox.requests) == ["/jobs?page=1"] * 8


def test_a_job_without_a_key_is_told_and_the_others_go_on(sandbox: Sandbox, config: Config) -> None:
    sandbox.edit(published(sandbox)[15]["publicId"], id=None)

    with captured() as output, pytest.raises(PublicJobsError, match="page 2, item 6 of the list"):
        TapPublicJobs(config=config).sync_all()

    assert len(output.records("jobs")) == len(output.records("job_details")) == 24
    assert output.of("ACTIVATE_VERSION") == []


def test_a_detail_without_its_key_is_keyed_by_the_list() -> None:
    """Which fields a detail may omit is not documented."""
    sandbox = Sandbox.demo(jobs=2, options=Options(limited=False))
    first, second = published(sandbox)
    with serving(sandbox) as url:
        config = {"api_key": sandbox.key, "base_url": url}
        listing_done = 2
        sandbox.at_request(listing_done, lambda: sandbox.edit(first["publicId"], id=None))
        output = sync(config)

    assert {r["id"] for r in output.records("job_details")} == {first["id"], second["id"]}


def test_a_revoked_key_ends_the_run_at_once(sandbox: Sandbox, config: Config) -> None:
    sandbox.at_request(10, lambda: sandbox.revoke(sandbox.key))

    config |= {"max_concurrent_requests": 2}
    with captured() as output, pytest.raises(AccessError, match=r"refused the key \(401\)"):
        TapPublicJobs(config=config).sync_all()

    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["jobs"]
    assert len(sandbox.requests) <= 9 + 2 * 2  # two workers, each with one detail and one page
    assert len(output.records("job_details")) >= 9 - 3 - 2


def test_a_plan_without_the_api_ends_the_run(sandbox: Sandbox, config: Config) -> None:
    key = sandbox.organisations["Lumen Books"].key

    with captured(), pytest.raises(AccessError, match="plan of its organisation does not include"):
        TapPublicJobs(config=config | {"api_key": key}).sync_all()

    assert paths(sandbox.requests) == ["/jobs?page=1"]


@pytest.mark.parametrize(
    ("fault", "said"), [("redirect", "it redirects"), ("html", "the response is a web page")]
)
def test_what_is_not_the_api_is_told_with_the_url_that_was_asked(
    sandbox: Sandbox, config: Config, fault: str, said: str
) -> None:
    sandbox.fail_next(fault, times=None)

    with captured(), pytest.raises(PublicJobsError, match=said) as caught:
        TapPublicJobs(config=config).sync_all()

    assert f"{config['base_url']}/api/public/v1/jobs," in str(caught.value)
    assert len(sandbox.requests) == 1


def test_a_base_url_with_nothing_behind_it_is_told(config: Config) -> None:
    elsewhere = config["base_url"] + "/elsewhere"

    with captured(), pytest.raises(PublicJobsError, match="the response is 404"):
        TapPublicJobs(config=config | {"base_url": elsewhere}).sync_all()


def test_a_redirected_detail_is_not_followed_and_costs_that_row_alone(
    sandbox: Sandbox, config: Config
) -> None:
    first = published(sandbox)[0]["publicId"]
    sandbox.fail_next("redirect", path=first)

    with captured() as output, pytest.raises(PublicJobsError, match="302 Found"):
        TapPublicJobs(config=config | {"auth_header": "x-api-key"}).sync_all()

    assert sorted(keys(output.records("job_details"))) == sorted(keys(published(sandbox)[1:]))
    assert not any("elsewhere" in request.path for request in sandbox.requests)


def test_a_page_that_is_refused_ends_the_run_and_deletes_nothing(
    sandbox: Sandbox, config: Config
) -> None:
    """Unless the list is over by its own count: what lies beyond it is not documented."""
    sandbox.fail_next("redirect", times=None, path=lambda it: it.query.get("page") == "3")

    with captured() as output, pytest.raises(PublicJobsError, match="Page 3 of the list of jobs"):
        TapPublicJobs(config=config).sync_all()
    assert output.of("ACTIVATE_VERSION") == []

    for job in published(sandbox)[20:]:
        sandbox.unpublish(job["publicId"])
    output = sync(config)
    assert keys(output.records("jobs")) == keys(published(sandbox))
    assert len(output.of("ACTIVATE_VERSION")) == 2


def test_a_stream_that_stream_maps_remove_costs_nothing(sandbox: Sandbox, config: Config) -> None:
    output = sync(config | {"stream_maps": {"job_details": None}})

    assert output.of("SCHEMA", "job_details") == []
    assert paths(sandbox.requests) == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


def test_a_stream_map_that_fails_on_a_record_is_told(config: Config) -> None:
    maps = {"jobs": {"half": "maxSalary / 'two'"}}

    with captured(), pytest.raises(PublicJobsError, match="stream_maps cannot be applied to the"):
        TapPublicJobs(config=config | {"stream_maps": maps}).sync_all()


def test_damaged_state_is_set_aside(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    output = sync(config, state={"bookmarks": {"jobs": ["?"]}})

    assert len(output.records("jobs")) == 25
    assert "Ignoring the state, which is damaged" in caplog.text


@pytest.mark.usefixtures("no_waiting")
def test_bad_neighbours_do_not_block_the_others(sandbox: Sandbox, config: Config) -> None:
    """Ten of them at the front of the list, one after the other, and the list is fine."""
    bad = {job["publicId"] for job in published(sandbox)[:10]}
    for number, public_id in enumerate(sorted(bad)):
        sandbox.fail_next("http_500" if number % 2 else "http_400", times=None, path=public_id)

    with captured() as output, pytest.raises(PublicJobsError, match="The sync is incomplete") as it:
        TapPublicJobs(config=config | {"max_concurrent_requests": 1}).sync_all()

    assert set(keys(output.records("job_details"))) == set(keys(published(sandbox))) - bad
    assert all(public_id in str(it.value) for public_id in bad)
    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["jobs"]


@pytest.mark.usefixtures("no_waiting")
def test_details_that_fail_in_a_row_end_the_run_if_the_list_fails_too(
    sandbox: Sandbox, config: Config
) -> None:
    sandbox.fail_next("http_502", times=None, path=lambda _: len(sandbox.requests) > 3 + 10)

    with captured() as output, pytest.raises(PublicJobsError, match="after 8 tries"):
        TapPublicJobs(config=config | {"max_concurrent_requests": 1}).sync_all()

    assert len(output.records("job_details")) == 10
    assert paths(sandbox.requests).count("/jobs?page=1") == 1 + 8
    assert len(output.state["bookmarks"]["jobs"]["sync"]["jobs"]) == 25


def test_details_that_are_missing_while_their_jobs_are_listed_delete_nothing(
    sandbox: Sandbox, config: Config
) -> None:
    """A proxy that answers 404 to all details but one must not empty the warehouse."""
    there = published(sandbox)[0]["publicId"]
    sandbox.fail_next("http_404", None, lambda it: not it.query and not it.path.endswith(there))

    with captured() as output, pytest.raises(PublicJobsError, match="although the job is listed"):
        TapPublicJobs(config=config).sync_all()

    assert keys(output.records("job_details")) == [there]
    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["jobs"]


def test_a_refused_detail_is_not_blamed_on_the_key(sandbox: Sandbox, config: Config) -> None:
    """The sandbox refuses one job; the list is still answered."""
    victim = published(sandbox)[4]["publicId"]
    sandbox.fail_next("http_403", None, victim)

    with (
        captured() as output,
        pytest.raises(PublicJobsError, match="although the key can read the list"),
    ):
        TapPublicJobs(config=config).sync_all()

    assert set(keys(output.records("job_details"))) == set(keys(published(sandbox))) - {victim}


def test_a_public_id_that_another_job_takes_over_costs_no_job(
    sandbox: Sandbox, config: Config
) -> None:
    """In the middle of a run: one job is gone, and the other is fetched by its new publicId."""
    first, second, third = published(sandbox)[:3]
    sandbox.at_request(4, lambda: sandbox.edit(second["publicId"], id=first["id"]))
    sandbox.at_request(4, lambda: sandbox.unpublish(first["publicId"]))
    sandbox.at_request(4, lambda: sandbox.edit(third["publicId"], publicId="renamed"))
    sandbox.options = dataclasses.replace(sandbox.options, latency=0.01)

    output = sync(config | {"max_concurrent_requests": 1})

    rows = output.rows("job_details")
    assert second["id"] not in rows
    assert rows[first["id"]]["publicId"] == second["publicId"]
    assert rows[third["id"]]["publicId"] == "renamed"
    assert rows == details(sandbox)


@pytest.mark.parametrize("order", [*permutations(ORDER)])
def test_no_order_of_streams_loses_rows(
    sandbox: Sandbox,
    config: Config,
    order: tuple[type[PublicJobsStream], ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tap_public_jobs.tap.ORDER", order)

    output = sync(config)

    for stream in STREAMS:
        assert output.rows(stream).keys() == details(sandbox).keys()
    assert {m["stream"] for m in output.of("ACTIVATE_VERSION")} == {"jobs", "job_details"}


@pytest.mark.parametrize("value", ["a\0b", "half \ud83d of a pair"])
def test_what_no_warehouse_stores_is_replaced_and_named(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture, value: str
) -> None:
    public_id = published(sandbox)[2]["publicId"]
    sandbox.edit(public_id, roleOverview=value, nested={"key" + value: [value]})

    output = sync(config)

    (row,) = [it for it in output.records("job_details") if it["publicId"] == public_id]
    clean = value.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
    assert row["roleOverview"] == clean
    assert json.loads(row["additionalFields"])["nested"] == {"key" + clean: [clean]}
    assert (
        f"'roleOverview' of the job '{public_id}' holds a value that no warehouse can store"
        in caplog.text
    )
    assert "'nested' of the job" in caplog.text


def test_a_new_field_is_named_once(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    first = sync(config)
    sandbox.edit(published(sandbox)[0]["publicId"], fieldOfTomorrow="year")

    with caplog.at_level("INFO"):
        second = sync(config, state=first.state)
        assert caplog.text.count("new fields in jobs: fieldOfTomorrow") == 0
        assert caplog.text.count("new fields in job_details: fieldOfTomorrow;") == 1
        sync(config, state=second.state)

    assert caplog.text.count("fieldOfTomorrow") == 1


@pytest.mark.parametrize("depth", [120, 500])
def test_what_is_nested_too_deeply_becomes_text(
    sandbox: Sandbox, config: Config, depth: int
) -> None:
    """In a column of its own level, and every other job arrives as it is."""
    public_id = published(sandbox)[2]["publicId"]
    nested: Any = "core"
    for _ in range(depth):
        nested = [nested]
    sandbox.edit(public_id, nested=nested)

    output = sync(config)

    (row,) = [it for it in output.records("job_details") if it["publicId"] == public_id]
    value = json.loads(row["additionalFields"])["nested"]
    while isinstance(value, list):
        (value,) = value
    assert value.startswith("[[")
    assert '"core"' in value
    assert len(output.records("job_details")) == 25


def _without_id(schema: dict[str, Any]) -> None:
    del schema["properties"]["id"]


def _with_number_for_id(schema: dict[str, Any]) -> None:
    schema["properties"]["id"] = {"type": "integer"}


def _without_properties(schema: dict[str, Any]) -> None:
    schema.clear()


def _with_unknown_type(schema: dict[str, Any]) -> None:
    schema["properties"]["jobTitle"] = {"type": "banana"}


@pytest.mark.parametrize(
    "damage", [_without_id, _with_number_for_id, _without_properties, _with_unknown_type]
)
@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_catalog_that_no_record_fits_is_refused_before_any_is_written(
    sandbox: Sandbox, config: Config, damage: Callable[[dict[str, Any]], None], stream: int
) -> None:
    catalog = catalog_of(config)
    damage(catalog["streams"][stream]["schema"])

    with captured() as output, pytest.raises(PublicJobsError, match="The catalog"):
        TapPublicJobs(config=config, catalog=catalog).sync_all()

    assert output.of("RECORD") == []
    assert sandbox.requests == []


def test_a_replication_key_in_the_catalog_has_no_effect(config: Config) -> None:
    catalog = catalog_of(config)
    for stream in catalog["streams"]:
        stream |= {"replication_method": "INCREMENTAL", "replication_key": "jobTitle"}

    output = sync(config, catalog=catalog)

    assert [m["stream"] for m in output.of("ACTIVATE_VERSION")] == ["jobs", "job_details"]
