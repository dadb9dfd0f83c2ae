"""Fixtures shared by all tests, their environment, and how many processes run them."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from fake_api import FakeApi
from fake_tap import Pipeline, first_run
from harness import reaching
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postgresql import postgresql
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

# Container images often forbid it, and then every process compiles its libraries anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What the shell of a developer, or a computer behind a proxy, may have set.
for _name in [it for it in os.environ if it.startswith(("TAP_PUBLIC_JOBS_", "PUBLIC_JOBS_"))]:
    del os.environ[_name]
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, [os.environ.get(_name), "localhost,127.0.0.1,::1"]))

# A busy machine may take a second for any example. All else stays as it is, also under CI.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: tests wait for servers and processes a third of the time."""
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return processors + 1


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m does not select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folders, and begin with the longest ones."""
    for item in items:
        folder = item.path.parent.name
        if folder in {"api", "limit", "receiver", "records", "sync"}:
            item.add_marker(pytest.mark.timeout(120))  # nothing takes long there
        if folder == "e2e":
            item.add_marker(pytest.mark.e2e)
    # Those that share a folder or a server.
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session", name="postgresql")
def postgresql_server() -> Iterator[str]:
    """The address of a real PostgreSQL server, the same for all tests.

    Nothing has to outlive the machine, and to wait for the disk takes most of a small commit.
    """
    import psycopg  # noqa: PLC0415

    with postgresql() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("alter system set fsync = off")
            connection.execute("select pg_reload_conf()")
        yield address


@pytest.fixture(scope="session")
def new_database(postgresql: str) -> Callable[[], str]:
    """Makes an empty database on it, and returns its address."""
    import psycopg  # noqa: PLC0415

    def make() -> str:
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute(f"create database {name}".encode())
        return postgresql.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture(scope="module")
def database(new_database: Callable[[], str]) -> str:
    """The address of a database for the tests of one file."""
    return new_database()


@pytest.fixture
def sandbox() -> Sandbox:
    """An API with 25 jobs and no rate limit."""
    return Sandbox.demo(jobs=25, options=Options(limited=False))


@pytest.fixture
def base_url(sandbox: Sandbox) -> Iterator[str]:
    """Where the sandbox is served."""
    with serving(sandbox) as url:
        yield url


@pytest.fixture
def config(sandbox: Sandbox, base_url: str) -> dict[str, Any]:
    """Settings that reach the sandbox in three pages, with a budget that no test exhausts.

    Four requests at once can do all that sixteen can, with a quarter of the connections.
    """
    return reaching(sandbox, base_url) | {"page_size": 10, "max_concurrent_requests": 4}


@pytest.fixture
def api() -> FakeApi:
    """Ten jobs, three on a page."""
    return FakeApi(page_size=3, jobs=10)


@pytest.fixture
def pipeline(api: FakeApi) -> Pipeline:
    """A pipeline after its first run."""
    pipeline = first_run(api)
    assert (pipeline.error, pipeline.activated) == ("", ["jobs", "job_details"])
    return pipeline


@pytest.fixture
def changes_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'changes.db'}"
