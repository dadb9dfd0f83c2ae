"""How many processes run the tests, and what Python keeps for them and the processes they start."""

import os
import sys

import pytest

# Container images often forbid it, and then every process compiles its libraries anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: tests wait for servers and processes a third of the time."""
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return processors + 1
