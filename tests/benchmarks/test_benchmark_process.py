"""What is measured of a command."""

from __future__ import annotations

import os
import resource
import select
import sys
from typing import TYPE_CHECKING

from benchmarks import process

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.process import Measured


def run(folder: Path, command: Sequence[str], timeout: float = 60) -> Measured:
    return process.run(command, folder / "stdout", folder / "stderr", timeout)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_every_figure_is_measured(tmp_path: Path) -> None:
    measured = run(tmp_path, python("sum(range(1_000_000)); exit(3)"))

    assert measured.status == 3
    assert measured.cpu > 0
    assert measured.wall > 0
    assert measured.megabytes > 0


def test_the_memory_is_the_commands_own(tmp_path: Path) -> None:
    """Linux would report the memory of the process that starts it, if that is larger."""
    ballast = bytearray(b"x") * 200_000_000

    measured = run(tmp_path, python("x = bytearray(b'x') * 30_000_000"))

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > len(ballast) / 1024
    assert 30 < measured.megabytes < 100


def test_stdout_is_replaced_and_stderr_is_kept(tmp_path: Path) -> None:
    for text in ("first", "second"):
        run(tmp_path, python(f"import sys; print('{text}'); print('{text}', file=sys.stderr)"))

    assert (tmp_path / "stdout").read_text(encoding="utf-8") == "second\n"
    assert (tmp_path / "stderr").read_text(encoding="utf-8") == "first\nsecond\n"


def test_a_command_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    fifo = tmp_path / "held_open_by_the_child"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    measured = run(tmp_path, ["sh", "-c", f"sleep 600 > {fifo} & sleep 600"], timeout=0.3)

    assert measured.status is None
    select.select([reader], [], [], 30)  # a killed process takes a moment to end
    assert os.read(reader, 1) == b""  # it would raise if a child could still write
    os.close(reader)
