"""Retention: what every reader has read is removed, and what is old."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from webhook.command import COMMAND, run

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log() -> ChangeLog:
    log = ChangeLog("sqlite:///changes.db")
    log.append(["a", "b", "c", "d"])
    return log


def place(log: ChangeLog, position: Any, others: dict[str, object] | None = None) -> Any:
    """A state of the tap that has read up to a position."""
    sync = {
        "format": 2,
        "log": [log.read().log, position],
        "listedAt": 1_700_000_000_000,
        "run": None,
        "jobs": [["1", "a", 1, None, "h3", 2]],
    }
    return {"bookmarks": {"jobs": {"sync": sync | (others or {})}}}


def test_what_every_state_has_read_is_removed(
    log: ChangeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(place(log, 3, {"run": [1, 2]})))
    (tmp_path / "two.json").write_text(json.dumps({"singer_state": place(log, 2)}))

    result = run(capsys, "prune", "--state", "one.json", "--state", "two.json")

    assert result == (0, "Rows removed: 2, to position 2.\n", "")
    assert log.read().public_ids == ["c", "d"]


def test_a_state_may_come_through_a_pipe(log: ChangeLog) -> None:
    result = subprocess.run(
        [*COMMAND, "prune", "--state", "-"],
        input=json.dumps(place(log, 4)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "Rows removed: 4, to position 4.\n")
    assert log.read().public_ids == []


@pytest.mark.parametrize(
    "state",
    [
        "",
        "nonsense",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        '{"bookmarks": {"jobs": {"sync": null}}}',
        '{"singer_state": null}',
        {"format": 1},
        {"log": None},
        {"log": ["another", 3]},
        -1,
        5,
        "4",
        True,
        4.0,
        None,
    ],
)
def test_nothing_is_removed_for_a_state_that_has_not_read_it(
    log: ChangeLog,
    state: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = json.dumps(place(log, 3))
    wrong = state
    if isinstance(state, dict):
        wrong = json.dumps(place(log, 3, state))
    elif state == "4" or not isinstance(state, str):
        wrong = json.dumps(place(log, state))
    (tmp_path / "right.json").write_text(right)
    (tmp_path / "wrong.json").write_text(wrong)

    message, *_ = run(capsys, "prune", "--state", "right.json", "--state", "wrong.json")

    assert message == (
        "Error: Nothing was removed: --state wrong.json has no place in this change log. Give the "
        "state of a run with this changes_url, and first run those that have not read it."
    )
    assert log.read().public_ids == ["a", "b", "c", "d"]


def test_each_name_is_pruned_to_its_own_place(
    log: ChangeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acme = ChangeLog("sqlite:///changes.db?name=acme")
    acme.append(["x", "y"])
    (tmp_path / "acme.json").write_text(json.dumps(place(acme, 1)))
    (tmp_path / "default.json").write_text(json.dumps(place(log, 3)))

    result = run(capsys, "prune", "--state", "acme=acme.json", "--state", "default.json")

    said = "Rows removed: 1, to position 1.\nRows removed: 3, to position 3.\n"
    assert result == (0, said, "")
    assert (acme.read().public_ids, log.read().public_ids) == (["y"], ["d"])


def test_age_and_number_are_pruned_in_all_logs(
    log: ChangeLog, capsys: pytest.CaptureFixture[str]
) -> None:
    acme = ChangeLog("sqlite:///changes.db?name=acme")
    acme.append(["x", "y"])
    log.keep("1")
    log.keep("2")

    assert run(capsys, "prune", "--older-than", "1")[1] == "Rows removed: 0. Payloads removed: 0.\n"
    assert run(capsys, "prune", "--keep", "1")[1] == "Rows removed: 4. Payloads removed: 1.\n"
    assert (acme.read().public_ids, log.read().public_ids) == (["y"], ["d"])
    assert [payload for _, payload in log.unrecognised(9)] == ["2"]
    assert run(capsys, "prune", "--older-than", "0")[1] == "Rows removed: 2. Payloads removed: 1.\n"


@pytest.mark.parametrize("arguments", [[], ["--state", "no.json"]])
def test_prune_needs_to_know_what(
    log: ChangeLog, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    message, *_ = run(capsys, "prune", *arguments)

    assert isinstance(message, str)
    assert message.startswith("Error: Nothing was removed: ")
    assert "--state" in message
    assert log.counts().rows == 4
