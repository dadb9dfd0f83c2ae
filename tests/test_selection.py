"""What is left out, or withheld, goes nowhere."""

from copy import deepcopy
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, first_run
from harness import catalog_of, demo, sync

from tap_public_jobs.errors import SetupError
from tap_public_jobs.tap import TapPublicJobs

Json = Any


# What withholds these fields, and the columns that stay and are empty.
FIELDS = ("location", "knockoutQuestions", "recruiterName", "recruiter_mail", "recruiter")
AS_FIELDS = [
    *("location", "knockoutQuestions", "additionalFields.recruiterName"),
    *("additionalFields.recruiter_mail", "additionalFields.recruiter"),
]
AS_SENT = ["knockout_questions", "recruiter_name"]  # in the other case
AS_COLUMNS = [
    *("location", "knockout_questions", "additional_fields.recruiter_name"),
    *("additional_fields.recruiter_mail", "additional_fields.recruiter"),
]


@pytest.mark.parametrize("naming", ["source", "snake_case"])
@pytest.mark.parametrize("withheld", [AS_FIELDS, AS_COLUMNS], ids=["fields", "columns"])
def test_a_withheld_value_is_in_no_record_no_state_no_hash_and_no_line(
    caplog: pytest.LogCaptureFixture, naming: str, withheld: list[str]
) -> None:
    """Whatever it is, in the list and in the detail, also if it is declared, mapped or flattened.

    As no hash has it, an edit of it alone is no change.
    """
    settings: Json = {
        "withheld_fields": withheld,
        "column_naming": naming,
        "detail_refresh": "changed",
        "flattening_enabled": True,
        "flattening_max_depth": 2,
        "stream_maps": {"jobs": {"copy": "location", "all": "str(record)"}},
    }
    catalog = catalog_of(CONFIG | {"column_naming": naming})
    declared = {"type": ["object", "null"], "properties": {"name": {"type": "string"}}}
    for stream in catalog["streams"]:
        stream["schema"]["properties"]["recruiter"] = declared
        choice = {"inclusion": "available", "selected": True}
        stream["metadata"].append({"breadcrumb": ["properties", "recruiter"], "metadata": choice})

    outputs = []
    state: Json = {}
    with demo(20) as (sandbox, config), caplog.at_level("DEBUG"):
        job = sandbox.organisation.published()[0].job["publicId"]
        for number in range(2):
            secret = {"name": [f"secret {number}\0"], "others": 2**99}
            sandbox.edit(job, **dict.fromkeys([*FIELDS, *AS_SENT], secret), kept="kept")
            outputs.append(sync(config | settings, catalog=deepcopy(catalog), state=state))
            state = outputs[-1].state

    first, second = outputs
    for stream, columns in {
        "jobs": {"location", "copy"},
        "job_details": {"location", "knockoutQuestions", "knockout_questions"},
    }.items():
        rows = first.rows(stream).values()
        assert {row[it] for row in rows for it in columns & row.keys()} == {None}
    assert "secret" not in first.text + second.text + caplog.text
    assert '"kept' in first.text.replace("\\", "")
    assert len(first.records("job_details")) == 20
    assert second.records("job_details") == []


def test_withholding_a_field_fetches_all_details_again_once(api: FakeApi) -> None:
    """So that rows that have it lose it."""
    pipeline = first_run(api, detail_refresh="changed")

    requests = pipeline.run(withheld_fields=["role_overview"])
    assert len([it for it in requests if it.startswith("detail")]) == 10
    assert pipeline.run(withheld_fields=["role_overview"]) == LIST


# What `stream_maps` name, and what is said of it; nothing if it is there.
MAPS: dict[str, tuple[Json, str]] = {
    "a stream": ({"job_detials": None}, "no stream 'job_detials', but job_details."),
    "another one": ({"people": {"x": "1"}}, "there is no stream 'people'."),
    "a source": ({"copy": {"__source__": "jbos"}}, "there is no stream 'jbos', but jobs."),
    "no stream of a pattern": ({"person*": None}, "there is no stream 'person*'."),
    "a column": (
        {"jobs": {"locaton": None}},
        "stream_maps: jobs has no column 'locaton', but location.",
    ),
    "a column under another name": (
        {"job_details": {"role_overview": "__NULL__"}},
        "stream_maps: job_details has no column 'role_overview', but roleOverview.",
    ),
    "a column of a pattern": (
        {"job*": {"locaton": "__NULL__"}},
        "stream_maps: job* has no column 'locaton', but location.",
    ),
    "a column of another stream": ({"jobs": {"roleOverview": None}}, "no column 'roleOverview'"),
    "what is there": ({"jobs": {"location": None}, "job_publications": "__NULL__"}, ""),
    "all others": ({"jobs": {"x": "id", "__filter__": "True"}, "__else__": None}, ""),
    "what a pattern names": ({"job_*": {"roleOverview": None}}, ""),
    "an option": ({"jobs": {"id": "id", "__else__": None}}, ""),
    "a copy": ({"copy": {"__source__": "jobs", "location": "__NULL__"}}, ""),
}


@pytest.mark.parametrize(("maps", "said"), MAPS.values(), ids=MAPS)
def test_a_stream_map_that_leaves_out_what_is_not_there_is_refused(maps: Json, said: str) -> None:
    """The SDK would load what somebody means to leave out (meltano/sdk#799 and #983)."""
    config = CONFIG | {"stream_maps": maps}

    if said:
        with pytest.raises(SetupError) as caught:
            TapPublicJobs(config=config)
        assert said in str(caught.value)
    else:
        assert TapPublicJobs(config=config).streams


@pytest.mark.parametrize("way", ["deselected", "removed"])
def test_what_is_left_out_goes_nowhere_else_and_the_log_names_it(
    api: FakeApi, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """Neither a value that does not fit, nor what its column does not declare."""
    api.edit("3", location=7, nested={"a": 1, "b": 2}, other={"c": 3})
    catalog = catalog_of(CONFIG)
    maps: Json = {"job_publications": None}
    nested = {"type": ["object", "null"], "properties": {"a": {"type": "number"}}}
    for stream in catalog["streams"]:
        stream["schema"]["properties"] |= {"nested": nested, "other": nested}
        for entry in stream["metadata"] if way == "deselected" else ():
            if entry["breadcrumb"][-1:] == ["location"]:
                entry["metadata"]["selected"] = False
        choice = {"inclusion": "available", "selected": way == "removed"}
        stream["metadata"] += [
            {"breadcrumb": ["properties", "nested"], "metadata": choice},
            {"breadcrumb": ["properties", "other"], "metadata": choice | {"selected": True}},
        ]
    if way == "removed":
        removed = {"location": "__NULL__", "nested": None}
        maps |= {"jobs": removed, "job_details": removed}

    with caplog.at_level("INFO"):
        pipeline = first_run(api, catalog, stream_maps=maps)

    row = pipeline.output.rows("jobs")["3"]
    assert {"location", "nested"} & row.keys() == set()
    assert row["additionalFields"] == '{"other":{"c":3}}'
    left_out = "the stream job_publications; location, nested of jobs; location, nested of job_det"
    assert (
        f"Left out, as select, the catalog or stream_maps say: {left_out}ails." in caplog.messages
    )
    assert "does not fit its type" not in caplog.text
