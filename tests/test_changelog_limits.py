"""The change log stays small, for its owner, and can be pruned on a full disk."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

from tap_public_jobs.changelog import ChangeLog, ChangeLogError, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MORNING = datetime(2026, 1, 1, 8, tzinfo=UTC)


@pytest.fixture
def empty_database(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return database


@pytest.fixture(params=["file", "server"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'changes.db'}"
    address: str = request.getfixturevalue("empty_database")
    return address


class Clock:
    """Says what time it is."""

    def __init__(self) -> None:
        self.time = MORNING

    def __call__(self) -> datetime:
        return self.time


def test_a_job_takes_one_row_however_often_it_changes(url: str) -> None:
    log = ChangeLog(url)
    log.append(["a", "b"])
    position = log.read().position
    for _ in range(50):
        log.append(["a"])

    assert log.counts().rows == 2
    assert log.read(position).public_ids == ["a"]
    assert log.read().public_ids == ["b", "a"]


def test_a_full_log_refuses_new_jobs_and_takes_known_ones(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although they come in one commit, in which the other logs are written too."""
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    log = ChangeLog(url)
    log.append(["a", "b", "c"])

    with pytest.raises(ChangeLogError, match=r"The change log default in .* is full .*prune\.$"):
        log.append(["d", "a"])
    assert log.read().public_ids == ["b", "c", "a"]
    assert log.append_to({"default": ["d"], "acme": ["e"]}) == {"default": {"d"}}
    assert log.append_to({"default": ["b"]}) == {}
    assert log.read().public_ids == ["c", "a", "b"]
    assert {name: place.position for name, place in log.places().items()} == {
        "default": 5,
        "acme": 1,
    }
    log.forget(5)
    log.append(["d"])
    assert log.read(5).public_ids == ["d"]


def test_only_the_last_unrecognised_payloads_are_kept(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tables.MOST_UNRECOGNISED == 1000
    monkeypatch.setattr(tables, "MOST_UNRECOGNISED", 3)
    log = ChangeLog(url)
    log.keep("other", "acme")
    for number in range(7):
        log.keep(str(number))

    assert [payload for _, payload in log.unrecognised(99)] == ["4", "5", "6"]
    assert log.counts().unrecognised == 3


def test_only_the_beginning_of_a_payload_is_kept(url: str) -> None:
    log = ChangeLog(url)
    log.keep("é" * 20_000)

    assert [payload for _, payload in log.unrecognised(1)] == ["é" * 16_384]


@pytest.mark.parametrize(
    ("hours", "most", "rows", "payloads", "forgotten"),
    [
        (None, None, ["a", "b", "c", "d"], ["0", "1", "2", "3"], 0),
        (0, None, ["a", "b", "c", "d"], ["0", "1", "2", "3"], 0),
        (2, None, ["c", "d"], ["2", "3"], 2),
        (99, None, [], [], 4),
        (None, 3, ["b", "c", "d"], ["1", "2", "3"], 1),
        (None, 0, [], [], 4),
        (None, 9, ["a", "b", "c", "d"], ["0", "1", "2", "3"], 0),
        (1, 1, ["d"], ["3"], 3),
    ],
)
def test_both_kinds_are_pruned_by_age_and_number(
    url: str,
    hours: int | None,
    most: int | None,
    rows: list[str],
    payloads: list[str],
    forgotten: int,
) -> None:
    clock = Clock()
    log = ChangeLog(url, now=clock)
    for number, public_id in enumerate("abcd"):
        log.append_to({"default": [public_id], "acme": [public_id]})
        log.keep(str(number))
        clock.time += timedelta(hours=1)
    before = None if hours is None else MORNING + timedelta(hours=hours)

    removed = log.prune(before=before, most=most)

    assert removed == (2 * (4 - len(rows)), 4 - len(payloads))
    assert log.read().public_ids == rows
    assert [payload for _, payload in log.unrecognised(9)] == payloads
    assert [place.forgotten for place in log.places().values()] == [forgotten] * 2


def test_the_file_is_for_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}").append(["a"])
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "changes.db").stat().st_mode) == 0o600


def test_a_mode_that_its_owner_has_chosen_stays(tmp_path: Path) -> None:
    file = tmp_path / "changes.db"
    log = ChangeLog(f"sqlite:///{file}")
    log.append(["a"])
    file.chmod(0o640)

    log.append(["b"])

    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A real one of 2 MB; where nothing may be mounted, a limit on the file."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield Disk(folder, lambda: use_up(folder))
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607
    else:
        yield Disk(folder, lambda: monkeypatch.setattr(sqlite3, "connect", limited))


class Disk(NamedTuple):
    folder: Path
    fill: Callable[[], None]


def use_up(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while ballast.write(b"\0" * 4096):
            pass


def limited(
    *arguments: Any, connect: Callable[..., sqlite3.Connection] = sqlite3.connect, **options: Any
) -> sqlite3.Connection:
    """Connect to a file that may not grow."""
    connection = connect(*arguments, **options)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    return connection


def test_a_log_on_a_full_disk_can_be_pruned_and_then_written(disk: Disk) -> None:
    """Its space is given back: to the log, and to the others that need it."""
    file = disk.folder / "changes.db"
    log = ChangeLog(f"sqlite:///{file}")
    many = [f"{number:0900}" for number in range(600)]
    log.append(many)
    disk.fill()
    size = file.stat().st_size

    with pytest.raises(ChangeLogError, match=r"Make sure that .* its disk has space"):
        log.append([f"other-{public_id}" for public_id in many])
    assert log.forget(590) == 590

    assert log.read().public_ids == many[590:]
    assert file.stat().st_size < size / 5
    log.append(["new"])
    assert log.read(600).public_ids == ["new"]
    assert log.prune(most=0) == (11, 0)
