"""The DAGs of many organisations, run by Airflow with LocalExecutor on projects of stand-ins."""

import contextlib
import json
import os
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil
import pytest
from e2e.pipeline import REPOSITORY

WORKS, FAILS, HANGS = "halden_robotics", "osprey_health", "tern_logistics"
PATIENCE = 280
"""Seconds without a word from the scheduler after which a test fails."""
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
# Tests trigger the runs: a DAG that is new begins with that of its last time.
use_job_schedule = False
# A worker that died is noticed soon.
task_instance_heartbeat_sec = 2
task_instance_heartbeat_timeout = 30
task_instance_heartbeat_timeout_detection_interval = 2

[workers]
# The server may start after the first task.
execution_api_timeout = 60
execution_api_retries = 30
"""

# As `sync` of a project does: it says how it was called, and stops well.
SYNC = """#!/bin/sh
echo "${0##*/} $*" >> calls
"""
STATUS = {WORKS: "exit 0", FAILS: "exit 1"}
HANG = """trap 'echo stopped > ../words; exit 143' TERM
mkfifo pipe
echo hanging > ../hanging
while true; do read -r _ < pipe; done"""


@dataclass
class DagRun:
    """A finished run of a DAG: its state, the states of its tasks by project, and the log."""

    state: str
    tasks: dict[str, str]
    log: str


@dataclass
class Airflow:
    """Airflow with the DAGs, and the projects that they run."""

    home: Path
    projects: Path
    words: int  # a pipe
    variables: dict[str, str] = field(default_factory=dict)
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

    def run(self, dag: str, *projects: str) -> DagRun:
        """Run a DAG to its end."""
        name = f"run_{time.monotonic_ns()}"
        words = ("--run-id", name, "--conf", json.dumps({"projects": projects}))
        assert self.start("dags", "trigger", dag, *words).wait(PATIENCE) == 0
        log = line = ""
        while not ("Marking run " in line and f" {name}, " in line):
            log += (line := self.line(log))
            if (hanging := self.projects / "hanging").exists():
                hanging.unlink()
                self.stop()
        state, deadline = "running", time.monotonic() + PATIENCE
        while state == "running":  # the line comes just before the commit
            assert time.monotonic() < deadline, log
            ((state,),) = self.ask("select state from dag_run where run_id = ?", name)
        query = "select coalesce(rendered_map_index, task_id), state from task_instance"
        return DagRun(state, dict(self.ask(f"{query} where run_id = ?", name)), log)

    def line(self, log: str) -> str:
        """Take the next line of the scheduler."""
        try:
            return self.lines.get(timeout=PATIENCE)
        except Empty:
            pytest.fail(f"nothing happened for {PATIENCE} s after:\n{log}")

    def stop(self) -> None:
        """Stop the task that hangs, as somebody does in Airflow's page."""
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db", timeout=60)) as database:
            database.execute(
                "update task_instance set state = 'failed' where rendered_map_index = ?", [HANGS]
            )
            database.commit()

    def ask(self, query: str, *values: str) -> list[Any]:
        """Ask Airflow's database."""
        database = sqlite3.connect(self.home / "airflow.db", isolation_level=None)
        with contextlib.closing(database) as connection:
            return connection.execute(query, values).fetchall()

    def word(self) -> str:
        """Wait for what a task says: one that is stopped may say so after its run has ended."""
        assert select.select([self.words], [], [], PATIENCE)[0], f"not a word for {PATIENCE} s"
        return os.read(self.words, 100).decode().strip()

    def calls(self) -> dict[str, list[str]]:
        """Return what was called in each project since the last time."""
        files = sorted(self.projects.glob("*/calls"))
        found = {it.parent.name: it.read_text("utf-8").splitlines() for it in files}
        for file in files:
            file.unlink()
        return found


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Three projects, of which one fails and one hangs; the first has webhooks."""
    home, folder = tmp_path_factory.mktemp("airflow"), tmp_path_factory.mktemp("projects")
    shutil.copytree(REPOSITORY / "pipeline" / "airflow" / "dags", home / "dags")
    write(home / "airflow.cfg", CONFIG)
    # Bash reads it in a task, unless SHLVL says that it runs in another shell.
    write(home / ".bashrc", "exit 1\n")
    for name in (WORKS, FAILS, HANGS):
        write(folder / name / "sync", SYNC + STATUS.get(name, HANG))
        webhooks = str(name == WORKS).lower()
        write(folder / name / ".copier-answers.yml", f"a: 1\nwebhooks: {webhooks}\n")
    os.mkfifo(pipe := folder / "words")
    together = tmp_path_factory.mktemp("all")
    write(together / ".venv/bin/meltano", f'#!/bin/sh\necho "$*" >> {folder}/{WORKS}/calls\n')
    # Open on both sides, so that a task never waits for a reader.
    airflow = Airflow(home, folder, os.open(pipe, os.O_RDWR))
    airflow.variables = environment(airflow, together)
    for words in (("db", "migrate"), ("dags", "reserialize")):
        assert airflow.start(*words).wait(PATIENCE) == 0
    with airflow.services():
        yield airflow
    os.close(airflow.words)


def environment(airflow: Airflow, together: Path) -> dict[str, str]:
    """Return the variables of Airflow; without SHLVL, as under systemd."""
    private = ("AIRFLOW", "PUBLIC_JOBS_", "SHLVL")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        **inherited,
        "AIRFLOW_HOME": str(airflow.home),
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "HOME": str(airflow.home),
        "PUBLIC_JOBS_PROJECTS": str(airflow.projects),
        "PUBLIC_JOBS_ALL": str(together),
    }


def test_one_that_fails_holds_back_no_other_and_what_was_loaded_is_built(airflow: Airflow) -> None:
    """Each project runs once, because it tries again by itself; one that is stopped stops well."""
    run = airflow.run("public_jobs")

    assert run.state == "failed", run.log
    assert run.tasks == {
        "projects": "success",
        WORKS: "success",
        FAILS: "failed",
        HANGS: "failed",
        "build": "success",
        "loaded": "upstream_failed",
    }
    assert airflow.word() == "stopped"
    call = "sync --scheduled"
    assert airflow.calls() == {
        WORKS: [call, "invoke dbt-postgres:build"],
        FAILS: [call],
        HANGS: [call],
    }


def test_the_frequent_dag_runs_the_projects_with_webhooks(airflow: Airflow) -> None:
    run = airflow.run("public_jobs_news")

    assert run.state == "success", run.log
    assert airflow.calls() == {WORKS: ["sync --if-news", "invoke dbt-postgres:build"]}


def test_a_run_by_hand_may_name_projects_that_are_there(airflow: Airflow) -> None:
    assert airflow.run("public_jobs", WORKS).tasks[WORKS] == "success"
    assert list(airflow.calls()) == [WORKS]
    unknown = airflow.run("public_jobs", "halden")
    assert (unknown.state, unknown.tasks["projects"]) == ("failed", "failed")
