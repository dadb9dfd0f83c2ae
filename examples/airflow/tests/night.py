"""A night of Airflow: its scheduler's loop, its API server and its workers, on real services."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from public_jobs_sandbox.state import Sandbox, SeenRequest

Alert = tuple[str, str]
"""The path of a webhook and the text sent to it."""

REPOSITORY = Path(__file__).parents[3]
DAGS = Path(__file__).parents[1] / "dags"

JOBS = 150
UNTOUCHED, STOPPED = ("halden_robotics", "lumen_books"), "osprey_health"
REVOKED, KILLED = "tern_logistics", "alder_energy"
LOADED = [*UNTOUCHED, STOPPED]
ORGANISATIONS = [UNTOUCHED[0], STOPPED, UNTOUCHED[1], REVOKED, KILLED]
WEBHOOK_SECRET = "T0/B0/webhook-secret"  # noqa: S105  # opens nothing

WEBHOOK_COMMAND = Path(sys.executable).with_name("public-jobs-webhook")


@dataclass
class Night:
    """What came of the runs of the DAGs."""

    sandbox: Sandbox
    database: str
    home: Path
    project: Path
    variables: dict[str, str] = field(default_factory=dict)
    output: str = ""
    alerts: list[Alert] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    logs: dict[str, list[str]] = field(default_factory=dict)
    command_lines: list[str] = field(default_factory=list)
    environments: dict[str, dict[str, str]] = field(default_factory=dict)
    file_modes: dict[str, int] = field(default_factory=dict)
    killed: list[int] = field(default_factory=list)

    def keep(self) -> None:
        """Keep what the night left, because later runs add to it."""
        self.requests = list(self.sandbox.requests)
        self.logs = {
            name: [
                file.read_text(encoding="utf-8")
                for file in sorted(self.home.glob(f"logs/**/map_index={number}/attempt=*.log"))
            ]
            for number, name in enumerate(ORGANISATIONS)
        }
        self.alerts = self.alerts.copy()

    def details(self, organisation: str) -> list[SeenRequest]:
        """Every request for a detail, of all tries."""
        return [
            request
            for request in self.requests or self.sandbox.requests
            if request.organisation == organisation and not request.query
        ]

    def changes_url(self, organisation: str) -> str:
        """Where the change log of an organisation is, if it has one."""
        return f"sqlite:///{self.home / organisation}.changes.db"

    def run_folder(self, organisation: str) -> Path:
        """Where Meltano keeps what it needs for a run, the key among it."""
        return self.project / ".meltano" / "run" / "elt" / f"public_jobs_{organisation}"

    def run_dag(
        self,
        dag_id: str,
        parameters: dict[str, Any] | None = None,
        variables: dict[str, str] | None = None,
    ) -> str:
        """Run a DAG as Airflow's scheduler does, and return what was printed."""
        airflow = [sys.executable, "-m", "airflow", "dags", "test", "--use-executor"]
        done = subprocess.run(
            [*airflow, "--conf", json.dumps(parameters or {}), dag_id],
            env=self.variables | (variables or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def stop_task(self) -> None:
        """Send a task what Airflow sends when a user stops it or a worker is shut down."""
        running = {name: self._meltano(name) for name in ORGANISATIONS}
        for name, process in running.items():
            if process and (variables := _environ(process)):
                self.environments[name] = variables
        self.command_lines = [_command_line(process) for process in psutil.process_iter()]
        self.file_modes = {
            file.name: file.stat().st_mode & 0o777
            for file in self.run_folder(STOPPED).rglob("*")
            if file.is_file()
        }
        stopped = running[STOPPED]
        assert stopped
        (tap,) = [it for it in stopped.children(recursive=True) if _is_tap(it)]
        task = stopped.parent()
        assert task
        task.send_signal(signal.SIGTERM)
        # The API answers nothing until then, else the tap could be done before it is stopped.
        tap.wait(timeout=60)

    def kill_meltano(self) -> None:
        """Do what a kernel does that has no memory left."""
        process = self._meltano(KILLED)
        assert process
        self.killed.append(process.pid)
        process.kill()

    def _meltano(self, organisation: str) -> psutil.Process | None:
        """Find the Meltano of an organisation, which is a child of its task.

        Another night on this computer may have one of the same organisation.
        """
        for process in psutil.process_iter():
            line = _command_line(process)
            if line.endswith(f"--state-id public_jobs_{organisation}") and (
                f"{self.project}/bin/meltano" in line
            ):
                return process
        return None


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _environ(process: psutil.Process) -> dict[str, str]:
    """Return the variables of a process, or none if it has ended since it was found."""
    try:
        return dict(process.environ())
    except psutil.Error:
        return {}


def _is_tap(process: psutil.Process) -> bool:
    return "/tap-public-jobs --config " in _command_line(process)


@contextlib.contextmanager
def webhook(take: Callable[[Alert], object], status: int = 200) -> Iterator[str]:
    """Take alerts, at an address that is a secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            take((self.path, json.loads(body)["text"]))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        # In capitals, so that no two ways to write it are the same text: what hides secrets in logs
        # compares texts.
        yield f"HTTP://127.0.0.1:{server.server_port}/{WEBHOOK_SECRET}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(command: list[str], variables: dict[str, str], cwd: Path | None = None) -> str:
    """Run a command that has to end well, and return its output."""
    done = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_code(code: str, folder: Path) -> list[str]:
    """Run lines of Python in an Airflow of their own, beside the DAGs; return what they print."""
    variables = {"AIRFLOW_HOME": str(folder), "PYTHONPATH": str(DAGS)}
    return run([sys.executable, "-c", code], os.environ | variables).splitlines()


def connection(host: str, password: str, **extra: str) -> str:
    """Return the value of one of Airflow's variables for connections."""
    values = {"conn_type": "http", "host": host, "password": password, "extra": extra}
    return json.dumps(values)


def organisation_connections(night: Night, base_url: str) -> dict[str, str]:
    """Return the variables with the keys of all organisations."""
    return {
        f"AIRFLOW_CONN_PUBLIC_JOBS_{name.upper()}": connection(
            base_url,
            night.sandbox.organisations[name].key,
            **({"changes_url": night.changes_url(name)} if name in UNTOUCHED else {}),
        )
        for name in ORGANISATIONS
    }


def environment(night: Night, base_url: str, webhook: str, port: int) -> dict[str, str]:
    """Return the variables of an Airflow that keeps its connections in variables."""
    names = night.home / "organisations.yaml"
    names.write_text("".join(f"- {name}\n" for name in ORGANISATIONS), encoding="utf-8")
    private = ("AIRFLOW", "TAP_", "TARGET_", "MELTANO_", "PUBLIC_JOBS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return {
        **inherited,
        **organisation_connections(night, base_url),
        "AIRFLOW_CONN_PUBLIC_JOBS_WAREHOUSE": night.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_MELTANO": night.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_ALERT": connection("", webhook),
        "AIRFLOW_HOME": str(night.home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PARALLELISM": str(len(ORGANISATIONS)),
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "PUBLIC_JOBS_PROJECT": str(night.project),
        "PUBLIC_JOBS_ORGANISATIONS": str(names),
        "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": "100000",
        "XDG_STATE_HOME": str(night.home / "state"),  # Meltano keeps its logs there
        "PATH": f"{night.project / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "no_proxy": "127.0.0.1",
        "NO_PROXY": "127.0.0.1",
    }


@contextlib.contextmanager
def service(command: list[str], variables: dict[str, str], ready: str) -> Iterator[list[str]]:
    """Run a service; once it says that it is ready, yield the lines that it has printed so far."""
    server = subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout
    said: list[str] = []
    for line in server.stdout:
        said.append(line)
        if ready in line:
            break
    else:
        pytest.fail("".join(said))
    # Somebody has to read on, else it stops when the pipe is full.
    reader = threading.Thread(target=said.extend, args=[server.stdout])
    reader.start()
    try:
        yield said
    finally:
        server.terminate()
        server.wait()
        reader.join()
        server.stdout.close()


def ask_airflow(night: Night, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(night.home / "airflow.db")) as connection:
        return connection.execute(query).fetchall()


def notify(url: str, public_id: str) -> str:
    """Send a webhook to a receiver, and return the URL of its change log."""
    token = secrets.token_hex(32)
    command = [str(WEBHOOK_COMMAND), "serve", "--port", "0"]
    variables = {"PUBLIC_JOBS_WEBHOOK_TOKEN": token, "PUBLIC_JOBS_WEBHOOK_CHANGES_URL": url}
    with service(command, os.environ | variables, "http://127.0.0.1:") as said:
        port = re.findall(r"http://127\.0\.0\.1:(\d+)", said[-1])[0]
        address = f"http://127.0.0.1:{port}/hooks/{token}"
        httpx.post(address, json={"publicId": public_id}, trust_env=False).raise_for_status()
    return url
