"""An Airflow with the DAG: what tests do to it and ask it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import psutil
import psycopg
from psycopg.rows import dict_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import Sandbox, SeenRequest

T = TypeVar("T")
Row = dict[str, Any]

REPOSITORY = Path(__file__).parents[3]
LOADED = ["halden_robotics", "lumen_books", "osprey_health"]
STOPPED, REVOKED = "osprey_health", "tern_logistics"
ORGANISATIONS = [*LOADED, REVOKED]
WEBHOOK_SECRET = "T0/B0/webhook-secret"  # noqa: S105  # opens nothing


@dataclass
class Installation:
    """Airflow's services, the API that the tap reads, and the warehouse."""

    sandbox: Sandbox
    database: str
    home: Path
    project: Path
    variables: dict[str, str] = field(default_factory=dict)
    alerts: list[str] = field(default_factory=list)

    def list_organisations(self, names: list[str]) -> None:
        """Write organisations.yaml."""
        (self.home / "dags" / "organisations.yaml").write_text(json.dumps(names), "utf-8")

    def call(self, *arguments: str) -> str:
        """Run a command of Airflow."""
        return run([sys.executable, "-m", "airflow", *arguments], self.variables)

    def ask(self, query: str, *values: str) -> list[Any]:
        """Ask Airflow's database."""
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db")) as connection:
            return connection.execute(query, values).fetchall()

    def wait(self, look: Callable[[], T]) -> T:
        """Return the first answer that is not empty, within five minutes."""
        for _ in range(600):
            with contextlib.suppress(sqlite3.OperationalError):  # another process is writing
                if found := look():
                    return found
            time.sleep(0.5)
        raise AssertionError(self.logs()[-20_000:])

    def trigger(self, run_id: str, **parameters: Any) -> None:
        conf = json.dumps(parameters)
        self.call("dags", "trigger", "public_jobs", "--run-id", run_id, "--conf", conf)

    def finish(self, run_id: str) -> str:
        """Wait for the end of a run, and return its state."""
        query = "select state from dag_run where run_id = ? and state in ('success', 'failed')"
        ((state,),) = self.wait(lambda: self.ask(query, run_id))
        return str(state)

    def tasks(self, run_id: str) -> dict[str, str]:
        """Return the states of a run's tasks, of loads by organisation."""
        query = "select coalesce(rendered_map_index, task_id), state from task_instance"
        return dict(self.ask(f"{query} where run_id = ?", run_id))

    def logs(self, pattern: str = "**/*.log") -> str:
        files = sorted(self.home.glob(f"logs/{pattern}"), key=lambda file: file.stat().st_mtime)
        return "\n".join(file.read_text("utf-8", errors="replace") for file in files)

    def details(self, requests: list[SeenRequest], organisation: str) -> list[str]:
        """Return the path of every request for a detail."""
        return [it.path for it in requests if it.organisation == organisation and not it.query]

    def load_process(self, organisation: str) -> psutil.Process:
        """Find the script that runs Meltano for an organisation; its parent is the task."""
        script, state_id = f"{self.project}/docker-entrypoint.sh", f"public_jobs_{organisation}"
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has ended
                if {script, state_id} <= set(process.cmdline()):
                    return process
        raise AssertionError(organisation)

    def rows(self, table: str, columns: str) -> list[Row]:
        """Return what the warehouse has in some columns of a table."""
        query = f"select {columns} from {table} order by public_id"  # noqa: S608
        with psycopg.connect(self.database, row_factory=dict_row) as connection:
            return connection.execute(query.encode()).fetchall()

    def published(self, organisation: str) -> list[Job]:
        """Return the truth, with numbers as exact as PostgreSQL keeps them."""
        jobs = [it.job for it in self.sandbox.organisations[organisation].published()]
        exact: list[Job] = json.loads(json.dumps(jobs), parse_float=Decimal)
        return sorted(exact, key=lambda job: str(job["publicId"]))

    def receive(self, organisation: str, public_id: str) -> None:
        """Send a webhook to a receiver that knows every organisation."""
        tokens = {name: secrets.token_hex(32) for name in LOADED}
        variables = {
            "PUBLIC_JOBS_WEBHOOK_TOKEN": "\n".join(" ".join(it) for it in tokens.items()),
            "PUBLIC_JOBS_WEBHOOK_CHANGES_URL": self.database.replace(":", "+psycopg:", 1),
        }
        with subprocess.Popen(
            [self.project / "bin" / "public-jobs-webhook", "serve", "--port", "0"],
            env=os.environ | variables,
            stderr=subprocess.PIPE,
            text=True,
        ) as receiver:
            try:
                assert receiver.stderr
                started = next(line for line in receiver.stderr if "running on" in line)
                (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)", started)
                url = f"http://127.0.0.1:{port}/hooks/{tokens[organisation]}"
                httpx.post(url, json={"publicId": public_id}, trust_env=False).raise_for_status()
            finally:
                receiver.terminate()


def run(command: list[str], variables: dict[str, str], cwd: Path | None = None) -> str:
    """Run a command that has to end well, and return its output."""
    done = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
