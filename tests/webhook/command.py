"""Runs the command, in this process or in its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from tap_public_jobs.webhook.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

COMMAND = [sys.executable, "-c", "from tap_public_jobs.webhook.cli import main; main()"]
PREFIX = "PUBLIC_JOBS_WEBHOOK_"


class Process(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    stderr: IO[str]


@contextlib.contextmanager
def served(port: int = 0, code: str = COMMAND[2], **settings: Any) -> Iterator[Process]:
    """Run the receiver in a process of its own; kill it at the end."""
    environment = os.environ | {PREFIX + name: str(value) for name, value in settings.items()}
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", str(port)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        lines = ""
        while not (found := re.search(r"running on http://\S+:(\d+)", lines)):
            line = process.stderr.readline()
            assert line, lines
            lines += line
        try:
            yield Process(process, int(found[1]), process.stderr)
        finally:
            process.kill()


def ended(*arguments: str, code: str = COMMAND[2], **options: Any) -> tuple[int, str, str]:
    """Run the command in a process of its own to its end: status, stdout, stderr."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return result.returncode, result.stdout, result.stderr


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int | str | None, str, str]:
    """Run the command to its end: status, stdout, stderr."""
    status: int | str | None = 0
    try:
        main([*arguments])
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()
