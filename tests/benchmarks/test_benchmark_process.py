"""What is measured of a command."""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING

from benchmarks.process import run

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1_000_000


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_every_figure_is_measured(tmp_path: Path) -> None:
    measured = run(python("sum(range(1_000_000)); exit(3)"), tmp_path / "log", timeout=60)

    assert measured.status == 3
    assert measured.cpu > 0
    assert measured.wall > 0
    assert measured.memory > 0


def test_the_memory_is_the_commands_own(tmp_path: Path) -> None:
    """Of a process that is larger than what it starts, Linux would tell its own."""
    ballast = bytearray(b"x") * (200 * MEGABYTE)

    measured = run(python("x = bytearray(b'x') * 30_000_000"), tmp_path / "log", timeout=60)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > len(ballast) / 1024
    assert 30 * MEGABYTE < measured.memory < 100 * MEGABYTE


def test_what_it_says_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"

    run(python("import os, sys; sys.stderr.write(os.environ['GIVEN'])"), log, 60, {"GIVEN": "yes"})

    assert log.read_text(encoding="utf-8") == "yes"


def test_a_command_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    fifo = tmp_path / "held_open_by_the_child"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    command = ["sh", "-c", f"sleep 600 > {fifo} & sleep 600"]
    measured = run(command, tmp_path / "log", timeout=0.3)

    assert measured.status is None
    assert os.read(reader, 1) == b""  # else it would raise: somebody could still write
    os.close(reader)
