"""The SDK's standard tests on the sandbox, and the catalog that they see."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import catalog_of, demo
from singer_sdk.testing import SuiteConfig, get_tap_test_class

from tap_public_jobs.tap import TapPublicJobs

SNAPSHOT = Path(__file__).parent / "snapshots" / "catalog.json"

# The suite is built on import and runs later, so its address is filled in when the server is up.
CONFIG: dict[str, Any] = {
    "api_key": "filled-in-by-the-fixture",
    "base_url": "https://jobs.example.com",
}


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    with demo(30) as (sandbox, config):
        # One that does not fit, so that the suite sees `additionalFields` of both streams filled.
        sandbox.edit(sandbox.organisation.published()[0].job["publicId"], maxSalary="negotiable")
        CONFIG.update(config)
        yield


# In a first run no job has a time after which it was opened, and the suite warns of columns that
# hold nothing but null.
TestStandardSuite = pytest.mark.filterwarnings("ignore:No records were available to test")(
    get_tap_test_class(
        TapPublicJobs,
        config=CONFIG,
        parse_env_config=False,
        suite_config=SuiteConfig(max_records_limit=10),
    )
)


def test_the_catalog_is_pinned() -> None:
    """A change of the catalog changes the tables of every user: make it on purpose.

    Write the new one with `uv run tap-public-jobs --discover > tests/snapshots/catalog.json`.
    """
    assert catalog_of(CONFIG) == json.loads(SNAPSHOT.read_text(encoding="utf-8"))
