"""The database of a change log: SQLite or PostgreSQL, behind one kind of transaction.

It uses the drivers alone. SQLAlchemy takes half a second to import, which is too much for a command
that a scheduler starts every minute.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

PATIENCE = 10
"""Seconds to wait for a connection, or for another writer."""

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""The name of a log: one for each organisation."""

DEFAULT_NAME = "default"

_NOT_A_URL = (
    "changes_url must be sqlite:///path/to/a/file or postgresql+psycopg://user:password@host/name; "
    "write an @ in the password as %40."
)


class ChangeLogError(Exception):
    """The log cannot be used; the message names the remedy, and no password."""


class Transaction:
    """Statements that are committed together.

    Args:
        connection: Of sqlite3 or psycopg.
        parameter: How the driver writes the parameter `:name`, as a template of `re.sub`.
        start: The statements that begin it.
    """

    def __init__(
        self,
        connection: Any,  # noqa: ANN401  # two drivers
        parameter: str,
        start: Sequence[str],
    ) -> None:
        self._start = start
        self._connection = connection
        self._cursor = connection.cursor()
        self._parameter = parameter

    def execute(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        self._cursor.execute(self._translated(statement), values)
        return self._cursor.fetchall() if self._cursor.description else []

    def __enter__(self) -> Self:
        try:
            for statement in self._start:
                self.execute(statement)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._cursor.execute("COMMIT")
        finally:
            self._end()

    def _end(self) -> None:
        # SQLite keeps the file and the lock of a closed connection while a failed statement is
        # referenced, as it is by the traceback of its error.
        self._cursor.close()
        self._connection.rollback()

    @property
    def changed(self) -> int:
        """The number of rows that the last statement changed."""
        return int(self._cursor.rowcount)

    def execute_many(self, statement: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Execute a statement once for each row of values."""
        self._cursor.executemany(self._translated(statement), rows)

    def _translated(self, statement: str) -> str:
        return re.sub(r":(\w+)", self._parameter, statement)


class Address(NamedTuple):
    """The parts of a URL."""

    database: SQLite | PostgreSQL
    name: str
    """Of the log in that database."""


def parse(url: str) -> Address:
    """Read a URL; `?name=` names the log and is no part of the database's address.

    Raises:
        ChangeLogError: The URL is not supported, or the driver is missing.
    """
    address, _, text = url.partition("?")
    scheme, _, place = address.partition("://")
    query = parse_qsl(text, keep_blank_values=True)
    names = [value for key, value in query if key == "name"] or [DEFAULT_NAME]
    if len(names) > 1 or not NAME.fullmatch(names[0]):
        msg = "The name in changes_url must be 1 to 64 letters, digits or any of -._"
        raise ChangeLogError(msg)
    options = [(key, value) for key, value in query if key != "name"]
    if scheme == "sqlite" and not options:
        return Address(_sqlite(place), names[0])
    if scheme in {"postgresql", "postgresql+psycopg"} and _is_server(address):
        settings = f"postgresql://{place}?{urlencode(options, quote_via=quote)}"
        return Address(_postgresql(settings), names[0])
    raise ChangeLogError(_NOT_A_URL)


def _is_server(address: str) -> bool:
    try:
        split = urlsplit(address)
        return split.netloc.count("@") <= 1 and split.port != 0
    except ValueError:
        return False


def _sqlite(place: str) -> SQLite:
    path = place.removeprefix("/")
    if path == place or not path or path.startswith((":memory:", "file:")):
        raise ChangeLogError(_NOT_A_URL)
    return SQLite(path)


def _postgresql(address: str) -> PostgreSQL:
    try:
        import psycopg  # noqa: PLC0415  # optional, and slow
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415
    except ImportError as error:
        msg = "The driver of the change log's database is missing: install psycopg[binary]."
        raise ChangeLogError(msg) from error
    try:
        return PostgreSQL(conninfo_to_dict(address), psycopg.Error)
    except psycopg.Error:  # its message may hold a part of the password
        raise ChangeLogError(_NOT_A_URL) from None


class SQLite:
    """A file.

    Its journal is SQLite's default, not a WAL. Connections are short, so that a WAL would be merged
    and removed after every commit, and on a full disk nothing could be removed from it. Reading
    the log needs no permission to write.
    """

    errors = (sqlite3.Error, OSError, TypeError, ValueError)
    """What a transaction raises if the database fails."""

    def __init__(self, path: str) -> None:
        self.place = path

    @contextlib.contextmanager
    def transaction(
        self, *, write: bool = False, create: bool = False, journal: bool = True
    ) -> Iterator[Transaction | None]:
        """Commit what is executed inside, or none of it.

        Writers are locked out before anything is read and until the commit.

        Args:
            write: Whether anything is changed.
            create: Whether to create a missing file; if not, None is yielded.
            journal: False to remove rows on a full disk. A kill during that commit could corrupt
                the file.
        """
        if create:
            self._make()
        elif not Path(self.place).exists():
            yield None
            return
        uri = f"{Path(self.place).absolute().as_uri()}?mode=rw"  # never creates one
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        ) as connection:
            start = (
                # Gives back the space of removed rows. On a file with tables this would write.
                "PRAGMA auto_vacuum = FULL" if create and _is_empty(self.place) else "",
                "PRAGMA synchronous = EXTRA",  # what is committed survives a power cut
                f"PRAGMA journal_mode = {'DELETE' if journal else 'MEMORY'}" if write else "",
                "BEGIN IMMEDIATE" if write else "BEGIN",
            )
            with Transaction(connection, r":\1", start) as transaction:
                yield transaction

    def _make(self) -> None:
        """Create the file for its owner alone, unless it exists.

        An existing one must not be opened here: closing it would release the locks that another
        thread holds on it (POSIX), and other processes would read and write what is half written.
        """
        path = os.path.realpath(self.place)  # a link may name a missing file
        with contextlib.suppress(FileExistsError):  # SQLite gives the journal the same mode
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def has_tables(self, transaction: Transaction) -> bool:
        """Whether the tables of change logs exist."""
        query = "SELECT 1 FROM sqlite_master WHERE name = 'public_jobs_log'"
        return bool(transaction.execute(query))

    def lacks_space(self, error: BaseException) -> bool:
        """Whether an error is one that a full disk causes; then the journal cannot be written."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind of error
        return code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


def _is_empty(path: str) -> bool:
    return Path(path).stat().st_size == 0


class PostgreSQL:
    """A database on a server.

    Args:
        settings: Of the connection, as libpq calls them.
        error: The base class of the driver's errors.
    """

    def __init__(self, settings: Mapping[str, Any], error: type[Exception]) -> None:
        waiting = {
            "connect_timeout": PATIENCE,
            "tcp_user_timeout": PATIENCE * 1000,
            # A server that lost its power in the middle of a commit never answers. By default, TCP
            # notices after two hours.
            "keepalives_idle": PATIENCE,
            "keepalives_interval": 1,
        }
        self._settings: dict[str, Any] = {**waiting, **settings, "autocommit": True}
        self.errors = (error, OSError, TypeError, ValueError)
        self.place = f"{settings.get('dbname')} on {settings.get('host', 'localhost')}"

    @contextlib.contextmanager
    def transaction(
        self,
        *,
        write: bool = False,
        create: bool = False,  # noqa: ARG002  # its administrator creates a database
        journal: bool = True,  # noqa: ARG002  # its administrator fixes a full disk
    ) -> Iterator[Transaction | None]:
        """Commit what is executed inside, or none of it; as `SQLite.transaction`."""
        import psycopg  # noqa: PLC0415  # optional, and slow

        # A writer that hangs must not stop the others for good.
        limit = f"SET LOCAL statement_timeout = '{PATIENCE}s'"
        reading = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", limit)
        writing = (
            "BEGIN",
            limit,
            f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE}s'",
            "SELECT pg_advisory_xact_lock(7062690576)",  # any number that is always the same
        )
        with contextlib.closing(psycopg.connect(**self._settings)) as connection:
            start = writing if write else reading
            with Transaction(connection, r"%(\1)s", start) as transaction:
                yield transaction

    def has_tables(self, transaction: Transaction) -> bool:
        """Whether the tables of change logs exist."""
        return transaction.execute("SELECT to_regclass('public_jobs_log')") != [(None,)]

    def lacks_space(self, error: BaseException) -> bool:  # noqa: ARG002  # as SQLite's
        """Never: a server whose disk is full needs its administrator."""
        return False
