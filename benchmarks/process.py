"""Runs one command in a process of its own, and measures the time and memory it takes.

Run as a script, this file is the parent of the command.
Linux counts the memory of a parent as its child's until the child has become another program.
So the parent must be smaller than what is measured, and the benchmarks are not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KILOBYTES = 1 if sys.platform == "darwin" else 1024
"""The unit in which the operating system counts memory, in bytes."""

PRIVATE = ("TAP_", "TARGET_", "MELTANO_", "PYTHON")
"""Prefixes of variables that a user's shell may have and no measured command gets."""


class Measured(NamedTuple):
    """What a command took.

    Attributes:
        wall: Seconds until its end.
        cpu: Seconds of processor time, its children included.
        memory: Bytes, at the peak, of the largest of its processes.
        status: Its exit status, negative for a signal; None if it ran out of time.
    """

    wall: float
    cpu: float
    memory: int
    status: int | None


def run(command: Sequence[str], stdout: Path, stderr: Path, timeout: float) -> Measured:
    """Run a command to its end, or kill it and its children after `timeout` seconds."""
    options = [str(stdout), str(stderr), str(timeout)]
    parent = [sys.executable, "-I", "-S", __file__, *options, *command]
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(PRIVATE)}
    direct = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    ended = subprocess.run(  # noqa: S603  # the commands are those of `clients.py`
        parent,
        env=inherited | direct,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return Measured(*json.loads(ended.stdout))


def _measure(stdout: str, stderr: str, timeout: str, *command: str) -> Measured:
    stopped = threading.Event()
    with open(stdout, "wb") as out, open(stderr, "ab") as err:  # noqa: PTH123  # pathlib is large
        started = time.monotonic()
        process = subprocess.Popen(  # noqa: S603  # as above
            command, stdout=out, stderr=err, start_new_session=True
        )

    def stop() -> None:
        stopped.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(float(timeout), stop)
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        stop()
        raise
    finally:
        timer.cancel()
    wall, cpu = time.monotonic() - started, used.ru_utime + used.ru_stime
    exit_status = None if stopped.is_set() else os.waitstatus_to_exitcode(status)
    return Measured(wall, cpu, used.ru_maxrss * KILOBYTES, exit_status)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(*sys.argv[1:])))
