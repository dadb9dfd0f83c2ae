"""A copy of the project, in which Meltano installs its plugins once for all tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from e2e.pipeline import Project

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy, so that the user's own warehouse and state are left alone."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("meltano.yml", ".python-version", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)
    for package in ("tap_public_jobs", "sandbox", "dashboard"):
        shutil.copytree(
            REPOSITORY / package,
            folder / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return Project(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests, and give those with a Meltano project to one worker, which installs it."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if "project" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("meltano"))
