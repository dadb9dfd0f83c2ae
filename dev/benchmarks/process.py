"""Runs one command in its own process, and measures the time and memory it takes.

Run as a script, this file is the parent of the command.
Linux counts the memory of a parent as its child's until the child has become another program.
So the parent must be smaller than the command, and the benchmarks are not.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# The operating system counts memory in bytes, or in units of 1,024 bytes.
PER_MEGABYTE = 1_000_000 if sys.platform == "darwin" else 1_000_000 / 1024

# Prefixes of variables that a user's shell may have, and that no measured command gets.
PRIVATE = ("TAP_", "TARGET_", "MELTANO_", "PYTHON")


class Measured(NamedTuple):
    """What a command took.

    Attributes:
        wall: Seconds until its end.
        cpu: Seconds of processor time, its children included.
        megabytes: Memory, at the peak, of the largest of its processes.
        status: Its exit status, negative for a signal; None if it ran out of time.
    """

    wall: float
    cpu: float
    megabytes: float
    status: int | None


def run(command: Sequence[str], stdout: Path, stderr: Path, timeout: float = 600.0) -> Measured:
    """Run a command to its end, or kill it and its children after `timeout` seconds."""
    options = [str(stdout), str(stderr), str(timeout)]
    parent = [sys.executable, "-I", "-S", __file__, *options, *command]
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(PRIVATE)}
    direct = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    # The commands are those of the benchmarks.
    printed = subprocess.check_output(parent, env=inherited | direct, stdin=subprocess.DEVNULL)  # noqa: S603
    return Measured(*json.loads(printed))


def _measure(stdout: str, stderr: str, timeout: str, *command: str) -> Measured:
    with open(stdout, "wb") as out, open(stderr, "ab") as err:  # noqa: PTH123  # pathlib is large
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)  # noqa: S603

    def stop(*_: object) -> None:
        os.killpg(process.pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, float(timeout))
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        stop()
        raise
    in_time = signal.setitimer(signal.ITIMER_REAL, 0)[0] > 0
    wall, cpu = time.monotonic() - started, used.ru_utime + used.ru_stime
    exit_status = os.waitstatus_to_exitcode(status) if in_time else None
    return Measured(wall, cpu, used.ru_maxrss / PER_MEGABYTE, exit_status)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(*sys.argv[1:])))
