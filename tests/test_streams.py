"""What the streams write: whole records, in an order that no crash makes wrong.

The SDK's standard tests run on the sandbox, too.
"""

import json
import signal
from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, Pipeline, first_run
from harness import catalog_of, demo, json_text, paths, select_only, sync
from jsonschema import Draft4Validator
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, summary
from public_jobs_sandbox.state import Sandbox
from raw_server import unused_port
from requests.adapters import HTTPAdapter
from singer_sdk import Stream
from singer_sdk.testing import SuiteConfig, get_tap_test_class

from tap_public_jobs.errors import PageError, RequestError
from tap_public_jobs.singer import tap as singer_tap
from tap_public_jobs.singer.process import WholeMessageWriter
from tap_public_jobs.streams import ORDER, PublicJobsStream
from tap_public_jobs.sync import run
from tap_public_jobs.sync.report import DetailCounts
from tap_public_jobs.tap import TapPublicJobs

Config = dict[str, Any]
STREAMS = ("jobs", "job_publications", "job_details")


def detail(job: dict[str, Any]) -> dict[str, Any]:
    """The record of a job's detail."""
    others = {name: job[name] for name in job if name in UNDOCUMENTED_FIELDS}
    columns = {name: job[name] for name in job if name not in UNDOCUMENTED_FIELDS}
    columns["knockoutQuestions"] = json_text(columns["knockoutQuestions"])
    return columns | {"additionalFields": json_text(others) if others else None}


# Through HTTP.


def test_every_job_arrives_whole_and_no_request_is_wasted(sandbox: Sandbox, config: Config) -> None:
    output = sync(config)

    jobs = [
        json.loads(posting.detail_json(), parse_float=Decimal)
        for posting in sandbox.organisation.published()
    ]
    assert len(jobs) == 25
    summaries = {job["id"]: summary(job) | {"additionalFields": None} for job in jobs}
    details = {job["id"]: detail(job) for job in jobs}
    assert [*output.rows("jobs")] == [*summaries]
    for stream, expected in (("jobs", summaries), ("job_details", details)):
        assert output.rows(stream) == expected
    keys = {(it.headers["authorization"], it.headers.get("x-api-key")) for it in sandbox.requests}
    assert keys == {(f"Bearer {sandbox.key}", None)}
    asked = paths(sandbox.requests)
    assert asked[:3] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]
    assert sorted(asked[3:]) == sorted(f"/jobs/{job['publicId']}" for job in jobs)
    for message in output.of("SCHEMA"):
        # Some targets accept no schema that names a draft other than the fourth.
        assert "$schema" not in message["schema"]
        Draft4Validator.check_schema(message["schema"])


def test_the_key_travels_in_the_chosen_header_alone(sandbox: Sandbox, config: Config) -> None:
    """With the user agent and the timeout of the settings."""
    config |= {"user_agent": "acme-etl/1", "request_timeout_seconds": 77}
    observed = mock.patch.object(HTTPAdapter, "send", autospec=True, side_effect=HTTPAdapter.send)

    with observed as send:
        sync(config | {"auth_header": "x-api-key"})

    headers = [request.headers for request in sandbox.requests]
    assert {it["x-api-key"] for it in headers} == {sandbox.key}
    assert not any("authorization" in it for it in headers)
    assert {it["user-agent"] for it in headers} == {"acme-etl/1"}
    assert {it["accept"] for it in headers} == {"application/json"}
    assert {call.kwargs["timeout"] for call in send.call_args_list} == {77}


@mock.patch("tap_public_jobs.limit.transport.FIRST_WAIT", 0.0)
def test_a_run_reports_what_the_api_answers_and_knows_that_it_has_answered_before(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """And how much of the limit is used; of another key, it knows neither."""
    config |= {"rate_limit_period_seconds": 3600}
    sandbox.fail_next("http_503")
    with caplog.at_level("INFO"):
        state = sync(config).state

    assert "The API answered 503, which may be its rate limit." in caplog.text
    assert "29 requests (0 rejections, 1 retry)" in caplog.text
    (details,) = [vars(it)["details"] for it in caplog.records if "details" in vars(it)]
    assert details == vars(DetailCounts(planned=25, done=25, fetched=25))
    held = TapPublicJobs(config=config, state=state).throttle.held_slots()
    assert (held and held.number) == 29
    other = TapPublicJobs(config=config | {"api_key": "another"}, state=state)
    assert other.throttle.held_slots() is None
    assert not other.client.session.key_has_worked  # a 403 is about the key
    with unused_port() as port:
        config |= {"base_url": f"http://127.0.0.1:{port}"}
        again = TapPublicJobs(config=config, state=state)
        said = r"cannot be reached, because nothing listens .*, after {} tries\. If the API is down"
        with pytest.raises(PageError, match=said.format(8)):
            again.sync_all()
        with pytest.raises(PageError, match=said.format(3)):
            sync(config)
    with pytest.raises(SystemExit):
        again.throttle.acquire()  # no request follows an error


# The messages.


def test_a_record_that_a_signal_keeps_from_being_written_is_left_to_the_next_run(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its detail has arrived."""
    pipeline = Pipeline(api)
    write = WholeMessageWriter.write_message

    def stopped(writer: WholeMessageWriter, message: Any) -> None:
        if message.to_dict().get("stream") == "job_details" and getattr(message, "record", 0):
            writer.stop(143)
        write(writer, message)

    with monkeypatch.context() as patch:
        patch.setattr(WholeMessageWriter, "write_message", stopped)
        pipeline.run()
    assert pipeline.error == "143"
    assert pipeline.output.records("job_details") == []
    assert {*pipeline.run()} - {*LIST} == {f"detail pub-{key}" for key in api.published}


def test_messages_come_in_an_order_that_no_crash_makes_wrong(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream is activated after its last record, and history never."""
    monkeypatch.setattr(run, "FEWEST_BETWEEN_CHECKPOINTS", 4)
    pipeline = first_run(api)

    output = pipeline.output
    assert output.order == [
        "STATE",  # a run that is killed after its first record has work left
        *("SCHEMA jobs", "RECORD jobs", "ACTIVATE_VERSION jobs", "STATE"),
        *("SCHEMA job_publications", "RECORD job_publications", "STATE"),
        *("SCHEMA job_details", *["RECORD job_details", "STATE"] * 2),  # after 4 and 8
        *("RECORD job_details", "ACTIVATE_VERSION job_details", "STATE"),
    ]
    for stream in ("jobs", "job_details"):
        versions = {message["version"] for message in output.of("RECORD", stream)}
        assert versions == {output.of("ACTIVATE_VERSION", stream)[0]["version"]}
    assert not any("version" in message for message in output.of("RECORD", "job_publications"))


def test_state_is_written_in_proportion_to_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every N/20 details, so some 20 times a run, and not as often as the SDK would.

    The two identifiers have 68 characters together, as those of the sandbox have.
    """
    monkeypatch.setattr(Stream, "STATE_MSG_FREQUENCY", 100)
    api = FakeApi()
    for number in range(1_200):
        api.publish(f"{number:08}-an-id-of-32-characters--")
    pipeline = first_run(api, page_size=100)

    others = ("jobs", "job_publications")
    kinds = [it["type"] for it in pipeline.output.messages if it.get("stream") not in others]
    assert kinds[3:] == [
        "SCHEMA",
        *(["RECORD"] * 60 + ["STATE"]) * 20,
        *["ACTIVATE_VERSION", "STATE", "STATE"],
    ]
    assert len(json.dumps(pipeline.state, separators=(",", ":"))) / 1_200 < 150


@pytest.mark.parametrize("order", [*permutations(ORDER)])
def test_no_order_of_streams_loses_rows(
    api: FakeApi, order: tuple[type[PublicJobsStream], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tap_public_jobs.tap.ORDER", order)
    pipeline = first_run(api)

    for stream in STREAMS:
        assert pipeline.output.rows(stream).keys() == api.published.keys()
    assert {*pipeline.activated} == {"jobs", "job_details"}


def test_only_a_run_that_fetches_all_details_begins_a_version_of_them(pipeline: Pipeline) -> None:
    """Some targets show no row of a version that is never activated."""
    versions = []
    for refresh in ("all", "changed", "changed", "all"):
        pipeline.run(detail_refresh=refresh, detail_max_age_days=0)
        (version,) = {it["version"] for it in pipeline.output.of("RECORD", "job_details")}
        versions.append(version)

    first, *others, last = versions
    assert others == [first] * 2
    assert last > first


def test_activation_can_be_turned_off(api: FakeApi) -> None:
    pipeline = first_run(api, emit_activate_version_messages=False)

    assert pipeline.activated == []
    assert [message for message in pipeline.output.of("RECORD") if "version" in message] == []


# The records.


def test_a_declared_column_takes_its_field_out_of_the_others(api: FakeApi) -> None:
    """As Meltano's `schema` extra declares it: in the catalog."""
    api.edit("3", skills=["SQL"], remote=True)
    catalog = catalog_of(CONFIG)
    for entry in catalog["streams"]:
        column = {"type": ["array", "null"], "items": {"type": "string"}}
        entry["schema"]["properties"]["skills"] = column
    pipeline = first_run(api, catalog)

    row = pipeline.hard.rows["job_details"]["3"]
    assert (row["skills"], row["additionalFields"]) == (["SQL"], '{"remote":true}')


def test_a_detail_without_its_keys_is_keyed_by_the_list(api: FakeApi) -> None:
    """Which fields a detail may omit is not documented."""
    api.answers["pub-3"] = {"jobTitle": "Keyless", "publicId": ["pub-3"]}
    pipeline = first_run(api)

    row = pipeline.hard.rows["job_details"]["3"]
    assert (row["publicId"], row["jobTitle"]) == ("pub-3", "Keyless")


def test_a_new_field_is_named_once(
    api: FakeApi, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    api.answers["pub-3"] = api.published["3"] | {"fieldOfTomorrow": "year"}

    with caplog.at_level("INFO"):
        pipeline.run()
        assert caplog.text.count("new fields in job_details: fieldOfTomorrow;") == 1
        pipeline.run()

    assert caplog.text.count("fieldOfTomorrow") == 1


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_of_items_that_share_an_id_the_first_public_id_is_the_row(
    api: FakeApi, caplog: pytest.LogCaptureFixture, order: tuple[int, ...]
) -> None:
    """In whichever order, on whichever page; the list is complete, read once."""
    items = [api.published["3"] | {"publicId": f"pub-3-{it}", "location": it} for it in "bac"]
    del api.published["3"]
    api.answers |= {it["publicId"]: it for it in items}
    others = api.listed()
    listed = [items[order[0]], *others[:5], items[order[1]], *others[5:], items[order[2]]]
    vars(api)["listed"] = lambda: listed

    pipeline = first_run(api)
    listed = [items[order[2]], *others[5:], items[order[0]], *others[:5], items[order[1]]]
    requests = pipeline.run(detail_refresh="changed")

    assert (pipeline.error, pipeline.activated) == ("", ["jobs"])
    assert requests == [*LIST, "page 5"]  # four full pages
    for stream in ("jobs", "job_details"):
        row = pipeline.hard.rows[stream]["3"]
        assert (row["publicId"], row["location"]) == ("pub-3-a", "a")
        assert len(pipeline.hard.rows[stream]) == 10
    assert "2 items of the list are left out, such as 'pub-3-b', 'pub-3-c', be" in caplog.text


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_items_of_a_page_that_share_the_public_id_too_are_one_row(
    api: FakeApi, caplog: pytest.LogCaptureFixture, order: tuple[int, ...]
) -> None:
    """As from an API that lists a job once for each of its places; one is even there twice."""
    places = [api.published["3"] | {"location": it} for it in ("Bern", "Bern", "Genf")]
    others = [job for job in api.listed() if job["id"] != "3"]
    # On its second page.
    listed = [*others[:3], *(places[it] for it in order), *others[3:]]
    vars(api)["listed"] = lambda: listed

    pipeline = first_run(api)

    assert (pipeline.error, pipeline.activated) == ("", ["jobs", "job_details"])
    assert pipeline.hard.rows["jobs"]["3"]["location"] == places[order[-1]]["location"]
    assert len(pipeline.hard.rows["jobs"]) == 10
    assert "2 items of the list are left out, such as 'pub-3', 'pub-3', because" in caplog.text


@pytest.mark.parametrize("name", ["viewCount", "view_count"])
def test_a_field_that_always_changes_can_be_ignored(api: FakeApi, name: str) -> None:
    """In the names of the API or of columns; rows still have it."""

    def view() -> None:
        for job_id in api.published:
            api.edit(job_id, viewCount=next(counter))

    counter = iter(range(1000))
    view()
    pipeline = first_run(api, detail_refresh="changed")
    view()
    api.edit("0", jobTitle="Edited")
    assert len([it for it in pipeline.run() if it.startswith("detail")]) == 10

    pipeline.run(ignored_fields=[name])
    view()
    api.edit("1", jobTitle="Edited, too")
    requests = pipeline.run(ignored_fields=[name])

    assert [it for it in requests if it.startswith("detail")] == ["detail pub-1"]
    assert pipeline.run(ignored_fields=[name]) == LIST  # nothing lags behind a counter
    fields = json.loads(pipeline.hard.rows["jobs"]["9"]["additionalFields"])
    assert fields == {"viewCount": 29}


# What a user selects and maps.


@pytest.mark.parametrize("others", ["deselected", "left out"])
@pytest.mark.parametrize("stream", STREAMS)
def test_each_stream_can_be_selected_alone(api: FakeApi, stream: str, others: str) -> None:
    """Without details, the list is all it costs."""
    catalog = select_only(CONFIG, stream) if others == "deselected" else catalog_of(CONFIG)
    if others == "left out":
        catalog["streams"] = [it for it in catalog["streams"] if it["stream"] == stream]
    pipeline = Pipeline(api)

    requests = pipeline.run(catalog=catalog)

    assert {it["stream"] for it in pipeline.output.of("SCHEMA")} == {stream}
    assert pipeline.output.rows(stream).keys() == api.published.keys()
    assert pipeline.activated == ([] if stream == "job_publications" else [stream])
    assert len(requests) == 4 + 10 * (stream == "job_details")


def test_a_catalog_that_selects_nothing_is_an_error_that_costs_nothing(pipeline: Pipeline) -> None:
    """A schedule would stay green, and the tables grow old."""
    assert pipeline.run(catalog={"streams": []}) == []
    assert "No stream is selected" in pipeline.error


def test_deselected_columns_are_in_neither_schema_nor_records(api: FakeApi) -> None:
    catalog = catalog_of(CONFIG)
    for stream in catalog["streams"]:
        for entry in stream["metadata"]:
            if entry["breadcrumb"][-1:] in (["jobTitle"], ["additionalFields"]):
                entry["metadata"]["selected"] = False
    pipeline = first_run(api, catalog)

    for stream in ("jobs", "job_details"):
        (message,) = pipeline.output.of("SCHEMA", stream)
        columns = {*message["schema"]["properties"]}
        assert not columns & {"jobTitle", "additionalFields"}
        assert [*map(set, pipeline.output.records(stream))] == [columns] * 10


def test_stream_maps_rename_drop_hash_and_remove(api: FakeApi) -> None:
    maps = {
        "jobs": {"title": "jobTitle", "jobTitle": "__NULL__", "hash": "md5(publicId)"},
        "job_publications": None,
        "job_details": {"__alias__": "details"},
    }
    pipeline = first_run(api, stream_maps=maps)

    first = pipeline.output.records("jobs")[0]
    assert (first["title"], len(first["hash"])) == ("Job 0", 32)
    assert "jobTitle" not in first
    assert pipeline.output.rows("details").keys() == api.published.keys()
    assert {it["stream"] for it in pipeline.output.of("SCHEMA")} == {"jobs", "details"}
    assert pipeline.activated == ["jobs", "details"]
    assert len(pipeline.run(stream_maps={"job_details": None})) == 4


def test_flattening_loses_nothing(api: FakeApi) -> None:
    api.edit("3", knockoutQuestions=[{"id": "q"}], nested={"a": {"b": [1]}})
    pipeline = first_run(api)
    rows = pipeline.output.rows("job_details")

    pipeline.run(flattening_enabled=True, flattening_max_depth=2)

    assert pipeline.output.rows("job_details") == rows
    assert rows["3"]["additionalFields"] == '{"nested":{"a":{"b":[1]}}}'


def test_flattening_writes_no_column_that_is_not_declared(api: FakeApi) -> None:
    """An object that is null has none then, and target-csv stops at its name."""
    api.edit("3", salary={"min": 1, "pay": None, "period": "year"})
    api.edit("4", salary={"min": 2, "pay": {"by": "hour"}})
    catalog = catalog_of(CONFIG)
    pay = {"type": ["object", "null"], "properties": {"by": {"type": "string"}}}
    columns = {"min": {"type": "number"}, "pay": pay}
    for stream in catalog["streams"]:
        salary = {"type": ["object", "null"], "properties": columns}
        stream["schema"]["properties"]["salary"] = salary
        choice = {"inclusion": "available", "selected": True}
        stream["metadata"].append({"breadcrumb": ["properties", "salary"], "metadata": choice})

    flat = first_run(api, catalog, flattening_enabled=True, flattening_max_depth=2)

    rows = flat.output.rows("job_details")
    found = {
        key: {name: it for name, it in row.items() if name.startswith("salary")}
        for key, row in rows.items()
    }
    assert {key for key, row in found.items() if row} == {"3", "4"}
    assert found["3"] == {"salary__min": 1}
    assert found["4"] == {"salary__min": 2, "salary__pay__by": "hour"}
    assert rows["3"]["additionalFields"] == '{"salary":{"period":"year"}}'


def declared_pay(*others: str) -> dict[str, Any]:
    """A catalog with an object `pay`, and these columns of text, in jobs and job_details."""
    catalog = catalog_of(CONFIG)
    pay = {"type": ["object", "null"], "properties": {"min": {"type": "number"}}}
    for stream in catalog["streams"]:
        stream["schema"]["properties"] |= {"pay": pay} | {it: {"type": "string"} for it in others}
        stream["metadata"] = []
    return catalog


def test_a_name_that_begins_like_a_removed_object_is_none_of_its_columns(api: FakeApi) -> None:
    """What is left of the object must not be written elsewhere."""
    api.edit("3", pay={"min": 1, "max": 2}, pay_period="year")
    flat = {"flattening_enabled": True, "flattening_max_depth": 2, "flattening_separator": "_"}

    removed = {"jobs": {"pay": "__NULL__"}, "job_details": {"pay": "__NULL__"}}
    pipeline = first_run(api, declared_pay("pay_period"), stream_maps=removed, **flat)

    row = pipeline.output.rows("jobs")["3"]
    assert (row["pay_period"], row["additionalFields"]) == ("year", None)


def test_flattening_may_shorten_names_and_loses_nothing(
    api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    api.edit("3", pay={"min": 1, "max": 2}, seniorityLevel=7)
    flat = {"flattening_enabled": True, "flattening_max_depth": 2, "flattening_max_key_length": 12}

    with caplog.at_level("INFO"):
        pipeline = first_run(api, declared_pay(), **flat)

    row = pipeline.output.rows("jobs")["3"]
    assert (row["pay__min"], row["sl"]) == (1, None)
    assert row["af"] == '{"pay":{"max":2},"seniorityLevel":7}'
    assert "Left out" not in caplog.text


@pytest.mark.parametrize(
    ("column", "expression", "error"),
    [
        ("x", "maxSalary / 'two'", "TypeError"),
        ("x", "1 / 0", "ZeroDivisionError"),
        ("x", "config['no']", "KeyError"),
        ("x", "int(jobTitle)", "ValueError"),
        ("x", "jobTitle.no", "MapExpressionError"),
        ("x", "datetime.date.no", "MapExpressionError"),
        ("__filter__", "1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_stream_map_that_fails_on_a_record_is_an_error_with_a_remedy(
    api: FakeApi, column: str, expression: str, error: str
) -> None:
    pipeline = first_run(api, stream_maps={"jobs": {column: expression}})

    said = f"act. stream_maps cannot be applied to the record of jobs with the id '0': {error}: "
    assert said in pipeline.error
    assert pipeline.error.endswith(" Correct the expression.")


def test_a_replication_key_in_the_catalog_has_no_effect(api: FakeApi) -> None:
    catalog = catalog_of(CONFIG)
    for stream in catalog["streams"]:
        stream |= {"replication_method": "INCREMENTAL", "replication_key": "jobTitle"}
    pipeline = first_run(api, catalog)

    assert pipeline.activated == ["jobs", "job_details"]


# What changes or fails during the details.


@pytest.fixture
def _signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A signal ends no test, and later ones find the handlers as they were."""
    monkeypatch.setattr(singer_tap, "exit_soon", lambda _: None)
    handlers = {it: signal.getsignal(it) for it in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize(
    ("last", "times", "written"),
    [("page 1", 1, ""), ("page 1", 2, "06789"), ("detail pub-9", 1, "06789")],
)
def test_a_stop_is_no_error_and_keeps_what_still_arrives(
    api: FakeApi, last: str, times: int, written: str
) -> None:
    api.answers = {f"pub-{key}": RequestError("the response is 502", 502) for key in range(1, 6)}

    def stop(request: str) -> None:
        if request == last and api.requests.count(last) == times:
            signal.raise_signal(signal.SIGTERM)
            if last == "page 1":
                raise SystemExit(143)  # as a throttle that is closed

    with pytest.raises(SystemExit, match="143"):  # at once, as no run has started
        TapPublicJobs(config=CONFIG)._handle_termination(signal.SIGTERM, None)
    api.on_request = stop
    pipeline = Pipeline(api, max_concurrent_requests=1)

    pipeline.run()

    assert pipeline.error == "143"
    # An alarm could interrupt the last STATE, and so could another signal.
    alarm, handler = signal.getitimer(signal.ITIMER_REAL)[0], signal.getsignal(signal.SIGTERM)
    assert (alarm, handler) == (0, signal.SIG_IGN)
    assert pipeline.output.messages[-1]["type"] == "STATE"
    assert pipeline.output.rows("job_details").keys() == {*written}


# The SDK.

SNAPSHOT = Path(__file__).parent / "snapshots" / "catalog.json"

# The suite is built on import and runs later, so its address is filled in when the server is up.
SUITE_CONFIG: dict[str, Any] = {**CONFIG}


@pytest.fixture(scope="class")
def _server() -> Iterator[None]:
    with demo(30) as (sandbox, config):
        # One that does not fit, so that the suite sees `additionalFields` of both streams filled.
        sandbox.edit(sandbox.organisation.published()[0].job["publicId"], maxSalary="negotiable")
        SUITE_CONFIG.update(config)
        yield


# In a first run no job has a time after which it was opened, and the suite warns of columns that
# hold nothing but null.
@pytest.mark.usefixtures("_server")
@pytest.mark.filterwarnings("ignore:No records were available to test")
class TestStandardSuite(
    get_tap_test_class(  # type: ignore[misc]  # made when it is called
        TapPublicJobs,
        config=SUITE_CONFIG,
        parse_env_config=False,
        suite_config=SuiteConfig(max_records_limit=10),
    )
): ...


def test_the_catalog_is_pinned() -> None:
    """A change of the catalog changes the tables of every user: make it on purpose.

    Write the new one with `uv run tap-public-jobs --discover > tests/snapshots/catalog.json`.
    """
    assert catalog_of(CONFIG) == json.loads(SNAPSHOT.read_text(encoding="utf-8"))
