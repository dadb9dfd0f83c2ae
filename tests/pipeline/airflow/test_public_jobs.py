"""The DAG public_jobs, run by Airflow with LocalExecutor, with Meltano and the sandbox."""

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil
import psycopg
import pytest
from e2e.pipeline import REPOSITORY, Project, hearing, installed, run
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postgresql import postgresql
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox, SeenRequest

from tap_public_jobs.changelog import ChangeLog

LOADED = ["halden_robotics", "lumen_books", "osprey_health"]
KILLED, STOPPED, REVOKED = "halden_robotics", "osprey_health", "tern_logistics"
ORGANISATIONS = [*LOADED, REVOKED]
JOBS = 150
MELTANO = "meltano[postgres]~=4.4"
NO_LOAD = {"load": "skipped"}
IN_FLIGHT = 16  # the default of max_concurrent_requests
PATIENCE = 280
"""Seconds without a word from the scheduler or an alert after which a test fails."""
WEBHOOK_SECRET = "T0/B0/webhook-secret"  # noqa: S105  # opens nothing
CONFIG = """\
# Airflow as in production, in seconds instead of minutes.
[core]
executor = LocalExecutor
parallelism = 4
load_examples = False
dags_are_paused_at_creation = False

[api]
host = 127.0.0.1
workers = 1
secret_key = the same for all services

[api_auth]
jwt_secret = the same for all services, with the 64 bytes that the algorithm asks for

[scheduler]
# A worker that died is noticed soon.
task_instance_heartbeat_sec = 2
task_instance_heartbeat_timeout = 30
task_instance_heartbeat_timeout_detection_interval = 2

[dag_processor]
# A run's alert is sent while the file is processed, which a busy machine delays.
dag_file_processor_timeout = 280

[workers]
# The server may start after the first task.
execution_api_timeout = 60
execution_api_retries = 30
"""
# Airflow's own way to change what DAGs say, for all of one installation: no test waits for a retry.
POLICY = "import datetime\ndef task_policy(it): it.retry_delay = datetime.timedelta(0, 1)\n"


@dataclass
class Run:
    """A finished run of the DAG.

    Attributes:
        name: Its run_id.
        state: Of the run.
        tasks: The states of its tasks, of loads by organisation.
        requests: What the API was asked.
        alerts: What was sent.
        log: What the scheduler and the tasks printed.
    """

    name: str
    state: str
    tasks: dict[str, str]
    requests: list[SeenRequest]
    alerts: list[str]
    log: str

    def details(self, organisation: str) -> list[str]:
        """The publicIds of the details that were requested."""
        asked = [it for it in self.requests if it.organisation == organisation and not it.query]
        return [it.path.rpartition("/")[2] for it in asked]


@dataclass
class Airflow:
    """Airflow with the DAG, the API that the tap reads, and the warehouse."""

    sandbox: Sandbox
    database: str
    home: Path
    project: Path
    variables: dict[str, str] = field(default_factory=dict)
    alerts: SimpleQueue[str] = field(default_factory=SimpleQueue[str])
    lines: SimpleQueue[str] = field(default_factory=SimpleQueue[str])  # of the scheduler and tasks

    def start(self, *words: str, **options: Any) -> psutil.Popen:
        """Start a command of Airflow."""
        command = [sys.executable, "-m", "airflow", *words]
        return psutil.Popen(command, env=self.variables, **options)

    @contextlib.contextmanager
    def services(self) -> Iterator[None]:
        """Run Airflow's services."""
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        scheduler = self.start("scheduler", "--skip-serve-logs", **piped)
        services = [scheduler, self.start("dag-processor"), self.start("api-server")]

        def read() -> None:
            with scheduler.stdout as pipe:  # to its end: the scheduler waits while it is full
                for line in pipe:
                    self.lines.put(line)

        threading.Thread(target=read, daemon=True).start()
        try:
            yield
        finally:
            family = [it for service in services for it in service.children(recursive=True)]
            for service in services:
                service.terminate()
            for process in psutil.wait_procs(services + family, timeout=60)[1]:
                process.kill()

    def run(self, *, is_known: bool = False, **parameters: Any) -> Run:
        """Run the DAG to its end; if it fails, to its alert, unless the failure is a known one."""
        self.sandbox.requests.clear()
        name, alerts = f"run_{time.monotonic_ns()}", [""]
        words = ("--run-id", name, "--conf", json.dumps(parameters))
        assert self.start("dags", "trigger", "public_jobs", *words).wait(PATIENCE) == 0
        log = line = ""
        while not ("Marking run " in line and f" {name}, " in line):
            log += (line := take(self.lines, log))
        state, deadline = "running", time.monotonic() + PATIENCE
        while state == "running":  # the line comes just before the commit
            assert time.monotonic() < deadline, log
            ((state,),) = self.ask("select state from dag_run where run_id = ?", name)
        waits = state == "failed" and not is_known
        while not self.alerts.empty() or (waits and f"Run {name} " not in alerts[-1]):
            alerts.append(take(self.alerts, log))
        query = "select coalesce(rendered_map_index, task_id), state from task_instance"
        tasks = dict(self.ask(f"{query} where run_id = ?", name))
        return Run(name, state, tasks, [*self.sandbox.requests], alerts[1:], log)

    def ask(self, query: str, *values: str) -> list[Any]:
        """Ask Airflow's database."""
        database = sqlite3.connect(self.home / "airflow.db", isolation_level=None)
        with contextlib.closing(database) as connection:
            return connection.execute(query, values).fetchall()

    def rows(self, table: str) -> list[tuple[str, str]]:
        """Return the publicIds and titles in a table of the warehouse."""
        query = f"select public_id, job_title from {table} order by public_id"  # noqa: S608
        with psycopg.connect(self.database) as connection:
            return connection.execute(query.encode()).fetchall()

    def change(self, statement: str) -> None:
        """Change the warehouse."""
        with psycopg.connect(self.database) as connection:
            connection.execute(statement.encode())

    def published(self, organisation: str) -> list[tuple[str, str]]:
        """Return the publicIds and titles that are true."""
        jobs = [it.job for it in self.sandbox.organisations[organisation].published()]
        return sorted((str(job["publicId"]), str(job["jobTitle"])) for job in jobs)

    def notify(self, organisation: str, *public_ids: str) -> None:
        """Note changes as the receiver of webhooks does; without any, make the log."""
        url = self.database.replace(":", "+psycopg:", 1)
        ChangeLog(url).append({organisation: public_ids})

    def tap(self, name: str) -> psutil.Process:
        """Find the tap that loads an organisation."""
        words = f"/tap-public-jobs --config {self.project}/.meltano/run/elt/public_jobs_{name}/"
        running = psutil.process_iter(["cmdline"])  # leaves out those that have ended
        (found,) = [it for it in running if words in " ".join(it.info["cmdline"] or [])]
        return found


def take(queue: SimpleQueue[str], log: str) -> str:
    """Take the next line or alert."""
    try:
        return queue.get(timeout=PATIENCE)
    except Empty:
        pytest.fail(f"nothing happened for {PATIENCE} s after:\n{log}")


def install(folder: Path, database: str) -> None:
    """Make a project with Meltano's plugins and its database, as README.md sets them up."""
    Project.copied(folder)
    text = (REPOSITORY / "meltano.yml").read_text("utf-8")
    (folder / "meltano.yml").write_text(text.replace("-e .", "-e . psycopg[binary]"), "utf-8")
    uri = database.replace(":", "+psycopg:", 1)
    plugins = ("tap-public-jobs", "target-postgres", "dbt-postgres")
    command = (installed(MELTANO) / "meltano", "install", *plugins)
    run(*command, folder=folder, MELTANO_DATABASE_URI=uri).succeeded()


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Four organisations, of which one has a revoked key."""
    sandbox = Sandbox(Options(limited=False, latency=0.01))
    for seed, name in enumerate(ORGANISATIONS):
        sandbox.add_organisation(name, make_jobs(JOBS, seed=seed, organisation=name))
    sandbox.revoke(sandbox.organisations[REVOKED].key)
    home = tmp_path_factory.mktemp("airflow")
    shutil.copytree(REPOSITORY / "pipeline" / "airflow" / "dags", home / "dags")
    (home / "dags" / "organisations.yaml").write_text(json.dumps(ORGANISATIONS), "utf-8")
    (home / "airflow.cfg").write_text(CONFIG, "utf-8")
    (home / "config").mkdir()
    (home / "config" / "airflow_local_settings.py").write_text(POLICY, "utf-8")
    # Bash reads it in a task, unless SHLVL says that it runs in another shell.
    (home / ".bashrc").write_text("exit 1\n")
    with postgresql() as database, serving(sandbox) as base_url:
        airflow = Airflow(sandbox, database, home, tmp_path_factory.mktemp("public-jobs"))
        install(airflow.project, database)

        def take(path: str, body: bytes) -> None:
            assert path == f"/{WEBHOOK_SECRET}"
            airflow.alerts.put(json.loads(body)["text"])

        with hearing(take) as address:
            alerts = f"http://{address}/{WEBHOOK_SECRET}"
            airflow.variables = environment(airflow, base_url, alerts)
            for words in (("db", "migrate"), ("dags", "reserialize")):
                assert airflow.start(*words).wait(PATIENCE) == 0
            for name in ORGANISATIONS:
                airflow.notify(name)  # the first time, a state knows no notification log
            with airflow.services():
                yield airflow


def environment(airflow: Airflow, base_url: str, alerts: str) -> dict[str, str]:
    """Return the variables of an Airflow that keeps its connections in variables."""
    http = {name: (base_url, it.key) for name, it in airflow.sandbox.organisations.items()}
    connections = {
        name: json.dumps({"conn_type": "http", "host": host, "password": password})
        for name, (host, password) in (http | {"alert": ("", alerts)}).items()
    } | dict.fromkeys(("warehouse", "meltano", "changes"), airflow.database)
    # Without SHLVL, as under systemd.
    private = ("AIRFLOW", "TAP_", "TARGET_", "MELTANO_", "PUBLIC_JOBS_", "SHLVL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        **inherited,
        **{f"AIRFLOW_CONN_PUBLIC_JOBS_{name.upper()}": it for name, it in connections.items()},
        "AIRFLOW_HOME": str(airflow.home),
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "HOME": str(airflow.home),
        "PUBLIC_JOBS_PROJECT": str(airflow.project),
        "PUBLIC_JOBS_SCHEDULE": "0 0 29 2 *",  # tests trigger their runs
        "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": "100000",
        "PATH": f"{installed(MELTANO)}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


@pytest.fixture(scope="session")
def first(airflow: Airflow) -> Run:
    """A run of all organisations, in which one load is stopped, and the worker of another dies."""
    running = {KILLED, STOPPED}

    def stop(request: SeenRequest) -> bool:
        name = request.organisation
        asked = [it.organisation for it in airflow.sandbox.requests]
        if name in running and asked.count(name) >= 100:
            running.remove(name)
            tap = airflow.tap(name)
            _, script, task, worker, *_ = tap.parents()
            if name == STOPPED:
                script.terminate()  # as Airflow does when a task is stopped
            else:
                for process in (worker, task, *task.children(recursive=True)):
                    process.kill()
                # Meltano believes for five minutes that the killed one still runs.
                with psycopg.connect(airflow.database) as connection:
                    connection.execute("update runs set state = 'FAIL' where job_name ~ 'halden'")
            # The API answers nothing until then, else the tap could be done before it is stopped.
            tap.wait(timeout=60)
        return False  # it is no fault of the API's

    airflow.sandbox.fail_next("http_500", times=None, path=stop)
    return airflow.run()


def test_one_that_fails_holds_back_no_other(airflow: Airflow, first: Run) -> None:
    """All that was loaded is in the tables, and the run has failed all the same."""
    assert first.state == "failed", first.log
    states = dict.fromkeys(("choose", *LOADED, "build"), "success")
    assert first.tasks == states | {REVOKED: "failed", "loaded": "upstream_failed"}
    for name in LOADED:
        built = f"analytics.open_jobs where organisation = '{name}'"
        for table in (f"{name}.jobs", f"{name}.job_details", built):
            assert airflow.rows(table) == airflow.published(name)
    # The assets start other DAGs.
    query = "select name from asset_event join asset on asset.id = asset_id where source_run_id = ?"
    updated = [("public_jobs_analytics",), *((f"public_jobs_{name}",) for name in LOADED)]
    assert sorted(airflow.ask(query, first.name)) == updated


def test_a_run_that_failed_raises_one_alert(first: Run) -> None:
    """It names what failed in all tries, and no try that a retry has made good."""
    (alert,) = first.alerts
    again = "Later runs try again, and report the same failure once a day"
    start = f"Public jobs: not loaded completely: {REVOKED}. {again}."
    assert alert.startswith(f"{start} Run {first.name} (task_failure): http")


def test_a_stopped_load_resumes_when_it_is_tried_again(airflow: Airflow, first: Run) -> None:
    """Few details that were answered are asked for again, and none of the other organisations."""
    for name in LOADED:
        asked, ids = first.details(name), [public_id for public_id, _ in airflow.published(name)]
        assert sorted(set(asked)) == ids
        # Those in flight when it was stopped may have been answered to nobody. A killed one repeats
        # what the target has not acknowledged.
        most = {STOPPED: IN_FLIGHT, KILLED: len(ids)}
        assert len(asked) <= len(ids) + most.get(name, 0)


def test_no_log_and_no_database_has_a_secret(airflow: Airflow, first: Run) -> None:
    files = [file for file in airflow.home.rglob("*") if file.is_file()]
    text = "\n".join([first.log, *(it.read_bytes().decode(errors="replace") for it in files)])
    keys = [airflow.sandbox.organisations[name].key for name in ORGANISATIONS]

    assert [key for key in [*keys, WEBHOOK_SECRET] if key in text] == []


@pytest.mark.usefixtures("first")
def test_a_load_that_fails_is_due_in_an_hour_and_the_others_the_next_day(airflow: Airflow) -> None:
    due = dict(airflow.ask("select key, val from variable where key like 'public_jobs_due_%'"))
    again = datetime.fromisoformat(due.pop(f"public_jobs_due_{REVOKED}"))

    assert again < datetime.now(UTC) + timedelta(hours=1)
    days = {key: time.partition(" ")[2] for key, time in due.items()}
    assert days == {f"public_jobs_due_{name}": "04:00:00+00:00" for name in LOADED}

    idle = airflow.run()
    assert (idle.state, idle.requests) == ("success", [])
    assert idle.tasks == {"choose": "success", "loaded": "success"} | NO_LOAD | {"build": "skipped"}
    assert "Nothing to load: no organisation is due or has news" in idle.log


@pytest.mark.usefixtures("first")
def test_what_could_not_be_built_is_built_by_the_next_run(airflow: Airflow) -> None:
    """One broken table stops the build of all: the alert says whose, and what to do."""
    loaded, broken = "lumen_books", "osprey_health"
    (edited, _), *_ = airflow.published(loaded)
    airflow.sandbox.organisations[loaded].edit(edited, jobTitle="Chief of Everything")
    airflow.notify(loaded, edited)
    airflow.change(f"alter table {broken}.jobs rename to aside")
    failed = airflow.run()
    airflow.change(f"alter table {broken}.aside rename to jobs")
    assert failed.tasks == dict.fromkeys(("choose", loaded), "success") | {
        "build": "failed",
        "loaded": "upstream_failed",
    }
    assert (edited, "Chief of Everything") not in airflow.rows("analytics.open_jobs")
    (alert,) = failed.alerts
    assert "Public jobs: the final tables are still those of the last build (model." in alert
    assert f"history has jobs of {broken}: load them first" in alert

    build = airflow.run()
    assert (build.requests, build.alerts) == ([], [])
    assert build.tasks == dict.fromkeys(("choose", "build", "loaded"), "success") | NO_LOAD
    assert (edited, "Chief of Everything") in airflow.rows("analytics.open_jobs")


@pytest.mark.usefixtures("first")
def test_what_is_due_or_has_news_is_built_even_if_no_load_is_complete(airflow: Airflow) -> None:
    """One organisation has news and misses a detail, the key of the other is revoked."""
    news, due = airflow.sandbox.organisations["halden_robotics"], "lumen_books"
    edited, missing = (public_id for public_id, _ in airflow.published(news.name)[7:9])
    news.edit(edited, jobTitle="Chief of Everything")
    airflow.notify(news.name, edited, missing)
    airflow.sandbox.fail_next("http_404", times=None, path=lambda it: it.path.endswith(missing))
    airflow.ask("delete from variable where key = ?", f"public_jobs_due_{due}")
    airflow.sandbox.revoke(airflow.sandbox.organisations[due].key)
    # Its key is still revoked: that is known, and no alert.
    assert airflow.run(is_known=True, organisations=[REVOKED]).state == "failed"
    run = airflow.run()

    loads = {news.name: "failed", due: "failed", "loaded": "upstream_failed"}
    assert run.tasks == {"choose": "success", **loads, "build": "success"}, run.log
    (alert,) = run.alerts
    assert f"Public jobs: not loaded completely: {news.name}, {due}. Later" in alert
    # The API does not know whose key it was.
    assert {it.organisation for it in run.requests} == {news.name, None}
    assert {*run.details(news.name)} == {edited, missing}
    assert (edited, "Chief of Everything") in airflow.rows("analytics.open_jobs")


def test_a_name_that_is_not_listed_is_refused(airflow: Airflow) -> None:
    script = "import public_jobs; public_jobs.get_current_context = lambda: {'params': {"
    script += "'organisations': ['lumen_book']}}; public_jobs.choose.function()"
    command, folder = [sys.executable, "-c", script], airflow.home / "dags"
    done = subprocess.run(command, env=airflow.variables, cwd=folder, stderr=-1, check=False)

    assert b"names ['lumen_book']: not in" in done.stderr
