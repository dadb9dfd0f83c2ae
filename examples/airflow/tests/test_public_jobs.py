"""The DAG public_jobs, run by Airflow's own services."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil
import pytest
from installation import (
    LOADED,
    ORGANISATIONS,
    REVOKED,
    STOPPED,
    WEBHOOK_SECRET,
    Installation,
)

if TYPE_CHECKING:
    from public_jobs_sandbox.state import SeenRequest

pytest_plugins = ["airflow_fixtures"]

IN_FLIGHT = 16  # the default of max_concurrent_requests


@dataclass
class Seen:
    """What the first run left, and what was seen while it ran."""

    state: str = ""
    tasks: dict[str, str] = field(default_factory=dict)
    alerts: list[str] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    command_lines: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    file_modes: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="session")
def night(airflow: Installation) -> Seen:
    """A run of all organisations: one task is stopped while the list of organisations changes."""
    seen = Seen()

    def disturb(_: SeenRequest) -> bool:
        asked = len(airflow.details(airflow.sandbox.requests, STOPPED))
        if asked >= 100 and not seen.command_lines:
            look(airflow, seen)
            airflow.list_organisations(ORGANISATIONS[::-1])
            script = airflow.load_process(STOPPED)
            (tap,) = [it for it in script.children(recursive=True) if is_tap(it)]
            task = script.parent()
            assert task
            task.terminate()  # as Airflow does when a user stops it or a worker is shut down
            # The API answers nothing until then, else the tap could be done before it is stopped.
            tap.wait(timeout=60)
        return False  # it is no fault of the API's

    airflow.sandbox.fail_next("http_500", times=None, path=disturb)
    airflow.trigger("night")
    seen.state = airflow.finish("night")
    seen.tasks = airflow.tasks("night")
    seen.requests = list(airflow.sandbox.requests)
    # The DAG processor reports the run some seconds after its end.
    airflow.wait(lambda: [text for text in airflow.alerts if "run night" in text])
    seen.alerts = sorted(airflow.alerts)
    return seen


def look(airflow: Installation, seen: Seen) -> None:
    """Look at the processes and files of a run, as another user of the computer may."""
    for process in psutil.process_iter():
        try:
            seen.command_lines.append(" ".join(process.cmdline()))
        except psutil.Error:  # it has ended
            continue
    seen.variables = airflow.load_process(STOPPED).environ()
    folder = airflow.project / ".meltano" / "run" / "elt" / f"public_jobs_{STOPPED}"
    seen.file_modes = {it.name: it.stat().st_mode for it in folder.rglob("*") if it.is_file()}


def is_tap(process: psutil.Process) -> bool:
    return "/tap-public-jobs --config " in " ".join(process.cmdline())


@pytest.mark.parametrize("organisation", LOADED)
def test_every_row_is_in_the_schema_of_its_organisation(
    airflow: Installation, night: Seen, organisation: str
) -> None:
    """Each in its own, though the list of organisations was turned round during the run."""
    published = airflow.published(organisation)
    for table in ("jobs", "job_details"):
        assert airflow.rows(f"{organisation}.{table}", "id, public_id, job_title") == [
            {"id": job["id"], "public_id": job["publicId"], "job_title": job["jobTitle"]}
            for job in published
        ], night.tasks


def test_one_that_fails_holds_back_no_other(airflow: Installation, night: Seen) -> None:
    """The final tables have all that was loaded, and the run has failed all the same."""
    assert night.state == "failed"
    assert night.tasks == {
        "choose": "success",
        **dict.fromkeys(LOADED, "success"),
        REVOKED: "failed",
        "build": "success",
        "loaded": "upstream_failed",
    }
    found = airflow.rows("analytics.open_jobs", "organisation, job_title")
    assert sorted((row["organisation"], row["job_title"]) for row in found) == sorted(
        (name, job["jobTitle"]) for name in LOADED for job in airflow.published(name)
    )


def test_each_failed_try_raises_an_alert(night: Seen) -> None:
    texts = [text.partition(" http")[0] for text in night.alerts]
    assert texts == [
        f"Public jobs: {STOPPED} failed in try 1.",
        "Public jobs: run night failed (task_failure).",
        f"Public jobs: {REVOKED} failed in try 1.",
        f"Public jobs: {REVOKED} failed in try 2.",
    ]


def test_a_stopped_task_resumes_when_it_is_tried_again(airflow: Installation, night: Seen) -> None:
    """Few details that were answered are asked for again, and none of the other organisations."""
    for name in LOADED:
        asked = airflow.details(night.requests, name)
        paths = [f"/api/public/v1/jobs/{job['publicId']}" for job in airflow.published(name)]
        assert sorted(set(asked)) == sorted(paths)
        # Those in flight when it was stopped may have been answered to nobody.
        assert len(asked) <= len(paths) + (IN_FLIGHT if name == STOPPED else 0)


def test_loads_and_builds_are_assets_for_other_dags(airflow: Installation, night: Seen) -> None:
    query = """
        select asset.name from asset_event join asset on asset.id = asset_event.asset_id
        where source_run_id = 'night'
    """
    names = ["public_jobs_analytics", *(f"public_jobs_{name}" for name in LOADED)]
    assert sorted(name for (name,) in airflow.ask(query)) == names, night.tasks


def test_secrets_are_nowhere_but_in_the_environment_of_their_own_load(
    airflow: Installation, night: Seen
) -> None:
    """Not in logs, not in Airflow's database, in no command line, in no file that others read."""
    keys = {name: airflow.sandbox.organisations[name].key for name in ORGANISATIONS}
    files = [file for file in airflow.home.rglob("*") if file.is_file()]
    text = "\n".join(file.read_bytes().decode(errors="replace") for file in files)
    text += "\n".join(night.command_lines)

    assert [key for key in [*keys.values(), WEBHOOK_SECRET] if key in text] == []
    assert [name for name, key in keys.items() if key in night.variables.values()] == [STOPPED]
    assert not [variable for variable in night.variables if variable.startswith("AIRFLOW_CONN")]
    assert [name for name in night.file_modes if name.endswith(".config.json")] != []
    assert {name: oct(mode) for name, mode in night.file_modes.items() if mode & 0o077} == {}


def test_only_organisations_with_news_are_loaded(airflow: Installation, night: Seen) -> None:
    """In a later run of the day, after a run by name has ended."""
    name = "halden_robotics"
    airflow.receive(name, "of-nobody")  # the first time, a state knows no change log
    airflow.trigger("by_name", organisations=LOADED)
    airflow.trigger("without_news")
    assert airflow.finish("by_name") == "success", night.tasks
    assert airflow.finish("without_news") == "success"
    assert airflow.tasks("without_news") == {
        "choose": "success",
        "load": "skipped",
        "build": "skipped",
        "loaded": "success",
    }
    (first, second) = airflow.ask(
        "select start_date, end_date from dag_run order by id desc limit 2"
    )[::-1]
    assert second[0] >= first[1], "the second run began after the first had ended"

    job = airflow.published(name)[7]
    airflow.sandbox.organisations[name].edit(job["publicId"], jobTitle="Chief of Everything")
    airflow.receive(name, str(job["publicId"]))
    before = len(airflow.sandbox.requests)
    airflow.trigger("news")
    assert airflow.finish("news") == "success"
    assert airflow.tasks("news") == {
        "choose": "success",
        name: "success",
        "build": "success",
        "loaded": "success",
    }
    requests = airflow.sandbox.requests[before:]
    assert {it.organisation for it in requests} == {name}
    assert airflow.details(requests, name) == [f"/api/public/v1/jobs/{job['publicId']}"]
    titles = airflow.rows("analytics.open_jobs", "id, job_title")
    assert {"id": job["id"], "job_title": "Chief of Everything"} in titles


def test_a_name_that_is_not_listed_loads_nothing(airflow: Installation, night: Seen) -> None:
    before = len(airflow.sandbox.requests)
    airflow.trigger("unlisted", organisations=["lumen_book"])

    assert airflow.finish("unlisted") == "failed"
    assert "names ['lumen_book']: not in" in airflow.logs("**/run_id=unlisted/**/*.log")
    assert airflow.sandbox.requests[before:] == [], night.tasks


def test_a_worker_that_dies_raises_an_alert(airflow: Installation, night: Seen) -> None:
    """From the DAG processor. It names the organisation, and the task is tried again."""
    name = "lumen_books"
    died: list[psutil.Process] = []

    def kill(request: SeenRequest) -> bool:
        if request.organisation == name and not died:
            task = airflow.load_process(name).parent()
            assert task
            worker = task.parent()
            assert worker
            died.extend([worker, task])
            for process in died:
                process.kill()
        return False

    airflow.sandbox.fail_next("http_500", times=None, path=kill)
    airflow.trigger("dead_worker", organisations=[name])
    alert = f"Public jobs: {name} failed in try 1."
    airflow.wait(lambda: [text for text in airflow.alerts if text.startswith(alert)])
    assert airflow.finish("dead_worker") == "success", night.tasks
