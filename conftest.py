"""The environment of all tests and of the processes that they start, and how many run them."""

import os
import sys

# Container images often forbid it, and then every process compiles its libraries anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What the shell of a developer, or a computer behind a proxy, may have set.
for _name in [it for it in os.environ if it.startswith(("TAP_PUBLIC_JOBS_", "PUBLIC_JOBS_"))]:
    del os.environ[_name]
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, [os.environ.get(_name), "localhost,127.0.0.1,::1"]))


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: tests wait for servers and processes a third of the time."""
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return processors + 1
