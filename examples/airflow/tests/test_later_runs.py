"""Runs after the first night, and what becomes of a run without a worker or without an end."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from queue import SimpleQueue

import psycopg
import pytest
from night import (
    KILLED,
    ORGANISATIONS,
    REVOKED,
    UNTOUCHED,
    WEBHOOK_SECRET,
    Alert,
    Night,
    ask_airflow,
    connection,
    notify,
    organisation_connections,
    run,
    run_code,
    service,
    webhook,
)
from warehouse import open_jobs, published, rows

pytest_plugins = ["airflow_fixtures"]


def test_a_run_for_one_organisation_without_changes_asks_for_its_list_alone(night: Night) -> None:
    before = len(night.sandbox.requests)
    output = night.run_dag("public_jobs", {"organisations": [UNTOUCHED[1]]})

    requests = night.sandbox.requests[before:]
    asked = sorted(
        (request.organisation, request.path, request.query["page"]) for request in requests
    )
    assert asked == [(UNTOUCHED[1], "/api/public/v1/jobs", page) for page in "12"], output


def test_a_run_for_an_organisation_that_is_not_listed_loads_nothing(night: Night) -> None:
    before = len(night.sandbox.requests)
    output = night.run_dag("public_jobs", {"organisations": ["lumen_book"]})

    assert "The parameter organisations names ['lumen_book']: not in" in output
    assert night.sandbox.requests[before:] == []


def test_after_a_webhook_the_organisation_it_named_is_loaded_and_no_other(
    night: Night, tmp_path: Path
) -> None:
    """Without news, without a change log or beside another run, it is skipped.

    A check that crashes has the status of no news, and fails all the same.
    """
    with_news, without_news = UNTOUCHED  # both logs were read at night, up to their ends
    job = published(night, with_news)[7]
    night.sandbox.organisations[with_news].edit(job["publicId"], jobTitle="Chief of Everything")
    with psycopg.connect(night.database) as database:
        # The Meltano that was killed holds its lock for five minutes after its last heartbeat.
        query = "update runs set last_heartbeat_at = now() at time zone 'utc' where job_name = %s"
        locked = database.execute(f"{query} and state = 'RUNNING'", [f"public_jobs_{KILLED}"])
        assert locked.rowcount == 1
    base_url = json.loads(night.variables["AIRFLOW_CONN_PUBLIC_JOBS_LUMEN_BOOKS"])["host"]
    changes = {
        with_news: notify(night.changes_url(with_news), job["publicId"]),
        KILLED: notify(
            f"sqlite:///{tmp_path}/{KILLED}.db", published(night, KILLED)[0]["publicId"]
        ),
        REVOKED: "mistyped",
    }
    connections = organisation_connections(night, base_url) | {
        f"AIRFLOW_CONN_PUBLIC_JOBS_{name.upper()}": connection(
            base_url, night.sandbox.organisations[name].key, changes_url=url
        )
        for name, url in changes.items()
    }
    before = len(night.sandbox.requests)
    output = night.run_dag("public_jobs_news", variables=connections)

    requests = night.sandbox.requests[before:]
    assert {request.organisation for request in requests} == {with_news}, output
    assert [request.path for request in requests if not request.query] == [
        f"/api/public/v1/jobs/{job['publicId']}"
    ]
    (row,) = [row for row in rows(night, with_news, "job_details") if row["id"] == job["id"]]
    assert row["job_title"] == "Chief of Everything"
    query = """
        select rendered_map_index, state from task_instance
        where dag_id = 'public_jobs_news' and task_id = 'sync'
    """
    skipped = dict.fromkeys(ORGANISATIONS, "skipped")
    assert dict(ask_airflow(night, query)) == skipped | {
        with_news: "success",
        REVOKED: "failed",
    }
    assert f"No news of {without_news}." in output
    # The final tables are built after the one that was loaded.
    (open_job,) = [it for it in open_jobs(night, with_news) if it["id"] == job["id"]]
    assert open_job["job_title"] == "Chief of Everything"


def test_without_a_load_nothing_is_built(night: Night) -> None:
    night.run_dag("public_jobs", {"organisations": [REVOKED]})

    query = """
        select task_id, state from task_instance where task_id != 'organisations' and run_id =
        (select run_id from dag_run where dag_id = 'public_jobs' order by id desc limit 1)
    """
    assert dict(ask_airflow(night, query)) == {
        "sync": "failed",
        "public_jobs_build": "skipped",
        "loaded": "upstream_failed",
    }


def test_a_dead_worker_and_a_run_that_is_too_long_raise_alerts(night: Night) -> None:
    """From Airflow's DAG processor; where the webhook refuses them, its address is not logged."""
    number = str(ORGANISATIONS.index(UNTOUCHED[0]))
    alerts: SimpleQueue[Alert] = SimpleQueue()
    with webhook(alerts.put, status=404) as address:
        variables = night.variables | {
            "AIRFLOW_CONN_PUBLIC_JOBS_ALERT": connection("", address),
            "AIRFLOW__LOGGING__DAG_PROCESSOR_LOG_TARGET": "stdout",
        }
        script = str(Path(__file__).with_name("lost_worker.py"))
        run([sys.executable, script, "public_jobs", number], variables)
        processor = [sys.executable, "-m", "airflow", "dag-processor"]
        with service(processor, variables, ready="") as lines:
            of_task, of_run = [alerts.get(timeout=300)[1] for _ in range(2)]

    assert of_task.startswith(f"Public jobs of {UNTOUCHED[0]}: failed after 1 tries. http")
    run_id = "manual__[^ ]+"
    assert re.fullmatch(
        rf"Run {run_id} of public_jobs failed \(timed_out\)\. Not loaded: "
        f"{UNTOUCHED[0]}, {REVOKED}, {KILLED}\\.",
        of_run,
    )
    output = "".join(lines)
    assert "The alert was not sent (status 404)" in output
    assert WEBHOOK_SECRET not in output


def test_a_hung_warehouse_keeps_no_other_night_waiting(tmp_path: Path) -> None:
    """All tries of one organisation end before the run does, and a night before the next."""
    code = """
import datetime, meltano_run, public_jobs
for dag in (public_jobs.NIGHTLY, public_jobs.NEWS):
    longest = datetime.timedelta()
    for name in ("sync", "public_jobs_build"):
        task = dag.get_task(name)
        one_try = task.execution_timeout + meltano_run.TIME_TO_DRAIN
        longest += (task.retries + 1) * one_try + task.retries * task.max_retry_delay
    print(dag.dag_id, longest < dag.dagrun_timeout, dag.dagrun_timeout.total_seconds() < 86400)
"""
    assert run_code(code, tmp_path) == ["public_jobs True True", "public_jobs_news True True"]


@pytest.mark.parametrize(
    ("hours", "folder", "left"),
    [(1, ".", "0 ['config.json']"), (-1, ".", "-9 []"), (-1, "..", "0 []")],
    ids=["may still load", "hangs", "of another project"],
)
def test_a_meltano_that_outlived_its_task_is_left_alone_until_it_must_be_hung(
    hours: int, folder: str, left: str, tmp_path: Path
) -> None:
    code = f"""
import datetime, pathlib, subprocess, sys
import meltano_run
folder = pathlib.Path({str(tmp_path)!r}, ".meltano", "run", "elt", "public_jobs_acme")
folder.mkdir(parents=True)
(folder / "config.json").touch()
meltano = subprocess.Popen(
    [sys.executable, "-c", "print(flush=True); input()", "--state-id", "public_jobs_acme"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    cwd={str(tmp_path / folder)!r},
    start_new_session=True,
)
meltano.stdout.readline()  # from now on it has its command line
meltano_run.MeltanoRun(
    task_id="sync",
    organisation="acme",
    project={str(tmp_path)!r},
    detail_refresh="changed",
    execution_timeout=datetime.timedelta(hours={hours}),
)._clean()
meltano.communicate(b"\\n")
print(meltano.returncode, [file.name for file in folder.glob("*")])
"""
    assert run_code(code, tmp_path)[-1] == left
