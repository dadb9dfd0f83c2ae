"""A night of Airflow: its scheduler's loop, its API server and its workers, on real services."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from public_jobs_sandbox.state import Sandbox, SeenRequest

REPOSITORY = Path(__file__).parents[3]
DAGS = Path(__file__).parents[1] / "dags"

JOBS = 150
UNTOUCHED, STOPPED, REVOKED = ("halden_robotics", "lumen_books"), "osprey_health", "tern_logistics"
ORGANISATIONS = [UNTOUCHED[0], STOPPED, UNTOUCHED[1], REVOKED]
WEBHOOK_SECRET = "T0/B0/webhook-secret"  # noqa: S105  # opens nothing


@dataclass
class Night:
    """What came of one run of the DAG."""

    sandbox: Sandbox
    database: str
    home: Path
    project: Path
    output: str = ""
    alerts: list[Any] = field(default_factory=list)
    command_lines: list[str] = field(default_factory=list)
    environments: dict[str, dict[str, str]] = field(default_factory=dict)

    def details(self, organisation: str) -> list[SeenRequest]:
        """Every request for a detail, of all tries."""
        return [
            request
            for request in self.sandbox.requests
            if request.organisation == organisation and not request.query
        ]

    def log(self, organisation: str, attempt: int) -> str:
        """What Airflow shows as the log of one try."""
        folder = f"map_index={ORGANISATIONS.index(organisation)}"
        (file,) = self.home.glob(f"logs/**/{folder}/attempt={attempt}.log")
        return file.read_text(encoding="utf-8")

    def attempts(self) -> dict[str, int]:
        """How often each organisation was tried."""
        return {
            name: len(list(self.home.glob(f"logs/**/map_index={number}/attempt=*.log")))
            for number, name in enumerate(ORGANISATIONS)
        }

    def stop_task(self) -> None:
        """Send a task what Airflow sends when a user stops it or a worker is shut down."""
        running = {name: _meltano(name) for name in ORGANISATIONS}
        for name, process in running.items():
            if process:
                self.environments[name] = process.environ()
        self.command_lines = [_command_line(process) for process in psutil.process_iter()]
        stopped = running[STOPPED]
        task = stopped and stopped.parent()
        assert task
        task.send_signal(signal.SIGTERM)


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _meltano(organisation: str) -> psutil.Process | None:
    """Find the Meltano of an organisation, which is a child of its task."""
    for process in psutil.process_iter():
        if _command_line(process).endswith(f"--state-id public_jobs_{organisation}"):
            return process
    return None


@contextlib.contextmanager
def webhook(alerts: list[Any]) -> Iterator[str]:
    """Take alerts, at an address that is a secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            alerts.append((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{WEBHOOK_SECRET}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(command: list[str], variables: dict[str, str], cwd: Path | None = None) -> None:
    """Run a command that has to end well."""
    done = subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment(night: Night, base_url: str, webhook: str) -> dict[str, str]:
    """Return the variables of an Airflow that keeps its connections in variables."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = night.home / "organisations.yaml"
    names.write_text("".join(f"- {name}\n" for name in ORGANISATIONS), encoding="utf-8")
    keys = {name: night.sandbox.organisations[name].key for name in ORGANISATIONS}
    connections = {
        **{
            f"AIRFLOW_CONN_PUBLIC_JOBS_{name.upper()}": json.dumps(
                {"conn_type": "http", "host": base_url, "password": key}
            )
            for name, key in keys.items()
        },
        "AIRFLOW_CONN_PUBLIC_JOBS_WAREHOUSE": night.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_MELTANO": night.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_ALERT": json.dumps({"conn_type": "http", "password": webhook}),
    }
    private = ("AIRFLOW", "TAP_", "TARGET_", "MELTANO_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return {
        **inherited,
        **connections,
        "AIRFLOW_HOME": str(night.home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PARALLELISM": "4",
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
        "PYTHONDONTWRITEBYTECODE": "1",
        "no_proxy": "127.0.0.1",
        "NO_PROXY": "127.0.0.1",
    }


@contextlib.contextmanager
def api_server(variables: dict[str, str]) -> Iterator[None]:
    """Serve the API that tasks speak with, once it says that it is ready."""
    server = subprocess.Popen(
        [sys.executable, "-m", "airflow", "api-server", "--apps", "execution"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout
    said: list[str] = []
    for line in server.stdout:
        said.append(line)
        if "startup complete" in line:
            break
    else:
        pytest.fail("".join(said))
    # Somebody has to read on, else it stops when the pipe is full.
    reader = threading.Thread(target=server.stdout.read)
    reader.start()
    try:
        yield
    finally:
        server.terminate()
        server.wait()
        reader.join()
        server.stdout.close()
