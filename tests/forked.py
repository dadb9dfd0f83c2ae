"""Runs of the tap that need not import it: one process has done so, and forks for each.

A run is a process of its own, with its own arguments, variables, pipes, signals and end.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class Run:
    """One process of the tap; what it has of `subprocess.Popen` means the same."""

    NAME = "tap-public-jobs"

    def __init__(self, line: socket.socket, stdout: int, stderr: int) -> None:
        self._line = line
        # Without a buffer, `select` knows whether there is an answer.
        self._answers = line.makefile("rb", buffering=0)
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None
        self.stdout = open(stdout, encoding="utf-8")  # noqa: SIM115
        self.stderr = open(stderr, encoding="utf-8")  # noqa: SIM115

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.NAME, timeout or 0)
            self.returncode = int(self._answers.readline())
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has ended, and nobody has asked how
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()
        self._answers.close()
        self._line.close()


class Tap:
    """The process that has imported the tap."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door

    def start(self, arguments: Sequence[str], variables: Mapping[str, str]) -> Run:
        line, far_end = socket.socketpair()
        (stdout, to_stdout), (stderr, to_stderr) = os.pipe(), os.pipe()
        passed = [far_end.detach(), to_stdout, to_stderr]
        socket.send_fds(self._door, [b"!"], passed)
        for descriptor in passed:
            os.close(descriptor)
        line.sendall(json.dumps([arguments, variables]).encode() + b"\n")
        return Run(line, stdout, stderr)


@contextmanager
def imported_tap() -> Iterator[Tap]:
    """Start the process that imports the tap, and end it."""
    door, far_end = socket.socketpair()
    command = [sys.executable, __file__, str(far_end.fileno())]
    with subprocess.Popen(
        command, pass_fds=[far_end.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
    ):
        far_end.close()
        with door:
            yield Tap(door)


def fork_for_each_run(door: socket.socket) -> None:
    """Return in a process that is to be the tap, once for each run that is asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes below
    while True:
        message, passed, _, _ = socket.recv_fds(door, 1, 3)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            door.close()
            become_the_tap(*passed)
            return
        for descriptor in passed:
            os.close(descriptor)


def become_the_tap(line: int, stdout: int, stderr: int) -> None:
    """Return in a child that is to be the tap; here, report its number and its end."""
    with socket.socket(fileno=line) as caller:
        with caller.makefile("rb") as request:
            arguments, variables = json.loads(request.readline())
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup`
        child = os.fork()
        if child:
            os.close(stdout)
            os.close(stderr)
            caller.sendall(b"%d\n" % child)
            _, status = os.waitpid(child, 0)
            caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
    for source, target in ((stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        os.close(source)
    sys.argv = [Run.NAME, *arguments]
    os.environ.clear()
    os.environ.update(variables)


if __name__ == "__main__":
    from tap_public_jobs.tap import TapPublicJobs

    gc.freeze()  # else the end of each run takes longer than the run, over what was imported
    fork_for_each_run(socket.socket(fileno=int(sys.argv[1])))
    TapPublicJobs.cli()
