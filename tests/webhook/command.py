"""Runs the command, in this process or in its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tap_public_jobs.webhook.cli import main

if TYPE_CHECKING:
    import pytest

COMMAND = [sys.executable, "-c", "from tap_public_jobs.webhook.cli import main; main()"]
PREFIX = "PUBLIC_JOBS_WEBHOOK_"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int | str | None, str, str]:
    """Run the command to its end: status or last words, stdout, stderr."""
    status: int | str | None = 0
    try:
        main(arguments)
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()
