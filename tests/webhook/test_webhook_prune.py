"""Retention: what every reader has read is removed, and what is old."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from webhook.command import COMMAND, run, state

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from pathlib import Path


def read_to(position: Any, log: ChangeLog, /, **others: Any) -> Any:
    """A state of the tap that has read a log up to a position."""
    return state([log.read().log, position], **others)


def test_what_every_state_has_read_is_removed(
    log_of_four: ChangeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_text(json.dumps(read_to(3, log_of_four, run=[1, 2])))
    (tmp_path / "two.json").write_text(json.dumps({"singer_state": read_to(2, log_of_four)}))

    result = run(capsys, "prune", "--state", "one.json", "--state", "two.json")

    assert result == (0, "Rows removed: 2, to position 2.\n", "")
    assert log_of_four.read().public_ids == ["c", "d"]


def test_a_state_may_come_through_a_pipe(log_of_four: ChangeLog) -> None:
    result = subprocess.run(
        [*COMMAND, "prune", "--state", "-"],
        input=json.dumps(read_to(4, log_of_four)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "Rows removed: 4, to position 4.\n")
    assert log_of_four.read().public_ids == []


@pytest.mark.parametrize(
    "wrong",
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
    log_of_four: ChangeLog,
    wrong: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = json.dumps(read_to(3, log_of_four))
    if isinstance(wrong, dict):
        wrong = json.dumps(read_to(3, log_of_four, **wrong))
    elif wrong == "4" or not isinstance(wrong, str):
        wrong = json.dumps(read_to(wrong, log_of_four))
    (tmp_path / "right.json").write_text(right)
    (tmp_path / "wrong.json").write_text(wrong)

    message, *_ = run(capsys, "prune", "--state", "right.json", "--state", "wrong.json")

    assert message == (
        "Error: Nothing was removed: --state wrong.json has no position in this change log. Give a "
        "state that a run with this changes_url has written."
    )
    assert log_of_four.read().public_ids == ["a", "b", "c", "d"]


def test_each_name_is_pruned_to_its_own_place(
    log_of_four: ChangeLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acme = ChangeLog("sqlite:///changes.db?name=acme")
    acme.append(["x", "y"])
    (tmp_path / "acme.json").write_text(json.dumps(read_to(1, acme)))
    (tmp_path / "default.json").write_text(json.dumps(read_to(3, log_of_four)))

    result = run(capsys, "prune", "--state", "acme=acme.json", "--state", "default.json")

    said = "Rows removed: 1, to position 1.\nRows removed: 3, to position 3.\n"
    assert result == (0, said, "")
    assert (acme.read().public_ids, log_of_four.read().public_ids) == (["y"], ["d"])


def test_age_and_number_are_pruned_in_all_logs(
    log_of_four: ChangeLog, capsys: pytest.CaptureFixture[str]
) -> None:
    acme = ChangeLog("sqlite:///changes.db?name=acme")
    acme.append(["x", "y"])
    log_of_four.keep("1")
    log_of_four.keep("2")

    assert run(capsys, "prune", "--older-than", "1")[1] == "Rows removed: 0. Payloads removed: 0.\n"
    assert run(capsys, "prune", "--keep", "1")[1] == "Rows removed: 4. Payloads removed: 1.\n"
    assert (acme.read().public_ids, log_of_four.read().public_ids) == (["y"], ["d"])
    assert [payload for _, payload in log_of_four.unrecognised(9)] == ["2"]
    assert run(capsys, "prune", "--older-than", "0")[1] == "Rows removed: 2. Payloads removed: 1.\n"


@pytest.mark.parametrize("arguments", [[], ["--state", "no.json"]])
def test_prune_needs_to_know_what(
    log_of_four: ChangeLog, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    message, *_ = run(capsys, "prune", *arguments)

    assert isinstance(message, str)
    assert message.startswith("Error: Nothing was removed: ")
    assert "--state" in message
    assert log_of_four.counts().rows == 4
