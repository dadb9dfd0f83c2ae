"""Starts a Python program often and quickly: imports it once, and forks for each call.

Run by the Python that the program is installed for, so it imports nothing of this project.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from functools import reduce
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Program:
    """A program that runs each call in its own process, one at a time.

    Args:
        python: The Python that it is installed for.
        function: Its entry, `module:name`.
        path: A folder to import from.
        imports: Modules to import before the fork; none that starts threads.
    """

    def __init__(
        self,
        python: Path,
        function: str,
        path: Path | None = None,
        imports: Sequence[str] = (),
    ) -> None:
        self._server = subprocess.Popen(
            [python, __file__, function, *imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ({"PYTHONPATH": str(path)} if path else {}),
        )
        self.pids: SimpleQueue[int] = SimpleQueue()
        """Of the calls so far, until they are taken."""

    def call(self, *arguments: str | Path, folder: Path, **variables: str) -> int:
        """Run it in a folder, with `stdin`, `stdout` and `stderr` there; returns its exit status.

        Args:
            arguments: Its command line.
            folder: Where the three files are.
            variables: Of its environment.
        """
        assert self._server.stdin
        assert self._server.stdout
        call = {"arguments": [*map(str, arguments)], "folder": str(folder), "variables": variables}
        self._server.stdin.write(json.dumps(call) + "\n")
        self._server.stdin.flush()
        self.pids.put(int(self._server.stdout.readline()))
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the process that forks."""
        self._server.communicate()


def _next_call() -> dict[str, Any] | None:
    """Return a call in its own process; None at the end, in the process that forks."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            call: dict[str, Any] = json.loads(line)
            return call
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()
    return None


def _main(name: str, *imports: str) -> None:
    for module in imports:
        importlib.import_module(module)
    call = _next_call()
    if call is None:
        return
    os.chdir(call["folder"])
    for number, file in enumerate(("stdin", "stdout", "stderr")):
        flags = os.O_CREAT | (os.O_WRONLY | os.O_TRUNC if number else os.O_RDONLY)
        os.dup2(os.open(file, flags), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # without what was read
    os.environ.update(call["variables"])
    sys.argv = [name, *call["arguments"]]
    module, _, path = name.partition(":")
    function: Any = reduce(getattr, path.split("."), importlib.import_module(module))
    sys.exit(function())


if __name__ == "__main__":
    _main(*sys.argv[1:])
