"""The notification log: nothing that was appended is ever passed over, on SQLite and PostgreSQL."""

import contextlib
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from tap_public_jobs.errors import NotificationLogError
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync import notifications
from tap_public_jobs.sync.notifications import Notifications


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "changes.db"


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request: pytest.FixtureRequest, changes_url: str, new_database: Callable[[], str]) -> str:
    return changes_url if request.param == "SQLite" else new_database()


def named(url: str, name: str) -> NotificationLog:
    return NotificationLog(f"{url}{'&' if '?' in url else '?'}name={name}")


def test_changes_are_read_in_their_order_and_once(url: str) -> None:
    """A job that changes again moves to the end.

    A notification that names no job only raises the position; a write that fails takes none.
    """
    log = NotificationLog(url)
    log.append({log.name: ["b", "a", "b"]})
    log_id = log.read().log_id
    assert log.read() == Notifications(log_id, 2, ["b", "a"])
    log.append({log.name: ["c"]})
    with pytest.raises(NotificationLogError):
        log.append({"default": ["b"], None: ["c"]})  # type: ignore[dict-item]
    log.append({log.name: ["a", "c"]})

    assert log.read(2) == Notifications(log_id, 5, ["a", "c"])
    assert log.read(5) == Notifications(log_id, 5, [])
    log.append({log.name: [None]})
    log.append({log.name: []})
    assert log.read(5) == Notifications(log_id, 6, [])
    assert log.read() == Notifications(log_id, 6, ["b", "a", "c"])


def test_each_name_has_a_log_of_its_own(url: str) -> None:
    acme, other = named(url, "acme"), NotificationLog(url)
    acme.append({"acme": ["a", "b"]})
    acme.append({"default": ["a"], "acme": ["c"]})

    with pytest.raises(
        NotificationLogError,
        match=r"is no notification log in .* with the name third\. .* line `third <token>` to",
    ):
        named(url, "third").read()
    assert acme.read()[1:] == (3, ["a", "b", "c"])
    assert other.read()[1:] == (1, ["a"])
    assert acme.read().log_id != other.read().log_id
    assert NotificationLog(url).read().log_id == other.read().log_id


def test_only_the_last_positions_are_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each log: a flood of one organisation costs no other organisation its changes."""
    assert notifications.KEPT == 100_000
    monkeypatch.setattr(notifications, "KEPT", 3)
    log, other = NotificationLog(url), named(url, "other")
    other.append({"other": ["a"]})
    log.append({log.name: ["a", "b"]})
    log.append({log.name: [None, "c", "a"]})

    assert log.read() == Notifications(log.read().log_id, 5, ["c", "a"])
    assert log.read().forgotten == 2
    assert other.read()[1:] == (1, ["a"])


def test_an_earlier_copy_and_another_log_show(file: Path, changes_url: str) -> None:
    log = NotificationLog(changes_url)
    log.append({log.name: ["a"]})
    earlier = file.read_bytes()
    log.append({log.name: ["b"]})
    before = log.read()
    file.write_bytes(earlier)
    assert log.read(before.position) == Notifications(before.log_id, 1, [])

    file.unlink()
    log.append({log.name: ["b"]})
    assert log.read()[1:] == (1, ["b"])
    assert log.read().log_id != before.log_id


def test_a_log_that_is_not_there_is_an_error_and_is_not_made(url: str, file: Path) -> None:
    """Neither its file nor its tables, also if there is a file without any."""
    log = NotificationLog(url)
    place = file if url.startswith("sqlite") else "the PostgreSQL database"
    said = (
        f"There is no notification log in {place}. Correct changes_url, or start "
        "public-jobs-webhook with the same one first."
    )
    for has_file in (False, place == file):
        with pytest.raises(NotificationLogError) as caught:
            log.read()
        assert str(caught.value) == said
        assert file.exists() is has_file
        assert sa.inspect(log._engine).get_table_names() == []  # makes the file


NO_URL = (
    "changes_url must be sqlite:///path/to/a/file, or "
    "postgresql+psycopg://user:password@host/name with an @ in the password as %40."
)
NO_NAME = "The name in changes_url must be 1 to 64 letters, digits or any of -._"
URLS = [
    *("", "changes.db", "sqlite://", "sqlite:///", "sqlite://changes.db"),
    *("sqlite:///changes.db?timeout=5", "sqlite:///:memory:"),
    "sqlite+aiosqlite:///changes.db",
    "mysql://me:sesame@127.0.0.1/db",
    "postgresql+asyncpg://me:sesame@127.0.0.1/db",
    "postgresql://me:ses@me@127.0.0.1/db",
    "postgresql://me:sesame@127.0.0.1:port/db",
    "postgresql:///me:sesame@127.0.0.1/db",
]
NAMES = ["", "a b", "a/b", "é", "x" * 65, "a&name=b"]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        *((url, NO_URL) for url in URLS),
        *((f"sqlite:///changes.db?name={name}", NO_NAME) for name in NAMES),
    ],
)
def test_a_url_that_cannot_be_is_refused_and_not_shown(url: str, error: str) -> None:
    with pytest.raises(NotificationLogError) as caught:
        NotificationLog(url)

    assert str(caught.value) == error
    assert "sesame" not in "".join(traceback.format_exception(caught.value))


def test_an_error_of_the_server_shows_no_part_of_the_url(database: str) -> None:
    """A password may be anywhere in a URL that is mistyped."""
    right = psycopg.conninfo.conninfo_to_dict(database)
    for changed in ({"dbname": "sesame"}, {"host": "sesame.invalid"}, {"sesame": "sesame"}):
        options = {**right, **changed}
        url = "postgresql://?" + "&".join(f"{name}={value}" for name, value in options.items())
        log = NotificationLog(url)
        for use in (log.read, partial(log.append, {"a": []})):
            with pytest.raises(
                NotificationLogError, match="in the PostgreSQL database can"
            ) as caught:
                use()
            assert "\n" not in str(caught.value)
            assert "sesame" not in "".join(traceback.format_exception(caught.value))


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    missing = r"needs a driver that is missing: add psycopg.* pip_url"
    with pytest.raises(NotificationLogError, match=missing):
        NotificationLog("postgresql+psycopg://me:sesame@127.0.0.1/db")


def test_a_path_that_cannot_be_is_an_error(file: Path, tmp_path: Path) -> None:
    file.write_text("This is no database, and longer than the header of one." * 9)
    reader = NotificationLog(f"sqlite:///{file}").read
    folder = NotificationLog(f"sqlite:///{tmp_path / 'no' / 'folder.db'}").append

    for use, why in ((partial(folder, {}), "unable to open database"), (reader, "is not a data")):
        with pytest.raises(NotificationLogError, match=rf"{why}.* user may read and write it\."):
            use()


def shown(connection: sa.Connection, command: str, *names: str) -> list[Any]:
    """The settings of a database, as a command shows them."""
    return [connection.exec_driver_sql(f"{command} {it}").scalar() for it in names]


def test_a_commit_to_a_file_survives_a_power_cut_and_no_wait_is_endless(
    file: Path, changes_url: str
) -> None:
    log = NotificationLog(changes_url)
    log.append({log.name: ["a"]})

    with log._transaction() as connection:
        modes = shown(connection, "PRAGMA", "journal_mode", "synchronous", "busy_timeout")

    assert modes == ["delete", 3, 10_000]  # 3: EXTRA
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_no_wait_for_a_server_is_endless(database: str) -> None:
    """Neither for a server that lost its power nor for a writer that hangs."""
    with NotificationLog(f"{database}&keepalives_idle=5")._transaction() as connection:
        server = connection.connection.driver_connection
        assert server
        options = server.info.get_parameters()
        limits = ("statement_timeout", "idle_in_transaction_session_timeout")
        timeouts = shown(connection, "SHOW", *limits)

    names = ("connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval")
    assert [options[it] for it in names] == ["10", "10000", "5", "1"]
    assert timeouts == ["10s", "10s"]


def test_a_late_commit_is_never_passed_over(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two receivers that make the log, the one that began first commits last."""
    slow, fast = NotificationLog(url), NotificationLog(url)
    inserted, commit = threading.Event(), threading.Event()
    transaction = slow._transaction

    @contextlib.contextmanager
    def held() -> Iterator[sa.Connection]:
        with transaction() as inside:
            yield inside
            inserted.set()
            commit.wait()

    monkeypatch.setattr(slow, "_transaction", held)
    with ThreadPoolExecutor(2) as pool:
        try:
            first = pool.submit(slow.append, {slow.name: ["slow"]})
            inserted.wait()
            second = pool.submit(fast.append, {fast.name: ["fast"]})
            if url.startswith("postgresql"):
                wait_for_a_lock(url, second)
            overtaken = second.done()
            with pytest.raises(NotificationLogError, match="There is no notification log"):
                fast.read()
        finally:
            commit.set()
        first.result()
        second.result()

    assert not overtaken
    assert fast.read()[1:] == (2, ["slow", "fast"])


def wait_for_a_lock(database: str, writing: Future[None]) -> None:
    """Wait until a writer waits for another, or is done."""
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    with psycopg.connect(database, autocommit=True) as connection:
        while not writing.done() and connection.execute(query).fetchone() == (0,):
            pass


def test_a_tap_without_a_notification_log_does_not_import_sqlalchemy() -> None:
    """It takes 0.2 seconds."""
    code = "import sys, tap_public_jobs.tap; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
