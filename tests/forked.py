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
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, Self


class Run:
    """One process of a program; what it has of `subprocess.Popen` means the same.

    Attributes:
        stdout: Its output; nothing if that goes to a file.
        stderr: The same.
    """

    def __init__(self, answers: IO[bytes], stdout: IO[str], stderr: IO[str]) -> None:
        self._answers = answers
        self.pid = int(answers.readline())
        self.returncode: int | None = None
        self.stdout, self.stderr = stdout, stderr

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


class Program:
    """A script, and a process that has imported what takes it time; one run at a time.

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
        self._answers = self._door.makefile("rb")
        with far_end:
            self._server = subprocess.Popen(
                [python, __file__, str(far_end.fileno()), script, *imports],
                pass_fds=[far_end.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

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
        call = [[*map(str, arguments)], {**variables}, str(Path(folder).resolve())]
        output: list[IO[str]] = []
        with ExitStack() as passed:
            files = [stdin or passed.enter_context(open(os.devnull, "rb"))]  # noqa: PTH123
            for file in (stdout, stderr):
                if file:
                    output.append(io.StringIO())
                    files.append(file)
                else:
                    pipe, end = os.pipe()
                    output.append(os.fdopen(pipe, encoding="utf-8"))
                    files.append(passed.enter_context(os.fdopen(end, "wb")))
            socket.send_fds(self._door, [b"!"], [file.fileno() for file in files])
            self._door.sendall(json.dumps(call).encode() + b"\n")
        return Run(self._answers, *output)

    def run(
        self,
        arguments: Sequence[str | Path],
        variables: Mapping[str, str],
        *,
        folder: Path | str = ".",
        text: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end with some text as its input."""
        with ExitStack() as files:
            stdin, stdout, stderr = (
                files.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
                for _ in range(3)
            )
            stdin.write(text)
            stdin.seek(0)
            with self.start(
                arguments, variables, folder=folder, stdin=stdin, stdout=stdout, stderr=stderr
            ) as run:
                status = run.wait()
            stdout.seek(0)
            stderr.seek(0)
            command = [self._name, *arguments]
            return subprocess.CompletedProcess(command, status, stdout.read(), stderr.read())

    def close(self) -> None:
        """End the process that forks."""
        self._answers.close()
        self._door.close()
        self._server.kill()
        self._server.wait()


def serve(door: socket.socket, script: str) -> None:
    """Fork for each run that is asked for, and say its number and how it ended.

    Returns in each child, which then is to be the program.
    """
    with door.makefile("rb") as calls:
        while True:
            message, files, _, _ = socket.recv_fds(door, 1, 3)
            if not message:
                sys.exit()
            arguments, variables, folder = json.loads(calls.readline())
            child = os.fork()
            if not child:
                break
            for file in files:
                os.close(file)
            door.sendall(b"%d\n" % child)
            _, status = os.waitpid(child, 0)
            door.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup`
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
    with socket.socket(fileno=int(descriptor)) as door:
        serve(door, script)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
