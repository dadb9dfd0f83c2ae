"""Second runs: what they fetch, what they remember, and when they take effect."""

import json
import logging
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import CONFIG, LIST, Pipeline, first_run
from harness import catalog_of, select_only

from tap_public_jobs.errors import AccessError

DAY = 86_400
REFUSED = AccessError("The API refused the key (401)")


@pytest.fixture
def changed(pipeline: Pipeline) -> Pipeline:
    """A pipeline under `detail_refresh: changed`, after its first run."""
    pipeline.config["detail_refresh"] = "changed"
    return pipeline


def test_the_state_that_follows_the_last_detail_covers_all(api: FakeApi) -> None:
    """The target dies before it reads the very last message, which is another state."""
    pipeline = Pipeline(api, detail_refresh="changed")
    pipeline.run(upto=-1)

    assert sorted(pipeline.run()) == LIST


def test_state_is_written_in_proportion_to_the_jobs() -> None:
    """Every N/20 details, so some 20 times a run, and ever less often in a list."""
    api = FakeApi()
    for number in range(1_200):
        api.publish(f"{number:08}-a-uuid-has-36-characters-1234567")
    pipeline = first_run(api, page_size=100)

    others = ("jobs", "job_publications")
    kinds = [it["type"] for it in pipeline.output.messages if it.get("stream") not in others]
    assert kinds[3:] == [
        "SCHEMA",
        *(["RECORD"] * 60 + ["STATE"]) * 19,
        *["RECORD"] * 60,
        *["ACTIVATE_VERSION", "STATE", "STATE"],
    ]
    assert len(json.dumps(pipeline.state, separators=(",", ":"))) / 1_200 < 150


@pytest.mark.parametrize(
    ("state", "faults"),
    [
        ({"jobs": {"sync": {"format": 99}}}, ["ValueError: format 99 is not known"]),
        (5, ["AttributeError: 'int' object has no attribute 'get'"]),
        ({"jobs": {}}, []),
    ],
)
def test_a_state_that_says_nothing_is_set_aside_and_a_damaged_one_with_a_warning(
    api: FakeApi, changed: Pipeline, caplog: pytest.LogCaptureFixture, state: Any, faults: list[str]
) -> None:
    changed.state = {"bookmarks": state}

    changed.run()

    assert {*api.details} == {f"pub-{key}" for key in api.published}
    assert changed.activated == ["jobs"]
    changed.run()
    assert changed.output.order[0] == "STATE"  # so that what the SDK writes loses nothing
    warning = (
        "The saved state is damaged, or of another version of the tap ({}). All details are "
        "fetched again, and job_publications begins a new history. To keep the old one, stop this "
        "run and restore the state."
    )
    warnings = [it.message for it in caplog.records if it.levelname == "WARNING"]
    assert warnings == [warning.format(it) for it in faults]


def without(column: str) -> dict[str, Any]:
    """A catalog in which this column of the details is not selected."""
    catalog = catalog_of(CONFIG)
    for entry in catalog["streams"][2]["metadata"]:
        entry["metadata"]["selected"] = entry["breadcrumb"] != ["properties", column]
    return catalog


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"catalog": without("jobTitle")}, {}),
        ({}, {"column_naming": "snake_case"}),
        ({}, {"stream_maps": {"job_details": {"x": "1"}}}),
        (
            {"stream_maps": {"job_details": {"x": "jobTitle"}}},
            {"stream_maps": {"job_details": {"x": "config['a']"}}, "stream_map_config": {"a": "b"}},
        ),
        (
            {"flattening_enabled": True, "flattening_max_depth": 1},
            {"flattening_enabled": True, "flattening_max_depth": 1, "flattening_separator": "-"},
        ),
    ],
    ids=["selection", "column_naming", "stream_maps", "stream_map_config", "flattening_separator"],
)
@pytest.mark.parametrize("refresh", ["changed", "notified"])
def test_other_columns_are_in_every_row_after_one_run(
    notified: Pipeline,
    caplog: pytest.LogCaptureFixture,
    before: dict[str, Any],
    after: dict[str, Any],
    refresh: str,
) -> None:
    """Also if no run in between writes details; a column that is selected later is one of them."""
    notified.run(detail_refresh=refresh, **before)
    if refresh == "changed":
        notified.run(detail_refresh=refresh, catalog=select_only(CONFIG, "jobs"))

    for records in (10, 0):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            notified.run(detail_refresh=refresh, **after)
        assert len(notified.output.records("job_details")) == records
        assert ("Fetching 10 of 10 details (10 changed)" in caplog.text) is (records > 0)
        is_noticed = records > 0 and refresh == "notified"
        assert ("The selected columns changed" in caplog.text) is is_noticed


def test_a_run_without_state_says_how_it_is_passed(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    """Meltano passes none if the plugin does not declare the capability."""
    pipeline.state = {}

    with caplog.at_level(logging.INFO):
        pipeline.run()
        pipeline.run()

    assert (
        caplog.text.count("First run (no state). If there was an earlier one, pass its state, or")
        == 1
    )
