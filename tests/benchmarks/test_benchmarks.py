"""The command measures real runs of the tap, and fails if a figure falls short of a claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks.clients import CLIENTS
from benchmarks.sections import growth

if TYPE_CHECKING:
    import pytest


def test_the_command_says_which_claims_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CLIENTS", CLIENTS[:1])
    monkeypatch.setattr(growth, "SIZES", ((10, 40),))
    monkeypatch.setattr(growth, "MOST_STATE", 1)

    result = CliRunner().invoke(command.main, ["--only", "growth"])

    assert result.exit_code == 1, result.output
    assert "tap-public-jobs: 40 jobs, " in result.stderr
    assert "\n| 40 | " in result.stdout
    assert "- A backfill of 40 jobs needs at most 170 MB of memory (" in result.stdout
    assert "- Of the 2 runs of tap-public-jobs above, 0 fail or lose a row (0)." in result.stdout
    assert result.stdout.count("**Falls short:**") == 1
    assert "- **Falls short:** However many jobs there are, state takes at most 1" in result.stdout
