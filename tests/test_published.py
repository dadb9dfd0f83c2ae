"""The column that tells which jobs are published, on targets that remove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from harness import captured, catalog_of, sync
from public_jobs_sandbox.postings import make_jobs

from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.listing import Listing
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from harness import Output
    from public_jobs_sandbox.state import Sandbox

Config = dict[str, Any]
STREAMS = ("jobs", "job_details")
REFRESHES = ("all", "changed")


def marks(output: Output, stream: str) -> list[dict[str, Any]]:
    """What is written of jobs that are no longer published."""
    records = [message["record"] for message in output.of("RECORD", stream)]
    return [record for record in records if record.get("isPublished") is False]


def unpublish(sandbox: Sandbox, *numbers: int) -> list[str]:
    """Unpublish jobs by their place in the list; returns their ids."""
    jobs = [posting.job for posting in sandbox.organisation.published()]
    for number in numbers:
        sandbox.unpublish(jobs[number]["publicId"])
    return [jobs[number]["id"] for number in numbers]


def flags(ids: list[str]) -> list[dict[str, Any]]:
    return [{"id": job_id, "isPublished": False} for job_id in ids]


@pytest.mark.parametrize("refresh", REFRESHES)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_job_no_longer_listed_is_marked_once_and_last(
    sandbox: Sandbox, config: Config, stream: str, refresh: str
) -> None:
    config |= {"detail_refresh": refresh}
    first = sync(config)
    gone = unpublish(sandbox, 3, 200)

    second = sync(config, state=first.state)
    third = sync(config, state=second.state)

    assert marks(first, stream) == []
    assert marks(second, stream) == flags(gone)
    assert marks(third, stream) == []
    rows = second.of("RECORD", stream)
    assert [row["record"] for row in rows[-2:]] == flags(gone)


@pytest.mark.parametrize("stream", STREAMS)
def test_the_marks_do_not_survive_where_versions_are_activated(
    sandbox: Sandbox, config: Config, stream: str
) -> None:
    """They come with a schema of their two columns, and an older version than the one activated."""
    first = sync(config)
    gone = unpublish(sandbox, 0)

    messages = [m for m in sync(config, state=first.state).messages if m.get("stream") == stream]

    whole, *rows, activate, reduced, mark, again = messages
    assert [message["type"] for message in messages if message["type"] != "RECORD"] == [
        "SCHEMA",
        "ACTIVATE_VERSION",
        "SCHEMA",
        "ACTIVATE_VERSION",
    ]
    assert len(rows) == 249
    properties = whole["schema"]["properties"]
    assert reduced["schema"]["properties"] == {
        name: properties[name] for name in ("id", "isPublished")
    }
    assert reduced["key_properties"] == ["id"]
    assert mark["record"] == flags(gone)[0]
    assert {row["version"] for row in rows} == {activate["version"]} == {again["version"]}
    assert mark["version"] == activate["version"] - 1


def test_a_job_published_again_is_marked_by_its_row(sandbox: Sandbox, config: Config) -> None:
    config |= {"detail_refresh": "changed"}
    job = next(iter(sandbox.organisation.published())).job
    first = sync(config)
    sandbox.unpublish(job["publicId"])
    second = sync(config, state=first.state)
    sandbox.publish(job)

    third = sync(config, state=second.state)

    assert marks(second, "job_details") == flags([job["id"]])
    assert [row["isPublished"] for row in third.records("job_details")] == [True]
    assert [row["id"] for row in third.records("job_details")] == [job["id"]]
    assert not [mark for stream in STREAMS for mark in marks(third, stream)]


@pytest.mark.parametrize("refresh", REFRESHES)
def test_what_a_run_that_failed_owes_is_marked_by_the_next(
    sandbox: Sandbox, config: Config, refresh: str
) -> None:
    config |= {"detail_refresh": refresh}
    first = sync(config)
    gone = unpublish(sandbox, 7)
    victim = sandbox.organisation.published()[50].job["publicId"]
    sandbox.edit(victim, jobTitle="Chief of Everything")
    sandbox.fail_next("redirect", None, victim)
    with captured() as failed, pytest.raises(PublicJobsError, match="The sync is incomplete"):
        TapPublicJobs(config=config, state=first.state).sync_all()
    sandbox.recover()

    after = sync(config, state=failed.state)

    assert sorted([*ids(failed, "job_details"), *ids(after, "job_details")]) == gone
    assert ids(failed, "jobs") == gone


def ids(output: Output, stream: str) -> list[str]:
    return [mark["id"] for mark in marks(output, stream)]


def test_a_detail_that_answers_404_is_marked_if_it_had_a_row(
    sandbox: Sandbox, config: Config
) -> None:
    first = sync(config)
    known, new = sandbox.organisation.published()[9].job, make_jobs(1, seed=99)[0]
    sandbox.publish(new)
    for job in (known, new):
        sandbox.fail_next("http_404", None, job["publicId"])

    second = sync(config, state=first.state)

    assert ids(second, "job_details") == [known["id"]]
    assert ids(second, "jobs") == []


def test_names_and_selection_are_kept_to(sandbox: Sandbox, config: Config) -> None:
    config |= {"column_naming": "snake_case"}
    catalog = catalog_of(config)
    for entry in catalog["streams"][0]["metadata"]:
        if entry["breadcrumb"] == ["properties", "is_published"]:
            entry["metadata"]["selected"] = False
    first = sync(config, catalog=catalog)
    gone = unpublish(sandbox, 0)

    second = sync(config, catalog=catalog, state=first.state)

    records = [message["record"] for message in second.of("RECORD")]
    flagged = [record for record in records if record.get("is_published") is False]
    assert flagged == [{"id": gone[0], "is_published": False}]
    assert not any("is_published" in row for row in second.records("jobs"))


def test_stream_maps_apply_to_the_marks(sandbox: Sandbox, config: Config) -> None:
    maps = {"jobs": {"live": "isPublished", "isPublished": None, "id": "md5(id)"}}
    first = sync(config)
    unpublish(sandbox, 0)

    second = sync(config | {"stream_maps": maps}, state=first.state)

    assert marks(second, "jobs") == []  # the flag has another name, so nothing can be told
    assert marks(second, "job_details") != []


@pytest.mark.parametrize("expression", ["jobTitle + '!'", "md5(jobTitle)", "maxSalary * 2"])
def test_maps_that_need_other_columns_find_a_value(
    sandbox: Sandbox, config: Config, expression: str
) -> None:
    config |= {"stream_maps": {"jobs": {"derived": expression}}}
    first = sync(config)
    gone = unpublish(sandbox, 0)

    second = sync(config, state=first.state)

    assert len(second.records("jobs")) == 249
    assert marks(second, "jobs") == flags(gone)


def test_a_map_that_fails_on_any_value_costs_the_marks_alone(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    config |= {"stream_maps": {"jobs": {"derived": "int(maxSalary) / int(minSalary)"}}}
    first = sync(config)
    unpublish(sandbox, 0)

    second = sync(config, state=first.state)

    assert len(second.records("jobs")) == 249
    assert marks(second, "jobs") == []
    assert "Rows of jobs that are no longer published are not marked" in caplog.text


def test_without_activation_only_the_marks_tell(sandbox: Sandbox, config: Config) -> None:
    config |= {"emit_activate_version_messages": False}
    first = sync(config)
    gone = unpublish(sandbox, 4)

    second = sync(config, state=first.state)

    assert second.of("ACTIVATE_VERSION") == []
    assert [marks(second, stream) for stream in STREAMS] == [flags(gone)] * 2
    assert not any("version" in message for message in second.of("RECORD"))


def test_the_connection_test_marks_nothing(sandbox: Sandbox, config: Config) -> None:
    first = sync(config)
    unpublish(sandbox, 4)
    tap = TapPublicJobs(config=config, state=first.state)

    with captured() as output:
        tap.run_connection_test()

    assert [marks(output, stream) for stream in STREAMS] == [[], []]


def test_an_inconsistent_list_marks_nothing(
    sandbox: Sandbox, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may be on the page that was not seen."""
    first = sync(config)
    unpublish(sandbox, 4)
    never = property(lambda _: False, lambda _, value: value)
    monkeypatch.setattr(Listing, "consistent", never, raising=False)

    output = sync(config, state=first.state)

    assert [marks(output, stream) for stream in STREAMS] == [[], []]
    assert len(output.records("jobs")) == 249


def test_where_all_details_answer_404_nothing_is_marked(sandbox: Sandbox, config: Config) -> None:
    first = sync(config)
    sandbox.fail_next("http_404", None, lambda request: not request.query)

    with captured() as output, pytest.raises(PublicJobsError, match="though their jobs are listed"):
        TapPublicJobs(config=config, state=first.state).sync_all()

    assert marks(output, "job_details") == []


def test_a_job_that_is_listed_without_its_key_is_not_marked(
    sandbox: Sandbox, config: Config
) -> None:
    first = sync(config)
    job = sandbox.organisation.published()[3].job
    sandbox.edit(job["publicId"], id="")

    with captured() as output, pytest.raises(PublicJobsError, match="without a usable id"):
        TapPublicJobs(config=config, state=first.state).sync_all()

    assert [marks(output, stream) for stream in STREAMS] == [[], []]


def test_a_table_with_another_key_is_not_marked(
    sandbox: Sandbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    config |= {"stream_maps": {"jobs": {"__key_properties__": ["publicId"]}}}
    first = sync(config)
    unpublish(sandbox, 3)

    second = sync(config, state=first.state)

    assert marks(second, "jobs") == []
    assert "not marked in jobs: its key is not id" in caplog.text


@pytest.mark.parametrize(
    "change", [{"column_naming": "snake_case"}, {"stream_maps": {"job_details": {"x": "1"}}}]
)
def test_other_columns_are_in_every_row_after_one_run(config: Config, change: Config) -> None:
    config |= {"detail_refresh": "changed"}
    first = sync(config)

    second = sync(config | change, state=first.state)
    third = sync(config | change, state=second.state)

    assert len(second.records("job_details")) == 250
    assert second.of("ACTIVATE_VERSION", "job_details")
    assert third.records("job_details") == []
