"""What is left out, or withheld, goes nowhere."""

import json
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, first_run
from harness import catalog_of, demo, sync

Json = Any


def test_what_is_withheld_is_in_no_message_and_its_column_is_empty() -> None:
    """Neither in a column nor in JSON text, of a field with a column or without one."""
    with demo(20) as (sandbox, config):
        secret = {"location": "secret", "recruiterName": "secret", "kept": "kept"}
        sandbox.edit(sandbox.organisation.published()[0].job["publicId"], **secret)
        withheld = ["location", "additionalFields.recruiterName"]

        output = sync(config | {"withheld_fields": withheld})

    for stream in ("jobs", "job_details"):
        assert {row["location"] for row in output.rows(stream).values()} == {None}
    assert "secret" not in json.dumps(output.messages, default=str)


def test_withholding_a_field_fetches_all_details_again_once(api: FakeApi) -> None:
    """So that rows that have it lose it."""
    pipeline = first_run(api, detail_refresh="changed")

    requests = pipeline.run(withheld_fields=["role_overview"])
    assert len([it for it in requests if it.startswith("detail")]) == 10
    assert pipeline.run(withheld_fields=["role_overview"]) == LIST


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
