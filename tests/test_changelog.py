"""The change log: nothing that was appended is ever passed over, on SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg
import pytest

from tap_public_jobs.changelog import ChangeLog, ChangeLogError, Changes
from tap_public_jobs.changelog import database as database_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tap_public_jobs.changelog.database import Transaction

WRITERS = 6
ROUNDS = 8


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "changes.db"


@pytest.fixture
def sqlite(file: Path) -> str:
    return f"sqlite:///{file}"


@pytest.fixture
def empty_database(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return database


@pytest.fixture(params=["sqlite", "empty_database"])
def url(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue(request.param)
    return address


def test_changes_are_read_in_their_order_and_once(url: str) -> None:
    log = ChangeLog(url)
    log.append(["b", "a", "b"])
    first = log.read()
    log.append(["c"])
    log.append(["a", "c"])

    assert (first.position, first.public_ids) == (2, ["b", "a"])
    assert log.read(first.position) == Changes(first.log, 5, ["a", "c"])
    assert log.read(5) == Changes(first.log, 5, [])
    assert log.read() == Changes(first.log, 5, ["b", "a", "c"])


def test_a_log_keeps_its_identity_and_another_has_another(url: str, tmp_path: Path) -> None:
    log = ChangeLog(url)
    log.append(["a"])
    other = ChangeLog(f"sqlite:///{tmp_path / 'other.db'}")
    other.append([])

    assert ChangeLog(url).read().log == log.read().log
    assert other.read() == Changes(other.counts().log, 0, [])
    assert other.read().log != log.read().log


def test_any_text_is_kept_as_it_is(url: str) -> None:
    ids = ["", "a/b?c#d%20", "';--", "ü ☃ 𝄞", "x" * 1000, ":now"]
    log = ChangeLog(url)
    log.append(ids)
    log.keep('{"what": "is :this"}')

    assert log.read().public_ids == ids
    assert [payload for _, payload in log.unrecognised(5)] == ['{"what": "is :this"}']


def test_unrecognised_payloads_are_shown_latest_last(url: str) -> None:
    times = iter(datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in range(5))
    log = ChangeLog(url, now=lambda: next(times))
    for number in range(4):
        log.keep(f"[{number}]")
    log.append(["a", "a"])

    assert log.unrecognised(3) == [
        (f"2026-11-21T0{number}:00:00.000+00:00", f"[{number}]") for number in (1, 2, 3)
    ]
    assert log.counts() == (log.read().log, 1, 1, 4)


def test_what_is_forgotten_is_gone_and_no_position_comes_again(url: str) -> None:
    log = ChangeLog(url)
    log.append(["a", "b", "c"])

    assert log.forget(2) == 2
    assert log.read().public_ids == ["c"]
    assert log.forget(3) == 1
    assert log.forget(3) == 0
    assert log.read(3) == Changes(log.read().log, 3, [], 3)
    log.append(["d"])
    assert log.read(3) == Changes(log.read().log, 4, ["d"], 3)


def test_one_that_is_not_there_is_an_error_and_is_not_made(file: Path, sqlite: str) -> None:
    log = ChangeLog(sqlite)

    for use in (log.read, log.counts, lambda: log.forget(1), lambda: log.unrecognised(1)):
        with pytest.raises(ChangeLogError) as caught:
            use()
        assert str(caught.value) == (
            f"There is no change log in {file}. Correct changes_url, or start "
            "public-jobs-webhook with the same one first."
        )
    assert not file.exists()


def test_a_database_without_a_log_is_an_error_and_stays_what_it_is(
    file: Path, sqlite: str, empty_database: str
) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE other (id)")
    connection.close()
    before = file.read_bytes()

    for address in (sqlite, empty_database):
        with pytest.raises(ChangeLogError, match="There is no change log in"):
            ChangeLog(address).read()

    assert file.read_bytes() == before
    with psycopg.connect(empty_database) as server:
        assert server.execute("SELECT to_regclass('public_jobs_log')").fetchone() == (None,)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "changes.db",
        "sqlite://",
        "sqlite:///",
        "sqlite://changes.db",
        "sqlite:///changes.db?timeout=5",
        "sqlite:///:memory:",
        "sqlite:///file:changes.db?uri=true",
        "sqlite+aiosqlite:///changes.db",
        "mysql://me:sesame@127.0.0.1/db",
        "postgres://me:sesame@127.0.0.1/db",
        "postgresql+asyncpg://me:sesame@127.0.0.1/db",
        "postgresql://me:ses@me@127.0.0.1/db",
        "postgresql://me:sesame@127.0.0.1:port/db",
    ],
)
def test_a_url_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(ChangeLogError) as caught:
        ChangeLog(url)

    assert str(caught.value) == (
        "changes_url must be sqlite:///path/to/a/file or "
        "postgresql+psycopg://user:password@host/name; write an @ in the password as %40."
    )


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ChangeLogError, match=r"install psycopg\[binary\]") as caught:
        ChangeLog("postgresql+psycopg://me:sesame@127.0.0.1/db")
    assert "sesame" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    log = ChangeLog("postgresql://me:sesame@127.0.0.1:1/db?application_name=x")

    with pytest.raises(ChangeLogError) as caught:
        log.append(["a"])

    assert str(caught.value).startswith("The change log in db on 127.0.0.1 cannot be used (")
    assert "sesame" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_vanishes_is_noticed_while_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is sent while a commit is awaited, so that only keepalives find out."""
    given: dict[str, object] = {}

    def connect(**settings: object) -> None:
        given.update(settings)
        raise psycopg.OperationalError

    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(ChangeLogError):
        ChangeLog("postgresql://user@127.0.0.1/db?keepalives_interval=5").read()

    assert (given["keepalives_idle"], given["keepalives_interval"]) == (10, "5")


def test_a_path_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("This is no database, and longer than the header of one." * 9)

    with pytest.raises(ChangeLogError, match=r"\(No such file or directory\).* user may read and"):
        ChangeLog(f"sqlite:///{tmp_path / 'no' / 'folder.db'}").append(["a"])
    with pytest.raises(ChangeLogError, match="file is not a database"):
        ChangeLog(f"sqlite:///{tmp_path / 'text'}").read()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "x" * 65, "a&name=b"])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ChangeLogError, match="The name in changes_url must be 1 to 64 letters"):
        ChangeLog(f"sqlite:///changes.db?name={name}")


def test_a_path_may_have_any_sign_but_a_question_mark(tmp_path: Path) -> None:
    log = ChangeLog(f"sqlite:///{tmp_path}/100%20#1 é.db?name=acme")
    log.append(["a"])

    assert log.name == "acme"
    assert [path.name for path in tmp_path.iterdir()] == ["100%20#1 é.db"]


def test_the_options_of_a_server_stay_what_they_are(empty_database: str) -> None:
    """Only the name is taken out of the URL."""
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "a b"')
    url = f"{empty_database}&options=-c%20search_path%3D%22a%5C%20b%22&name=acme"
    ChangeLog(url).append(["a"])

    with psycopg.connect(empty_database) as server:
        [(name,)] = server.execute('SELECT name FROM "a b".public_jobs_log').fetchall()
    assert name == "acme"


def test_each_name_has_a_log_of_its_own(url: str) -> None:
    """In one database; the name is no part of its address."""
    separator = "&" if "?" in url else "?"
    acme, other = ChangeLog(f"{url}{separator}name=acme"), ChangeLog(url)
    acme.append(["a", "b"])
    acme.keep("{}")
    other.append(["a"])

    with pytest.raises(ChangeLogError, match=r"There is no change log in .* with the name third\."):
        ChangeLog(f"{url}{separator}name=third").read()
    assert acme.read() == Changes(acme.counts().log, 2, ["a", "b"])
    assert other.read() == Changes(other.counts().log, 1, ["a"])
    assert acme.read().log != other.read().log
    assert (acme.counts().unrecognised, other.counts().unrecognised) == (1, 0)
    assert (
        acme.places()
        == other.places()
        == {
            "acme": (acme.read().log, 2, 0),
            "default": (other.read().log, 1, 0),
        }
    )
    acme.forget(2)
    assert (acme.counts().rows, other.counts().rows) == (0, 1)


def test_an_earlier_copy_shows_in_the_position(file: Path, sqlite: str, tmp_path: Path) -> None:
    log = ChangeLog(sqlite)
    log.append(["a"])
    copy = (tmp_path / "copy.db").absolute()
    file.rename(copy)
    ChangeLog(f"sqlite:///{copy}").read()
    earlier = copy.read_bytes()
    copy.rename(file)
    log.append(["b"])
    place = log.read()
    file.write_bytes(earlier)

    assert log.read(place.position) == Changes(place.log, 1, [])


def test_a_file_that_is_removed_becomes_another_log(file: Path, sqlite: str) -> None:
    """And is not written to after its removal."""
    log = ChangeLog(sqlite)
    log.append(["a"])
    before = log.read().log
    file.unlink()

    log.append(["b"])

    after = log.read()
    assert after == Changes(after.log, 1, ["b"])
    assert after.log != before


def test_a_commit_to_sqlite_survives_a_power_cut(file: Path, sqlite: str) -> None:
    log = ChangeLog(sqlite)
    log.append(["a"])

    with log._transaction(write=True) as transaction:
        modes = [transaction.execute(f"PRAGMA {it}") for it in ("journal_mode", "synchronous")]

    assert modes == [[("delete",)], [(3,)]]  # 3: EXTRA
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_six_processes_may_make_it_at_once(sqlite: str) -> None:
    """They wait for each other from the first byte on."""
    code = (
        "import sys; from tap_public_jobs.changelog import ChangeLog; log = ChangeLog(sys.argv[1]);"
        "sys.stdin.readline(); log.append([sys.argv[2]])"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, sqlite, str(number)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]

    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()

    assert [process.communicate()[1] for process in processes] == [""] * 6
    assert sorted(ChangeLog(sqlite).read().public_ids) == ["0", "1", "2", "3", "4", "5"]


def test_a_writer_takes_no_lock_from_another_of_its_process(
    file: Path, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """POSIX releases all locks of a process on a file as soon as one thread closes that file."""
    monkeypatch.setattr(database_module, "PATIENCE", 0)
    log = ChangeLog(sqlite)
    log.append(["a"])
    other_process = (
        "import sqlite3, sys; connection = sqlite3.connect(sys.argv[1], timeout=0); "
        "connection.execute('BEGIN IMMEDIATE')"
    )

    with log._transaction(write=True):
        with pytest.raises(ChangeLogError, match="database is locked"):
            ChangeLog(sqlite).append(["b"])
        result = subprocess.run(
            [sys.executable, "-c", other_process, str(file)],
            capture_output=True,
            text=True,
            check=False,
        )

    assert result.stderr.endswith("database is locked\n")


def test_a_write_that_cannot_begin_leaves_nothing_behind(file: Path, sqlite: str) -> None:
    """Although its error is kept: the file would stay locked until the receiver is restarted."""
    log = ChangeLog(sqlite)
    log.append(["a"])
    other = sqlite3.connect(file)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("SELECT * FROM public_jobs_log").fetchall()

    with pytest.raises(ChangeLogError, match="database is locked") as kept:
        log.append(["b"])
    other.close()
    log.append(["c"])

    assert log.read().public_ids == ["a", "c"]
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert kept


def test_a_link_to_a_file_that_is_not_there_makes_it(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(file)

    ChangeLog(f"sqlite:///{link}").append(["a"])

    assert ChangeLog(f"sqlite:///{file}").read().public_ids == ["a"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_several_writers_may_make_it_at_once_and_a_reader_misses_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions that were read are never followed by lower ones. A slow disk may take its time."""
    monkeypatch.setattr(database_module, "PATIENCE", 600)
    start = threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        log = ChangeLog(url)
        start.wait()
        for number in range(ROUNDS):
            log.append([f"{writer}-{number}-{part}" for part in "ab"])

    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        reader, position, seen = ChangeLog(url), 0, list[str]()
        while position < WRITERS * ROUNDS * 2 and not any(
            w.done() and w.exception() for w in writing
        ):
            try:
                _, position, ids, _ = reader.read(position)
            except ChangeLogError:  # not made yet
                continue
            seen += ids
        for done in writing:
            done.result()

    assert seen == reader.read().public_ids
    assert len(seen) == WRITERS * ROUNDS * 2
    for writer in range(WRITERS):
        mine = [it for it in seen if it.startswith(f"{writer}-")]
        assert mine == [f"{writer}-{number}-{part}" for number in range(ROUNDS) for part in "ab"]


def test_a_late_commit_is_never_passed_over(
    url: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two receivers, the one that began first commits last."""
    slow, fast, reader = ChangeLog(url), ChangeLog(url), ChangeLog(url)
    slow.append(["before"])
    inserted, commit = threading.Event(), threading.Event()

    transaction = slow._database.transaction

    @contextlib.contextmanager
    def held(**options: bool) -> Iterator[Transaction | None]:
        with transaction(**options) as inside:
            yield inside
            inserted.set()
            commit.wait()

    monkeypatch.setattr(slow._database, "transaction", held)
    with ThreadPoolExecutor(2) as pool:
        try:
            first = pool.submit(slow.append, ["slow"])
            inserted.wait()
            second = pool.submit(fast.append, ["fast"])
            if url == database:
                wait_for_a_lock(database, second)
            between = reader.read()
            overtaken = second.done()
        finally:
            commit.set()
        first.result()
        second.result()

    assert not overtaken
    assert between == Changes(between.log, 1, ["before"])
    assert reader.read(between.position) == Changes(between.log, 3, ["slow", "fast"])


def wait_for_a_lock(database: str, writing: Future[None]) -> None:
    """Wait until a writer waits for another, or is done."""
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with psycopg.connect(database, autocommit=True) as connection:
        while not writing.done() and connection.execute(query).fetchone() == (0,):
            pass


def test_a_writer_that_fails_takes_no_position(url: str) -> None:
    log = ChangeLog(url)
    log.append(["a"])

    with pytest.raises(ChangeLogError):
        log.append(["b", None])  # type: ignore[list-item]  # refused by the database
    log.append(["c"])

    assert log.read(1) == Changes(log.read().log, 2, ["c"])


def test_importing_it_costs_nothing() -> None:
    """A tap without a change log starts without a driver of PostgreSQL."""
    code = "import sys, tap_public_jobs.changelog; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
