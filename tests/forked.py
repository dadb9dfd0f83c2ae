"""Runs of Python programs that need not import anything: one process has done so, and forks.

A run is a process of its own, with its own arguments, variables, pipes, signals and end.
Tests that start the tap or a target this way take less than half as long as with new processes.
A program may belong to another Python than the tests, so this file imports nothing of theirs.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Self


class Child:
    """One process of a program; what it has of `subprocess.Popen` means the same.

    Args:
        answers: From here come its number and, when it has ended, its status.
        stdout: A named pipe, or a file.
        stderr: A named pipe.
    """

    def __init__(self, answers: IO[str], stdout: Path, stderr: Path) -> None:
        self._answers = answers
        self.pid = int(answers.readline())
        self.returncode: int | None = None
        self.stdout, self.stderr = stdout.open(encoding="utf-8"), stderr.open(encoding="utf-8")

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
        self._server = subprocess.Popen(
            [python, __file__, script, *imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(
        self,
        arguments: Sequence[str | Path],
        variables: Mapping[str, str],
        *,
        stdout: IO[Any] | None = None,
    ) -> Child:
        """Start a run with pipes for its output, unless that goes to a file."""
        with TemporaryDirectory() as folder:
            pipes = Path(folder, "stdout"), Path(folder, "stderr")
            for pipe in pipes:
                os.mkfifo(pipe)
            output = Path(stdout.name) if stdout else pipes[0], pipes[1]
            return Child(self._ask(arguments, variables, ".", Path(os.devnull), *output), *output)

    def run(
        self,
        arguments: Sequence[str | Path],
        variables: Mapping[str, str],
        *,
        folder: Path | str = ".",
        text: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end with some text as its input."""
        with TemporaryDirectory() as name:
            stdin, stdout, stderr = (Path(name, it) for it in ("stdin", "stdout", "stderr"))
            stdin.write_text(text, "utf-8")
            answers = self._ask(arguments, variables, folder, stdin, stdout, stderr)
            answers.readline()  # its number
            status = int(answers.readline())
            output = stdout.read_text("utf-8"), stderr.read_text("utf-8")
        return subprocess.CompletedProcess([self._name, *arguments], status, *output)

    def _ask(
        self,
        arguments: Sequence[str | Path],
        variables: Mapping[str, str],
        folder: Path | str,
        *files: Path,
    ) -> IO[str]:
        """Ask for a run, with files for its input, output and errors; returns where it answers."""
        call = [*map(str, arguments)], {**variables}, str(Path(folder).resolve()), *map(str, files)
        print(json.dumps(call), file=self._server.stdin, flush=True)
        assert self._server.stdout
        return self._server.stdout

    def close(self) -> None:
        """End the process that forks."""
        with self._server as server:
            server.kill()


def become(script: str, arguments: list[str], variables: dict[str, str], folder: str) -> None:
    """Make this process look as if it had been started for a run."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup`
    os.chdir(folder)
    sys.argv = [script, *arguments]
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()  # which the process above has done with other variables


def main(script: str, *imports: str) -> None:
    """Import what a script needs; for each line, run it in a child, and say how that ended."""
    for module in imports:
        importlib.import_module(module)
    gc.freeze()  # else the end of each run takes longer than the run, over what was imported
    for line in sys.stdin:
        *call, stdin, stdout, stderr = json.loads(line)
        child = os.fork()
        if not child:
            for number, file in enumerate((stdin, stdout, stderr)):
                with open(file, "wb" if number else "rb") as opened:  # noqa: PTH123
                    os.dup2(opened.fileno(), number)
            become(script, *call)
            runpy.run_path(script, run_name="__main__")
            return
        os.write(1, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(*sys.argv[1:])
