"""One night of the DAG public_jobs: `uv run --group airflow pytest examples/airflow`."""

from __future__ import annotations

import pytest
from night import (
    JOBS,
    KILLED,
    LOADED,
    ORGANISATIONS,
    REVOKED,
    STOPPED,
    UNTOUCHED,
    WEBHOOK_SECRET,
    Night,
    ask_airflow,
)
from warehouse import detail_paths, expected_detail, expected_job, only, open_jobs, published, rows

pytest_plugins = ["airflow_fixtures"]

IN_FLIGHT = 16  # the default of max_concurrent_requests


@pytest.mark.parametrize("organisation", LOADED)
def test_every_row_is_in_the_schema_of_its_organisation(night: Night, organisation: str) -> None:
    """Each in its own, whatever became of the list of organisations during the run."""
    jobs = [expected_job(job) for job in published(night, organisation)]
    details = [expected_detail(job) for job in published(night, organisation)]

    assert only(jobs[0], rows(night, organisation, "jobs")) == jobs, night.output
    assert only(details[0], rows(night, organisation, "job_details")) == details


@pytest.mark.parametrize("organisation", LOADED)
def test_publications_say_which_jobs_are_published_now(night: Night, organisation: str) -> None:
    """By the rule of queries and docs; no other table says it."""
    publications = rows(night, organisation, "job_publications")
    last = max(row["last_seen_at"] for row in publications)
    now = [
        row for row in publications if (row["unpublished_at"], row["last_seen_at"]) == (None, last)
    ]

    assert [row["id"] for row in now] == [job["id"] for job in published(night, organisation)]
    for table in ("jobs", "job_details"):
        assert "is_published" not in rows(night, organisation, table)[0]


def test_a_stopped_task_resumes_when_it_is_tried_again(night: Night) -> None:
    """No detail that was answered is asked for again."""
    asked = [request.path for request in night.details(STOPPED)]

    assert {name: len(logs) for name, logs in night.logs.items()} == {
        **dict.fromkeys(UNTOUCHED, 1),
        **dict.fromkeys([STOPPED, REVOKED, KILLED], 2),
    }
    assert sorted(set(asked)) == detail_paths(night, STOPPED)
    # Those in flight when it was stopped may have been answered to nobody.
    assert len(asked) <= JOBS + IN_FLIGHT
    assert "Meltano ended with status 1 for osprey_health." in night.logs[STOPPED][0]
    assert f"Synced {JOBS} jobs" in night.logs[STOPPED][1]


def test_an_undisturbed_task_asks_for_each_detail_once(night: Night) -> None:
    for organisation in UNTOUCHED:
        asked = sorted(request.path for request in night.details(organisation))
        assert asked == detail_paths(night, organisation)
        records = f"Synced {JOBS} jobs, {JOBS} job_publications, {JOBS} job_details"
        assert records in night.logs[organisation][0]


def test_each_organisation_that_was_not_loaded_raises_an_alert(night: Night) -> None:
    """One after its last try, and none for a try that a retry mended."""
    assert {path for path, _ in night.alerts} == {f"/{WEBHOOK_SECRET}"}
    texts = sorted(text.partition(" http")[0] for _, text in night.alerts)
    failed = [f"Public jobs of {name}: failed after 2 tries." for name in (KILLED, REVOKED)]
    assert [text for text in texts if text.startswith("Public")] == failed
    assert "refused the key (401)" in night.logs[REVOKED][1]
    assert rows(night, REVOKED, "jobs") == []


def test_the_final_tables_have_all_that_was_loaded_whatever_failed(night: Night) -> None:
    """They are an asset too, and the run has failed all the same."""
    for organisation in LOADED:
        titles = {job["id"]: job["jobTitle"] for job in published(night, organisation)}
        found = open_jobs(night, organisation)
        assert {row["id"]: row["job_title"] for row in found} == titles, night.output
    assert open_jobs(night, REVOKED) == []

    of_run = """
        select dag_run.state, asset.name from dag_run
        join asset_event on dag_run.run_id = asset_event.source_run_id
        join asset on asset.id = asset_event.asset_id
        where source_task_id = 'public_jobs_build' order by dag_run.id limit 1
    """
    assert ask_airflow(night, of_run) == [("failed", "public_jobs_analytics")]


def test_an_organisation_that_was_loaded_is_an_asset_for_other_dags(night: Night) -> None:
    query = """
        select asset.name, asset_event.source_map_index
        from asset_event join asset on asset.id = asset_event.asset_id
        join dag_run on dag_run.run_id = asset_event.source_run_id
        where asset_event.source_dag_id = 'public_jobs' order by asset_event.id limit 3
    """
    events = {(f"public_jobs_{name}", ORGANISATIONS.index(name)) for name in LOADED}
    assert set(ask_airflow(night, query)) == events


def test_no_other_user_can_read_what_a_run_writes(night: Night) -> None:
    assert [name for name in night.file_modes if name.endswith(".config.json")] != []
    assert {name: oct(mode) for name, mode in night.file_modes.items() if mode & 0o077} == {}


def test_a_run_leaves_no_file_behind_however_it_ended(night: Night) -> None:
    """Not after a Meltano was killed, and not what a worker left that died."""
    assert night.killed
    left = (night.project / ".meltano" / "run" / "elt").rglob("*")
    assert [file for file in left if file.is_file()] == []


def test_secrets_are_nowhere_but_in_the_environment_of_their_own_run(night: Night) -> None:
    """Not in logs, not in Airflow's database, in no command line."""
    keys = {name: night.sandbox.organisations[name].key for name in ORGANISATIONS}
    files = [file for file in night.home.rglob("*") if file.is_file()]
    text = "\n".join(file.read_bytes().decode(errors="replace") for file in files)
    text += "\n".join([night.output, *night.command_lines])

    assert [key for key in [*keys.values(), WEBHOOK_SECRET] if key in text] == []
    assert night.environments[STOPPED]["TAP_PUBLIC_JOBS_API_KEY"] == keys[STOPPED]
    for name, variables in night.environments.items():
        assert [other for other, key in keys.items() if key in variables.values()] == [name]
        assert not [variable for variable in variables if variable.startswith("AIRFLOW_CONN")]
