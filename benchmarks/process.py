"""One command, run in a process of its own: how long it takes, and what it needs.

Run as a script, this file is the parent of the command. Linux counts the memory of a parent as its
child's until the child has become another program, so the parent has to be smaller than whatever
is measured, and the benchmarks themselves are not.
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
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KILOBYTES = 1 if sys.platform == "darwin" else 1024
"""What the operating system counts memory in, in bytes."""

PRIVATE = ("TAP_", "TARGET_", "MELTANO_", "PYTHON")
"""How the names of variables begin that a user's shell may have and no measured command gets."""


class Measured(NamedTuple):
    """What became of a command.

    Attributes:
        started: The monotonic clock when it was started.
        wall: Seconds until its end.
        cpu: Seconds of processor time, its children included.
        memory: Bytes that the largest of its processes had at most.
        status: Its exit status, negative for a signal; None if it was stopped for the time.
    """

    started: float
    wall: float
    cpu: float
    memory: int
    status: int | None


def run(
    command: Sequence[str], log: Path, timeout: float, environment: Mapping[str, str] | None = None
) -> Measured:
    """Run a command to its end.

    Args:
        command: The program and its arguments.
        log: Where its stdout and stderr go.
        timeout: Seconds after which it is killed, its children included.
        environment: Variables that it gets beside those of this process.
    """
    parent = [sys.executable, "-I", "-S", __file__, str(log), str(timeout), *command]
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(PRIVATE)}
    direct = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    told = subprocess.run(  # noqa: S603  # the commands are those of `clients.py`
        parent,
        env=inherited | direct | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return Measured(*json.loads(told.stdout))


def _measure(log: str, timeout: float, command: list[str]) -> Measured:
    stopped = threading.Event()
    with open(log, "ab") as output:  # noqa: PTH123  # pathlib is more than this process needs
        started = time.monotonic()
        process = subprocess.Popen(  # noqa: S603  # as above
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def stop() -> None:
        stopped.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(timeout, stop)
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        stop()
        raise
    finally:
        timer.cancel()
    return Measured(
        started,
        time.monotonic() - started,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss * KILOBYTES,
        None if stopped.is_set() else os.waitstatus_to_exitcode(status),
    )


if __name__ == "__main__":
    measured = _measure(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
    sys.stdout.write(json.dumps(measured))
