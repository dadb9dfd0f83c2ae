"""Runs that fetch what webhooks named, and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness import captured, catalog_of, paths, sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.errors import NotTheApiError, PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Output

Config = dict[str, Any]


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append([])
    return log


@pytest.fixture
def notified(config: Config, tmp_path: Path, log: ChangeLog) -> Config:
    """Settings under which `job_details` alone is synced, from the log."""
    assert log
    return config | {
        "detail_refresh": "notified",
        "changes_url": f"sqlite:///{tmp_path / 'changes.db'}",
    }


@pytest.fixture
def catalog(config: Config) -> dict[str, Any]:
    """Without `jobs`, so that the list is not needed."""
    catalog = catalog_of(config)
    for entry in catalog["streams"][0]["metadata"]:
        if entry["breadcrumb"] == []:
            entry["metadata"]["selected"] = False
    return catalog


def asked(sandbox: Sandbox) -> list[str]:
    """The paths asked for since the last look."""
    found = paths(sandbox.requests)
    sandbox.requests.clear()
    return found


def job(sandbox: Sandbox, number: int) -> dict[str, Any]:
    return sandbox.organisation.published()[number].job


def titles(output: Output) -> dict[str, str]:
    return {row["publicId"]: row["jobTitle"] for row in output.records("job_details")}


def place(output: Output) -> dict[str, Any]:
    changes: dict[str, Any] = output.state["bookmarks"]["job_details"]["changes"]
    return changes


def test_an_edit_costs_one_request(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    asked(sandbox)
    public_id = job(sandbox, 3)["publicId"]
    sandbox.edit(public_id, jobTitle="Chief of Everything")
    log.append([public_id] * 5)

    second = sync(notified, catalog=catalog, state=first.state)

    assert asked(sandbox) == [f"/jobs/{public_id}"]
    assert titles(second) == {public_id: "Chief of Everything"}
    assert second.records("job_details")[0]["isPublished"] is True
    assert second.of("ACTIVATE_VERSION") == []
    assert place(second)["pending"] == []


def test_no_change_costs_no_request(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any]
) -> None:
    first = sync(notified, catalog=catalog)
    asked(sandbox)

    second = sync(notified, catalog=catalog, state=first.state)

    assert asked(sandbox) == []
    assert second.of("RECORD") == []
    before, after = (out.state["bookmarks"]["job_details"] for out in (first, second))
    assert {**after, "version": 0} == {**before, "version": 0}


def test_the_first_run_is_a_backfill(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any]
) -> None:
    output = sync(notified, catalog=catalog)

    names = [posting.job["publicId"] for posting in sandbox.organisation.published()]
    assert sorted(titles(output)) == sorted(names)
    assert len(asked(sandbox)) == 3 + 250


def test_a_backfill_that_is_not_finished_is_gone_on_with(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any]
) -> None:
    victim = job(sandbox, 9)["publicId"]
    sandbox.fail_next("redirect", None, victim)
    with captured() as failed, pytest.raises(PublicJobsError, match="The sync is incomplete"):
        TapPublicJobs(config=notified, catalog=catalog).sync_all()
    sandbox.recover()
    asked(sandbox)

    second = sync(notified, catalog=catalog, state=failed.state)

    assert asked(sandbox)[3:] == [f"/jobs/{victim}"]
    assert list(titles(second)) == [victim]


def test_a_job_published_since_is_fetched_without_the_list(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    """And is known from then on: to a run of `changed` it is neither new nor changed."""
    first = sync(notified, catalog=catalog)
    new = make_jobs(1, seed=99)[0]
    sandbox.publish(new)
    log.append([new["publicId"]])
    asked(sandbox)

    second = sync(notified, catalog=catalog, state=first.state)
    third = sync(notified | {"detail_refresh": "changed"}, catalog=catalog, state=second.state)

    assert titles(second) == {new["publicId"]: new["jobTitle"]}
    assert second.records("job_details")[0]["id"] == new["id"]
    assert asked(sandbox) == [
        f"/jobs/{new['publicId']}",
        "/jobs?page=1",
        "/jobs?page=2",
        "/jobs?page=3",
    ]
    assert third.of("RECORD") == []


def test_an_unpublished_job_is_marked_and_keeps_its_content(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    gone = job(sandbox, 3)
    sandbox.unpublish(gone["publicId"])
    log.append([gone["publicId"]])
    asked(sandbox)

    second = sync(notified, catalog=catalog, state=first.state)

    # One to learn that it is gone, and one to be sure that it is the API that says so.
    assert asked(sandbox) == [f"/jobs/{gone['publicId']}", "/jobs?page=1"]
    assert [message["record"] for message in second.of("RECORD")] == [
        {"id": gone["id"], "isPublished": False}
    ]
    assert place(second)["pending"] == []


def test_where_every_path_answers_404_nothing_is_marked(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    log.append([job(sandbox, 3)["publicId"]])
    elsewhere = notified | {"base_url": notified["base_url"] + "/elsewhere"}

    with captured() as output, pytest.raises(NotTheApiError, match="base_url"):
        TapPublicJobs(config=elsewhere, catalog=catalog, state=first.state).sync_all()

    assert output.of("RECORD") == []
    assert place(output)["pending"] == [job(sandbox, 3)["publicId"]]


def test_a_name_that_is_no_job_s_costs_one_request_and_no_run(
    sandbox: Sandbox,
    notified: Config,
    catalog: dict[str, Any],
    log: ChangeLog,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = sync(notified, catalog=catalog)
    known = job(sandbox, 3)["publicId"]
    sandbox.fail_next("http_400", None, "halden-robotics")
    log.append([known, "halden-robotics", "../jobs", "%00"])

    second = sync(notified, catalog=catalog, state=first.state)

    assert titles(second) == {known: job(sandbox, 3)["jobTitle"]}
    assert place(second)["pending"] == []
    assert "A webhook named 'halden-robotics', which the API refuses" in caplog.text


def test_a_detail_that_fails_stays_in_the_backlog(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    good, bad = job(sandbox, 3)["publicId"], job(sandbox, 4)["publicId"]
    sandbox.fail_next("redirect", None, bad)
    log.append([bad, good])

    with captured() as output, pytest.raises(PublicJobsError, match=bad):
        TapPublicJobs(config=notified, catalog=catalog, state=first.state).sync_all()
    sandbox.recover()
    asked(sandbox)
    third = sync(notified, catalog=catalog, state=output.state)

    assert list(titles(output)) == [good]
    assert asked(sandbox) == [f"/jobs/{bad}"]
    assert list(titles(third)) == [bad]


def test_what_no_target_acknowledged_is_told_again(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    log.append([job(sandbox, 3)["publicId"]])

    lost = sync(notified, catalog=catalog, state=first.state)
    again = sync(notified, catalog=catalog, state=first.state)

    assert titles(lost) == titles(again) != {}


def test_another_log_is_no_reason_to_believe_that_nothing_changed(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], tmp_path: Path
) -> None:
    first = sync(notified, catalog=catalog)
    edited, told = job(sandbox, 3)["publicId"], job(sandbox, 4)["publicId"]
    sandbox.edit(edited, jobTitle="Chief of Everything")
    url = f"sqlite:///{tmp_path / 'new.db'}"
    ChangeLog(url).append([told])
    asked(sandbox)

    second = sync(notified | {"changes_url": url}, catalog=catalog, state=first.state)

    assert asked(sandbox)[:3] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]
    assert set(titles(second)) == {edited, told}


def test_with_jobs_selected_the_list_is_read_and_no_other_detail(
    sandbox: Sandbox, notified: Config, log: ChangeLog
) -> None:
    first = sync(notified)
    told, gone, edited = (job(sandbox, number) for number in (3, 4, 5))
    sandbox.edit(edited["publicId"], jobTitle="Chief of Everything")
    sandbox.unpublish(gone["publicId"])
    log.append([told["publicId"], gone["publicId"]])
    asked(sandbox)

    second = sync(notified, state=first.state)

    assert asked(sandbox) == [
        "/jobs?page=1",
        "/jobs?page=2",
        "/jobs?page=3",
        f"/jobs/{told['publicId']}",
    ]
    assert list(titles(second)) == [told["publicId"]]
    marks = [row["record"] for row in second.of("RECORD") if not row["record"]["isPublished"]]
    assert marks == [{"id": gone["id"], "isPublished": False}] * 2
    assert place(second)["pending"] == []


@pytest.mark.parametrize("refresh", ["changed", "all"])
def test_other_modes_take_what_was_notified_in(
    sandbox: Sandbox, notified: Config, log: ChangeLog, refresh: str
) -> None:
    """A change that shows in the detail alone is found, and not fetched twice."""
    config = notified | {"detail_refresh": refresh}
    first = sync(config)
    public_id = job(sandbox, 3)["publicId"]
    sandbox.edit(public_id, roleOverview="Everything.")
    log.append([public_id, "unknown"])
    asked(sandbox)

    second = sync(config, state=first.state)
    third = sync(notified, state=second.state)

    rows = {row["publicId"]: row["roleOverview"] for row in second.records("job_details")}
    assert rows[public_id] == "Everything."
    assert len(rows) == (1 if refresh == "changed" else 250)
    assert third.records("job_details") == []
    assert place(second) | {"log": ""} == {"log": "", "position": 2, "pending": []}


def test_a_job_under_a_new_public_id_is_not_taken_for_unpublished(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    old = job(sandbox, 3)
    new = old | {"publicId": "renamed", "jobTitle": "Renamed"}
    sandbox.unpublish(old["publicId"])
    sandbox.publish(new)
    log.append([old["publicId"], "renamed"])

    second = sync(notified, catalog=catalog, state=first.state)

    assert [row["record"]["isPublished"] for row in second.of("RECORD")] == [True]
    assert second.records("job_details")[0]["id"] == old["id"]


def test_a_log_that_is_not_there_ends_the_run_before_any_request(
    sandbox: Sandbox, notified: Config, tmp_path: Path
) -> None:
    config = notified | {"changes_url": f"sqlite:///{tmp_path / 'typo.db'}"}

    with captured() as output, pytest.raises(PublicJobsError, match="changes_url"):
        TapPublicJobs(config=config).sync_all()

    assert asked(sandbox) == []
    assert output.of("RECORD") == []
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize("damage", [None, [], {"log": 1}, {"log": "x", "position": "1"}, "text"])
def test_a_damaged_place_is_no_place(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], damage: Any
) -> None:
    state = json.loads(json.dumps(sync(notified, catalog=catalog).state))
    state["bookmarks"]["job_details"]["changes"] = damage
    asked(sandbox)

    sync(notified, catalog=catalog, state=state)

    assert asked(sandbox) == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]


def test_notified_needs_a_log(config: Config) -> None:
    with pytest.raises(Exception, match="detail_refresh: notified needs changes_url"):
        TapPublicJobs(config=config | {"detail_refresh": "notified"})


def test_rows_removed_before_they_were_read_may_have_named_anything(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    edited = job(sandbox, 3)["publicId"]
    sandbox.edit(edited, jobTitle="Chief of Everything")
    log.append([edited])
    log.forget(1)
    asked(sandbox)

    second = sync(notified, catalog=catalog, state=first.state)

    assert asked(sandbox)[:3] == ["/jobs?page=1", "/jobs?page=2", "/jobs?page=3"]
    assert titles(second) == {edited: "Chief of Everything"}


def test_a_damaged_ledger_is_made_anew(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any]
) -> None:
    state = json.loads(json.dumps(sync(notified, catalog=catalog).state))
    state["bookmarks"]["job_details"]["ledger"]["ids"] = 5
    asked(sandbox)

    sync(notified, catalog=catalog, state=state)

    assert len(asked(sandbox)) == 3 + 250


def test_a_new_job_whose_detail_redirects_stays_in_the_backlog(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    (new,) = make_jobs(1, seed=99)
    sandbox.publish(new)
    sandbox.fail_next("redirect", 1, new["publicId"])
    log.append([new["publicId"]])

    with captured() as output, pytest.raises(PublicJobsError, match=new["publicId"]):
        TapPublicJobs(config=notified, catalog=catalog, state=first.state).sync_all()
    third = sync(notified, catalog=catalog, state=output.state)

    assert list(titles(third)) == [new["publicId"]]


def test_a_detail_that_fails_does_not_keep_others_from_being_fetched(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    """Five failures end a run; the next one begins with the others."""
    state = sync(notified, catalog=catalog).state
    names = [job(sandbox, number)["publicId"] for number in range(7)]
    log.append(names)
    for name in names[:5]:
        sandbox.fail_next("redirect", None, name)
    fetched = []
    for _ in range(2):
        with captured() as output, pytest.raises(PublicJobsError):
            TapPublicJobs(
                config=notified | {"max_concurrent_requests": 1}, catalog=catalog, state=state
            ).sync_all()
        fetched += list(titles(output))
        state = output.state

    assert fetched == names[5:]
    assert sorted(place(output)["pending"]) == sorted(names[:5])


@pytest.mark.parametrize("old_first", [True, False])
def test_a_rename_is_told_in_any_order(
    sandbox: Sandbox,
    notified: Config,
    catalog: dict[str, Any],
    log: ChangeLog,
    *,
    old_first: bool,
) -> None:
    first = sync(notified, catalog=catalog)
    old = job(sandbox, 3)
    sandbox.unpublish(old["publicId"])
    sandbox.publish(old | {"publicId": "renamed"})
    names = [old["publicId"], "renamed"]
    log.append(names if old_first else names[::-1])

    second = sync(notified, catalog=catalog, state=first.state)

    assert [row["record"]["isPublished"] for row in second.of("RECORD")] == [True]


def test_another_job_under_a_public_id_takes_the_place_of_the_first(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    old = job(sandbox, 3)
    sandbox.organisation.postings.pop(old["publicId"])
    sandbox.publish(old | {"id": "another"})
    log.append([old["publicId"]])

    second = sync(notified, catalog=catalog, state=first.state)

    rows = [(row["record"]["id"], row["record"]["isPublished"]) for row in second.of("RECORD")]
    assert rows == [("another", True), (old["id"], False)]


def test_the_key_of_another_organisation_marks_nothing(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    log.append([job(sandbox, 3)["publicId"]])
    other = Sandbox(Options(limited=False))
    for it in make_jobs(3, seed=77):
        other.publish(it)

    with serving(other) as url, captured() as output:
        config = notified | {"api_key": other.key, "base_url": url}
        with pytest.raises(PublicJobsError, match="api_key belongs to another organisation"):
            TapPublicJobs(config=config, catalog=catalog, state=first.state).sync_all()

    assert output.of("RECORD") == []
    assert place(output)["pending"] == [job(sandbox, 3)["publicId"]]


def test_many_new_jobs_are_announced_together(
    sandbox: Sandbox, notified: Config, catalog: dict[str, Any], log: ChangeLog
) -> None:
    first = sync(notified, catalog=catalog)
    new = make_jobs(100, seed=99)
    for it in new:
        sandbox.publish(it)
    log.append([it["publicId"] for it in new])

    second = sync(notified, catalog=catalog, state=first.state)

    assert titles(second) == {it["publicId"]: it["jobTitle"] for it in new}
    assert len(second.of("STATE")) <= 20 + 3
    announced: set[str] = set()
    for message in second.messages:
        if message["type"] == "STATE":
            announced |= set(message["value"]["bookmarks"]["job_details"]["ledger"]["ids"])
        elif message["type"] == "RECORD":
            assert message["record"]["id"] in announced
