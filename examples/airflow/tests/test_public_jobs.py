"""The DAG public_jobs, run by Airflow without its services, with Meltano and the sandbox."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest
import yaml
from psycopg.rows import dict_row
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postgresql import postgresql
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import SeenRequest

REPOSITORY = Path(__file__).parents[3]
LOADED = ["halden_robotics", "lumen_books", "osprey_health"]
STOPPED, REVOKED = "osprey_health", "tern_logistics"
ORGANISATIONS = [*LOADED, REVOKED]
JOBS = 150
IN_FLIGHT = 16  # the default of max_concurrent_requests
WEBHOOK_SECRET = "T0/B0/webhook-secret"  # noqa: S105  # opens nothing
# Airflow's own way to change what DAGs say, for all of one installation: no test waits for a retry.
POLICY = """from datetime import timedelta
def task_policy(task):
    task.retry_delay = timedelta(seconds=1)
"""


@dataclass
class Run:
    """A finished run of the DAG.

    Attributes:
        name: Its run_id.
        state: Of the run.
        tasks: The states of its tasks, of loads by organisation.
        requests: What the API was asked.
        alerts: What was sent.
        log: What Airflow printed.
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
    alerts: list[str] = field(default_factory=list)

    def run(self, **parameters: Any) -> Run:
        """Run the DAG to its end, one task at a time."""
        self.alerts.clear()
        self.sandbox.requests.clear()
        command = [sys.executable, "-m", "airflow", "dags", "test", "public_jobs"]
        done = subprocess.run(
            [*command, "--conf", json.dumps(parameters)],
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ((name, state),) = self.ask("select run_id, state from dag_run order by id desc limit 1")
        query = "select coalesce(rendered_map_index, task_id), state from task_instance"
        tasks = dict(self.ask(f"{query} where run_id = ?", name))
        return Run(name, state, tasks, [*self.sandbox.requests], [*self.alerts], done.stdout)

    def ask(self, query: str, *values: str) -> list[Any]:
        """Ask Airflow's database."""
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db")) as connection:
            return connection.execute(query, values).fetchall()

    def rows(self, table: str, columns: str) -> list[dict[str, Any]]:
        """Return what the warehouse has in some columns of a table."""
        query = f"select {columns} from {table} order by public_id"  # noqa: S608
        with psycopg.connect(self.database, row_factory=dict_row) as connection:
            return connection.execute(query.encode()).fetchall()

    def published(self, organisation: str) -> list[Job]:
        """Return the truth."""
        jobs = [it.job for it in self.sandbox.organisations[organisation].published()]
        return sorted(jobs, key=lambda job: str(job["publicId"]))

    def notify(self, organisation: str, *public_ids: str) -> None:
        """Note changes as the receiver of webhooks does; without any, make the log."""
        url = self.database.replace(":", "+psycopg:", 1)
        ChangeLog(f"{url}&name={organisation}").append(public_ids)

    def load_process(self, organisation: str) -> psutil.Process:
        """Find the script that runs Meltano for an organisation."""
        script, state_id = f"{self.project}/docker-entrypoint.sh", f"public_jobs_{organisation}"
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has ended
                words = process.cmdline()
                if state_id in words and {script, "./docker-entrypoint.sh"} & {*words}:
                    return process
        raise AssertionError(organisation)


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a PostgreSQL."""
    with postgresql() as address:
        yield address


@pytest.fixture(scope="session")
def project(database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Meltano, a copy of the project, its plugins and its database, as README.md sets them up."""
    folder = tmp_path_factory.mktemp("opt") / "public-jobs"
    clone = folder.with_name("tap-public-jobs")
    (folder / "transform").mkdir(parents=True)
    shutil.copy(REPOSITORY / "docker-entrypoint.sh", folder)
    for package in ("tap_public_jobs", "sandbox", "transform"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / package, clone / package, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, clone)
    # What `meltano add` would write.
    project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8"))
    tap, dbt = (
        yaml.safe_load((REPOSITORY / "plugins" / kind / f"{name}.yml").read_text("utf-8"))
        for kind, name in (("extractors", "tap-public-jobs"), ("utilities", "dbt-postgres"))
    )
    tap["pip_url"] += " psycopg[binary]"
    project["plugins"]["loaders"] = [
        it for it in project["plugins"]["loaders"] if it["name"] == "target-postgres"
    ]
    project["plugins"] |= {"extractors": [tap], "utilities": [dbt]}
    del project["jobs"]
    written = {
        "meltano.yml": project,
        "transform/dbt_project.yml": {"name": "my_pipeline", "profile": "public_jobs"},
        "transform/packages.yml": {"packages": [{"local": "../../tap-public-jobs/transform"}]},
    }
    for file, content in written.items():
        (folder / file).write_text(yaml.safe_dump(content), "utf-8")
    tools = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    meltano = [*uv_command(), "tool", "install", "meltano[postgres]~=4.4"]
    subprocess.run(meltano, env=os.environ | tools, check=True)
    variables = {"MELTANO_DATABASE_URI": database.replace(":", "+psycopg:", 1)}
    for words in (["install"], ["invoke", "dbt-postgres:deps"]):
        command = [str(folder / "bin" / "meltano"), *words]
        subprocess.run(command, env=os.environ | variables, cwd=folder, check=True)
    receiver = "public-jobs-webhook"
    (folder / "bin" / receiver).symlink_to(Path(sys.executable).with_name(receiver))
    return folder


@pytest.fixture(scope="session")
def airflow(
    project: Path, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    """Four organisations, of which one has a revoked key."""
    sandbox = Sandbox(Options(limited=False, latency=0.01))
    for seed, name in enumerate(ORGANISATIONS):
        sandbox.add_organisation(name, make_jobs(JOBS, seed=seed, organisation=name))
    sandbox.revoke(sandbox.organisations[REVOKED].key)
    home = tmp_path_factory.mktemp("airflow")
    shutil.copytree(REPOSITORY / "examples" / "airflow" / "dags", home / "dags")
    (home / "dags" / "organisations.yaml").write_text(json.dumps(ORGANISATIONS), "utf-8")
    (home / "config").mkdir()
    (home / "config" / "airflow_local_settings.py").write_text(POLICY, "utf-8")
    airflow = Airflow(sandbox, database, home, project)
    with serving(sandbox) as base_url, alerts_into(airflow.alerts) as address:
        airflow.variables = environment(airflow, base_url, address)
        migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(migrate, env=airflow.variables, check=True)
        yield airflow


@contextlib.contextmanager
def alerts_into(alerts: list[str]) -> Iterator[str]:
    """Take alerts, at an address that is a secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == f"/{WEBHOOK_SECRET}"
            alerts.append(json.loads(body)["text"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")  # what Slack answers

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{WEBHOOK_SECRET}"
        server.shutdown()


def environment(airflow: Airflow, base_url: str, alerts: str) -> dict[str, str]:
    """Return the variables of an Airflow that keeps its connections in variables."""
    private = ("AIRFLOW", "TAP_", "TARGET_", "MELTANO_", "PUBLIC_JOBS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    keys = {name: airflow.sandbox.organisations[name].key for name in ORGANISATIONS}
    connections = {name: connection(base_url, key) for name, key in keys.items()}
    connections |= dict.fromkeys(("warehouse", "meltano", "changes"), airflow.database)
    connections |= {"alert": connection("", alerts)}
    return {
        **inherited,
        **{f"AIRFLOW_CONN_PUBLIC_JOBS_{name.upper()}": it for name, it in connections.items()},
        "AIRFLOW_HOME": str(airflow.home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(airflow.home / "dags"),
        "PUBLIC_JOBS_PROJECT": str(airflow.project),
        "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": "100000",
        "XDG_STATE_HOME": str(airflow.home / "state"),  # Meltano keeps its logs there
        "PATH": f"{airflow.project / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "no_proxy": "127.0.0.1",
        "NO_PROXY": "127.0.0.1",
    }


def connection(host: str, password: str) -> str:
    """Return the value of one of Airflow's variables for connections."""
    return json.dumps({"conn_type": "http", "host": host, "password": password})


@pytest.fixture(scope="session")
def first(airflow: Airflow) -> Run:
    """A run of all organisations, in which one load is stopped."""
    stopped: list[psutil.Process] = []

    def stop(request: SeenRequest) -> bool:
        asked = [it for it in airflow.sandbox.requests if it.organisation == STOPPED]
        if request.organisation == STOPPED and len(asked) >= 100 and not stopped:
            stopped.append(airflow.load_process(STOPPED))
            (tap,) = [it for it in stopped[0].children(recursive=True) if is_tap(it)]
            stopped[0].terminate()  # as Airflow does when a task is stopped
            # The API answers nothing until then, else the tap could be done before it is stopped.
            tap.wait(timeout=60)
        return False  # it is no fault of the API's

    airflow.sandbox.fail_next("http_500", times=None, path=stop)
    return airflow.run()


def is_tap(process: psutil.Process) -> bool:
    return "/tap-public-jobs --config " in " ".join(process.cmdline())


def test_one_that_fails_holds_back_no_other(airflow: Airflow, first: Run) -> None:
    """All that was loaded is in the tables, and the run has failed all the same."""
    assert first.state == "failed", first.log
    assert first.tasks == {
        "choose": "success",
        **dict.fromkeys(LOADED, "success"),
        REVOKED: "failed",
        "build": "success",
        "loaded": "upstream_failed",
    }
    columns = {"public_id": "publicId", "job_title": "jobTitle"}
    for name in LOADED:
        truth = [{it: job[columns[it]] for it in columns} for job in airflow.published(name)]
        for table in ("jobs", "job_details"):
            assert airflow.rows(f"{name}.{table}", "public_id, job_title") == truth
    found = airflow.rows("analytics.open_jobs", "organisation, job_title")
    assert sorted((row["organisation"], row["job_title"]) for row in found) == sorted(
        (name, job["jobTitle"]) for name in LOADED for job in airflow.published(name)
    )


def test_each_failed_try_raises_an_alert(first: Run) -> None:
    """Two of one load and one of another; in one process, Airflow renders a text once."""
    assert len(first.alerts) == 3
    assert first.alerts[0].partition(" failed in try 1. http")[0] in {
        f"Public jobs: {STOPPED}",
        f"Public jobs: {REVOKED}",
    }


def test_a_stopped_load_resumes_when_it_is_tried_again(airflow: Airflow, first: Run) -> None:
    """Few details that were answered are asked for again, and none of the other organisations."""
    for name in LOADED:
        asked, ids = first.details(name), [job["publicId"] for job in airflow.published(name)]
        assert sorted(set(asked)) == ids
        # Those in flight when it was stopped may have been answered to nobody.
        assert len(asked) <= len(ids) + (IN_FLIGHT if name == STOPPED else 0)


def test_loads_and_builds_are_assets_for_other_dags(airflow: Airflow, first: Run) -> None:
    query = """
        select asset.name from asset_event join asset on asset.id = asset_event.asset_id
        where source_run_id = ?
    """
    names = ["public_jobs_analytics", *(f"public_jobs_{name}" for name in LOADED)]
    assert sorted(name for (name,) in airflow.ask(query, first.name)) == names


def test_no_log_and_no_database_has_a_secret(airflow: Airflow, first: Run) -> None:
    files = [file for file in airflow.home.rglob("*") if file.is_file()]
    text = "\n".join([first.log, *(it.read_bytes().decode(errors="replace") for it in files)])
    keys = [airflow.sandbox.organisations[name].key for name in ORGANISATIONS]

    assert [key for key in [*keys, WEBHOOK_SECRET] if key in text] == []


@pytest.mark.usefixtures("first")
def test_only_organisations_with_news_are_loaded(airflow: Airflow) -> None:
    """In a later run of the day, after a run by name."""
    name = "halden_robotics"
    for each in LOADED:
        airflow.notify(each)
    # The first time, a state knows no change log.
    assert airflow.run(organisations=LOADED).state == "success"
    without_news = airflow.run()
    assert (without_news.state, without_news.requests) == ("success", [])
    assert without_news.tasks == {
        "choose": "success",
        "load": "skipped",
        "build": "skipped",
        "loaded": "success",
    }

    job = airflow.published(name)[7]
    airflow.sandbox.organisations[name].edit(job["publicId"], jobTitle="Chief of Everything")
    airflow.notify(name, str(job["publicId"]))
    news = airflow.run()

    assert news.state == "success", news.log
    assert news.tasks.keys() == {"choose", name, "build", "loaded"}
    assert {it.organisation for it in news.requests} == {name}
    assert news.details(name) == [job["publicId"]]
    titles = airflow.rows("analytics.open_jobs", "id, job_title")
    assert {"id": job["id"], "job_title": "Chief of Everything"} in titles


@pytest.mark.usefixtures("first")
def test_a_name_that_is_not_listed_loads_nothing(airflow: Airflow) -> None:
    run = airflow.run(organisations=["lumen_book"])

    assert (run.state, run.requests) == ("failed", [])
    assert "names ['lumen_book']: not in" in run.log
