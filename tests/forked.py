"""Runs of Python programs that need not import anything: one process has done so, and forks.

A run is a process of its own, with its own arguments, variables, pipes, signals and end.
Tests that start the tap or a target this way take less than half as long as with new processes.
A program may belong to another Python than the tests, so this file imports nothing of theirs.
"""

import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Self


class Run:
    """One process of a program; what it has of `subprocess.Popen` means the same.

    Attributes:
        stdout: Its output; nothing if that goes to a file.
        stderr: The same.
    """

    def __init__(self, line: socket.socket, stdout: int | None, stderr: int | None) -> None:
        self._line = line
        self._answers = line.makefile("rb")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None
        pipes: list[IO[str]] = [
            io.StringIO() if pipe is None else os.fdopen(pipe, encoding="utf-8")
            for pipe in (stdout, stderr)
        ]
        self.stdout, self.stderr = pipes

    def wait(self) -> int:
        if self.returncode is None:
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


class Program:
    """A script, and a process that has imported what takes it time.

    Args:
        script: Its path.
        imports: Modules to import once for all runs; none that starts threads.
        python: What runs it; by default the Python beside it, if there is one.
    """

    def __init__(self, script: Path, *imports: str, python: Path | None = None) -> None:
        own = python or script.with_name("python")
        python = own if own.exists() else Path(sys.executable)
        self._name = script.name
        self._door, far_end = socket.socketpair()
        self._server = subprocess.Popen(
            [python, __file__, str(far_end.fileno()), script, *imports],
            pass_fds=[far_end.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        far_end.close()

    def start(
        self,
        arguments: Sequence[str | Path],
        variables: Mapping[str, str],
        *,
        folder: Path | str = ".",
        stdin: IO[Any] | None = None,
        stdout: IO[Any] | None = None,
        stderr: IO[Any] | None = None,
    ) -> Run:
        """Start a run, with pipes for its output unless there are files."""
        line, far_end = socket.socketpair()
        passed, pipes = [far_end.detach(), _opened(stdin)], []
        for file in (stdout, stderr):
            pipe, end = (None, os.dup(file.fileno())) if file else os.pipe()
            pipes.append(pipe)
            passed.append(end)
        socket.send_fds(self._door, [b"!"], passed)
        for descriptor in passed:
            os.close(descriptor)
        call = [[*map(str, arguments)], {**variables}, str(Path(folder).resolve())]
        line.sendall(json.dumps(call).encode() + b"\n")
        return Run(line, *pipes)

    def run(
        self,
        arguments: Sequence[str | Path],
        variables: Mapping[str, str],
        *,
        folder: Path | str = ".",
        text: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end with some text as its input."""
        temporary = partial(tempfile.TemporaryFile, "w+", encoding="utf-8")
        with temporary() as stdin, temporary() as stdout, temporary() as stderr:
            stdin.write(text)
            stdin.seek(0)
            files = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
            with self.start(arguments, variables, folder=folder, **files) as run:
                status = run.wait()
            stdout.seek(0)
            stderr.seek(0)
            command = [self._name, *arguments]
            return subprocess.CompletedProcess(command, status, stdout.read(), stderr.read())

    def close(self) -> None:
        """End the process that forks."""
        self._door.close()
        self._server.wait()


def _opened(file: IO[Any] | None) -> int:
    return os.dup(file.fileno()) if file else os.open(os.devnull, os.O_RDONLY)


def fork_for_each_run(door: socket.socket, script: str) -> None:
    """Return in a process that is to be the program, once for each run that is asked for."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes below
    while True:
        message, passed, _, _ = socket.recv_fds(door, 1, 4)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            door.close()
            become_the_program(script, *passed)
            return
        for descriptor in passed:
            os.close(descriptor)


def become_the_program(script: str, line: int, *files: int) -> None:
    """Return in a child that is to be the program; here, report its number and its end."""
    with socket.socket(fileno=line) as caller:
        with caller.makefile("rb") as request:
            arguments, variables, folder = json.loads(request.readline())
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup`
        child = os.fork()
        if child:
            for descriptor in files:
                os.close(descriptor)
            caller.sendall(b"%d\n" % child)
            _, status = os.waitpid(child, 0)
            caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    sys.argv = [script, *arguments]
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()  # which the process above has done with other variables


def main(descriptor: str, script: str, *imports: str) -> None:
    """Import what a script needs, and run it in each child."""
    for module in imports:
        importlib.import_module(module)
    gc.freeze()  # else the end of each run takes longer than the run, over what was imported
    fork_for_each_run(socket.socket(fileno=int(descriptor)), script)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
