"""An empty warehouse of either kind, and an organisation that is loaded into it."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from e2e.pipeline import installed, run
from public_jobs_sandbox.meltano import uv_command
from support.portal import DuckDB, Portal, Postgres, Warehouse, opened
from typing_extensions import override

DBT = "dbt==2.0.0rc196"  # a candidate: releases download parts of themselves
LIBRARY = "bareduckdb==0.12.155"  # a package that has DuckDB as a library


class WithDbt2(DuckDB):
    """A file in which dbt 2 builds."""

    @override
    def dbt(self, *arguments: str) -> tuple[int, str]:
        library = self.folder / "library"
        if not library.exists():
            # It has no wheels for older Pythons, and none of its Python is used.
            wheel = ["--no-deps", "--python-version", "3.12", "--target", str(library), LIBRARY]
            subprocess.run([*uv_command(), "pip", "install", "-q", *wheel], check=True)
        shell = self.shell | {"LD_LIBRARY_PATH": str(library / "bareduckdb" / "_libs")}
        options = ("--no-use-colors", *arguments, "--target", "duckdb")
        ended = run(installed(DBT) / "dbt", *options, folder=self.project, **shell)
        return ended.status, ended.output


@pytest.fixture(scope="module")
def new_warehouse(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Warehouse]:
    """Make one, given its kind."""

    def make(kind: str) -> Warehouse:
        folder = tmp_path_factory.mktemp(kind)
        if kind == "PostgreSQL":
            return Postgres(folder, new_database())
        return DuckDB(folder) if kind == "DuckDB" else WithDbt2(folder)

    return make


@pytest.fixture(params=["DuckDB", "PostgreSQL"])
def warehouse(
    request: pytest.FixtureRequest, new_warehouse: Callable[[str], Warehouse]
) -> Warehouse:
    """An empty warehouse of each kind, one after the other."""
    return new_warehouse(request.param)


@pytest.fixture
def portal(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    """An organisation with twelve jobs, which is loaded into that warehouse."""
    with opened(warehouse, monkeypatch) as portal:
        yield portal
