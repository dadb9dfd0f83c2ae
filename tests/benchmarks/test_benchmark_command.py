"""The command: what it does with claims and with the file that it writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks.clients import LeftOutError
from benchmarks.report import BEGIN, END, Claim, Section

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

OLD = f"# Title\n{BEGIN}\nold\n{END}\nThe rest.\n"


class Program:
    """A client that nothing measures."""

    def __init__(self, name: str, problem: str | None = None) -> None:
        self.name = name
        self.problem = problem

    def version(self) -> str:
        if self.problem:
            raise LeftOutError(self.problem)
        return f"{self.name} 1.2.3"


@pytest.fixture
def destination(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "benchmarks.md"
    file.write_text(OLD, encoding="utf-8")
    monkeypatch.setattr(command, "DESTINATION", file)
    return file


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = [Program("peer", "needs a network"), Program("other")]
    monkeypatch.setattr(command, "CLIENTS", [Program("tap"), *peers])


def run(monkeypatch: pytest.MonkeyPatch, measured: float, *options: str) -> Result:
    section = Section("Speed", ["Words."], [Claim("It takes at most {}", measured, at_most=0.7)])
    monkeypatch.setattr(command, "SECTIONS", {"speed": lambda _: section})
    return CliRunner().invoke(command.main, options)


def test_it_prints_the_sections_and_ends_with_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, 0.6)

    assert result.exit_code == 0
    assert "### Speed\n\nWords.\n\n- It takes at most 0.7 (0.6).\n" in result.stdout


def test_it_says_what_was_measured_and_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, 0.6)

    assert "tap 1.2.3, other 1.2.3" in result.stdout
    assert "Left out: peer (needs a network)." in result.stdout


def test_a_section_that_cannot_be_measured_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(_: object) -> Section:
        reason = "uv is not on the PATH"
        raise LeftOutError(reason)

    monkeypatch.setattr(command, "SECTIONS", {"speed": measure})

    result = CliRunner().invoke(command.main, [])

    assert result.exit_code == 0
    assert "Left out: speed (uv is not on the PATH)." in result.stdout


def test_a_claim_that_falls_short_makes_it_fail(
    monkeypatch: pytest.MonkeyPatch, destination: Path
) -> None:
    result = run(monkeypatch, 0.8, "--full", "--write")

    assert result.exit_code == 1
    assert "**Falls short:** It takes at most 0.7 (0.8)." in result.stdout
    assert "Falls short: It takes at most 0.7 (0.8).\n" in result.stderr
    assert destination.read_text(encoding="utf-8") == OLD


def test_it_writes_what_it_prints(monkeypatch: pytest.MonkeyPatch, destination: Path) -> None:
    result = run(monkeypatch, 0.6, "--full", "--write")

    assert result.exit_code == 0
    assert destination.read_text(encoding="utf-8") == (
        f"# Title\n{BEGIN}\n\n{result.stdout.strip()}\n\n{END}\nThe rest.\n"
    )


@pytest.mark.parametrize(
    "options",
    [["--write"], ["--write", "--full", "--only", "limit"]],
    ids=["quick", "one section"],
)
def test_only_a_whole_full_run_is_written(
    monkeypatch: pytest.MonkeyPatch, destination: Path, options: list[str]
) -> None:
    assert run(monkeypatch, 0.6, *options).exit_code == 2
    assert destination.read_text(encoding="utf-8") == OLD


def test_without_markers_it_does_not_start(
    monkeypatch: pytest.MonkeyPatch, destination: Path
) -> None:
    destination.write_text("# Title\n", encoding="utf-8")

    result = run(monkeypatch, 0.6, "--full", "--write")

    assert result.exit_code == 1
    assert f"benchmarks.md: There must be one line {BEGIN}" in result.stderr
    assert result.stdout == ""


def test_the_destination_has_the_markers() -> None:
    text = command.DESTINATION.read_text(encoding="utf-8")

    assert text.index(BEGIN) < text.index(END)
