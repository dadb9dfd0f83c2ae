"""What an operator sets up once: a project, a PostgreSQL, an Airflow and a receiver of webhooks."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from installation import ORGANISATIONS, REPOSITORY, REVOKED, WEBHOOK_SECRET, Installation, run
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postgresql import postgresql
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = 150
# Airflow's own way to change what DAGs say, for all of one installation: no test waits for a retry.
POLICY = """from datetime import timedelta
def task_policy(task):
    task.retry_delay = timedelta(seconds=1)
"""
SERVICES = {
    "api-server": ["--apps", "execution"],
    "dag-processor": [],
    "scheduler": [],
}


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
    run([*uv_command(), "tool", "install", "meltano[postgres]~=4.4"], os.environ | tools)
    variables = {"MELTANO_DATABASE_URI": database.replace(":", "+psycopg:", 1)}
    for command in (["install"], ["invoke", "dbt-postgres:deps"]):
        run([str(folder / "bin" / "meltano"), *command], os.environ | variables, folder)
    receiver = "public-jobs-webhook"
    (folder / "bin" / receiver).symlink_to(Path(sys.executable).with_name(receiver))
    return folder


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a PostgreSQL of its own."""
    with postgresql() as address:
        yield address


@pytest.fixture(scope="session")
def airflow(
    project: Path, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Four organisations, of which one has a revoked key; the services of Airflow are running."""
    sandbox = Sandbox(Options(limited=False, latency=0.01))
    for seed, name in enumerate(ORGANISATIONS):
        sandbox.add_organisation(name, make_jobs(JOBS, seed=seed, organisation=name))
    sandbox.revoke(sandbox.organisations[REVOKED].key)
    home = tmp_path_factory.mktemp("airflow")
    shutil.copytree(REPOSITORY / "examples" / "airflow" / "dags", home / "dags")
    (home / "config").mkdir()
    (home / "config" / "airflow_local_settings.py").write_text(POLICY, "utf-8")
    installation = Installation(sandbox, database, home, project)
    with contextlib.ExitStack() as stack:
        base_url = stack.enter_context(serving(sandbox))
        address = stack.enter_context(alerts_into(installation.alerts))
        port = free_port()
        installation.variables = environment(installation, base_url, address, port)
        installation.list_organisations(ORGANISATIONS)
        installation.call("db", "migrate")
        for service, arguments in SERVICES.items():
            stack.enter_context(running(installation, service, arguments))
        installation.wait(lambda: installation.ask("select dag_id from dag"))
        yield installation


@contextlib.contextmanager
def running(installation: Installation, service: str, arguments: list[str]) -> Iterator[None]:
    """Run one service of Airflow."""
    with (installation.home / f"{service}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", service, *arguments],
            env=installation.variables,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])


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

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{WEBHOOK_SECRET}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def environment(
    installation: Installation, base_url: str, alerts: str, port: int
) -> dict[str, str]:
    """Return the variables of an Airflow that keeps its connections in variables."""
    private = ("AIRFLOW", "TAP_", "TARGET_", "MELTANO_", "PUBLIC_JOBS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    keys = {
        f"AIRFLOW_CONN_PUBLIC_JOBS_{name.upper()}": connection(
            base_url, installation.sandbox.organisations[name].key
        )
        for name in ORGANISATIONS
    }
    return {
        **inherited,
        **keys,
        "AIRFLOW_CONN_PUBLIC_JOBS_WAREHOUSE": installation.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_MELTANO": installation.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_CHANGES": installation.database,
        "AIRFLOW_CONN_PUBLIC_JOBS_ALERT": connection("", alerts),
        "AIRFLOW_HOME": str(installation.home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(installation.home / "dags"),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": str(len(ORGANISATIONS)),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",  # the computer may be busy
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        # How soon a worker that died is noticed.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "PUBLIC_JOBS_PROJECT": str(installation.project),
        "PUBLIC_JOBS_SCHEDULE": "0 0 29 2 *",  # not before 2028: the tests start all runs
        "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": "100000",
        "XDG_STATE_HOME": str(installation.home / "state"),  # Meltano keeps its logs there
        "PATH": f"{installation.project / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "no_proxy": "127.0.0.1",
        "NO_PROXY": "127.0.0.1",
    }


def connection(host: str, password: str) -> str:
    """Return the value of one of Airflow's variables for connections."""
    return json.dumps({"conn_type": "http", "host": host, "password": password})
