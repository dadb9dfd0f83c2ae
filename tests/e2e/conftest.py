"""A copy of the project, in which Meltano installs its plugins once for the tests of a file."""

from pathlib import Path

import pytest
from e2e.pipeline import Project


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copied(tmp_path_factory.mktemp("project"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests; those of a file with a Meltano project share a worker that installs it."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if "project" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(item.path.stem))
