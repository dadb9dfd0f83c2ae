"""Runs the command, in this process or in its own, and makes the states that it reads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tap_public_jobs.webhook.cli import main

if TYPE_CHECKING:
    import pytest

COMMAND = [sys.executable, "-c", "from tap_public_jobs.webhook.cli import main; main()"]
PREFIX = "PUBLIC_JOBS_WEBHOOK_"
JOBS = [["1", "a", 1, None, "h1", 2], ["2", "b", 1, None, "h2", 2]]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int | str | None, str, str]:
    """Run the command to its end: status or last words, stdout, stderr."""
    status: int | str | None = 0
    try:
        main(arguments)
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()


def state(place: Any, **others: Any) -> dict[str, Any]:
    """A state of the tap that has read up to a place, which is a log and a position."""
    sync = {"format": 2, "log": place, "listedAt": 1_700_000_000_000, "run": None, "jobs": JOBS}
    return {"bookmarks": {"jobs": {"sync": sync | others}}}
