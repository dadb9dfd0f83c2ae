"""A project of format 7 goes on: its dates stay, and no detail is fetched without a reason.

The state in `state_7.json` is one that commit f1213e7 wrote: its listings are those of 1, 2 and 3
days, and the last run found an incomplete list.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeApi
from fake_tap import LIST, Pipeline
from model_target import plain

from tap_public_jobs.api.models import HeldSlots, job_ref
from tap_public_jobs.errors import DamagedStateError
from tap_public_jobs.streams import PublicJobsStream
from tap_public_jobs.sync.state import (
    DAY,
    ClosedJob,
    Cycle,
    KnownJob,
    LastRead,
    Publication,
)
from tap_public_jobs.sync.state_json import dump, load

# Of the three complete listings, and of the last run, which found an incomplete one.
FIRST = 1_800_000_060
SECOND, THIRD = FIRST + DAY, FIRST + 2 * DAY
LAST = THIRD + 60

UNTOUCHED = {"0": "Job 0", "1": "Köchin 東京 😀", "2": "Edited", "7": "Job 7", "late": "Job late"}


@pytest.fixture
def singer_state() -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name("state_7.json").read_text("utf-8")))


def value_of(singer_state: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = singer_state["bookmarks"]["jobs"]["sync"]
    return value


def test_what_a_state_of_format_7_says_is_read(singer_state: dict[str, Any]) -> None:
    value_of(singer_state)["heldSlots"] = [LAST, 60]

    state = load(singer_state)

    assert (state.run_time, state.listed_at, state.short_since) == (LAST, THIRD, LAST)
    seen = KnownJob("pub-0", None, FIRST, THIRD, "NVrHrdwZ", "", FIRST)
    assert state.jobs["0"] == seen
    assert state.jobs["late"][1:4] == (FIRST, SECOND, THIRD)
    missing = state.jobs["4"]
    assert (missing.last_seen, missing.missing_since, missing.owed) == (SECOND, THIRD, "no")
    pending = seen._replace(public_id="pub-3", row_hash="", owed="again", failing_since=THIRD)
    assert state.jobs["3"] == pending
    lagging = seen._replace(public_id="pub-5", row_hash="", owed="again", fetched_at=LAST)
    assert state.jobs["5"] == lagging
    publication = Publication("pub-9", None, FIRST, SECOND, THIRD)
    assert state.closed == {"9": ClosedJob(publication, closed_at=THIRD, is_written=True)}
    assert state.awaited == {"pub-unknown": THIRD}
    assert state.key_hash == "sRByDdaZ"
    assert state.forms.keys() == {"jobs", "job_publications", "job_details"}
    assert state.cycle == Cycle(THIRD, "changed", FIRST)
    assert state.last_read == LastRead("a-log", 2)
    assert state.held_slots == HeldSlots(LAST, 60)
    dump(state, written := dict[str, Any]())
    assert load(written) == state


def test_a_job_that_no_complete_list_has_shown_has_no_dates_yet(
    singer_state: dict[str, Any],
) -> None:
    """Its record was never written. In a state without a complete list, no job has dates."""
    assert load(singer_state).jobs["newest"][1:4] == (THIRD, None, None)
    value_of(singer_state)["listedAt"] = None
    assert {job.publication for job in load(singer_state).jobs.values()} == {None}


@pytest.mark.parametrize(("job_id", "title"), UNTOUCHED.items())
def test_a_row_has_the_same_hash_as_before(
    singer_state: dict[str, Any], job_id: str, title: str
) -> None:
    state = load(singer_state)
    ref = job_ref({"id": job_id, "publicId": f"pub-{job_id}", "jobTitle": title})

    assert ref
    assert state.row_hash(ref) == state.jobs[job_id].row_hash


def test_the_next_run_goes_on(
    api: FakeApi, singer_state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = dict(value_of(singer_state)["forms"])
    # A new column would change them, and all details would be fetched.
    monkeypatch.setattr(PublicJobsStream, "form", property(lambda it: forms[it.name]))
    api.unpublish("8", "9")
    for job_id, title in (UNTOUCHED | {"5": "Edited"}).items():
        api.publish(job_id, jobTitle=title)
    api.publish("newest")
    pipeline = Pipeline(api, detail_refresh="changed", max_concurrent_requests=1)
    pipeline.state, pipeline.now = singer_state, LAST

    requests = pipeline.run()

    assert pipeline.error == ""
    assert requests == [*LIST, "detail pub-3", "detail pub-5", "detail pub-newest"]
    periods = {row["id"]: row for row in map(plain, pipeline.output.records("job_publications"))}
    assert periods.keys() == api.published.keys()
    bounds = {key: (row["openedafter"], row["firstseenat"]) for key, row in periods.items()}
    earlier = (None, "2027-01-15T08:01:00.000Z")
    assert {bounds.pop(f"{number}") for number in range(8)} == {earlier}
    assert bounds == {
        "late": (earlier[1], "2027-01-16T08:01:00.000Z"),
        "newest": ("2027-01-17T08:01:00.000Z", "2027-01-17T08:03:00.000Z"),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"jobs": [["x", "p", None, 1, 1, "h", 1, 0]]},
        {"jobs": [["x", "p", None, "now", 1, "h", 1, 0, 0]]},
        {"jobs": [["x", "p", None, 1, 1, ["h"], 1, 0, 0]]},
        {"closed": [["x", "p", None, 1, 1, "h", 1, 0, 0, None, True]]},
        {"log": ["a-log"]},
        {"log": 7},
        {"listedAt": "now"},
    ],
    ids=json.dumps,
)
def test_a_damaged_one_is_refused(singer_state: dict[str, Any], change: dict[str, Any]) -> None:
    value_of(singer_state).update(change)

    with pytest.raises(DamagedStateError):
        load(singer_state)
