"""The notification log, in which webhooks note changed jobs, and which the tap reads.

One database, SQLite or PostgreSQL, holds a log for each name, so that one receiver serves many
organisations. A log keeps only the last positions, and a reader notices that it has fallen behind
them. Knows neither Singer nor HTTP.

SQLAlchemy takes 0.2 seconds to import, so import this module only where a log is used.
"""

import contextlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tap_public_jobs.errors import NotificationLogError
from tap_public_jobs.sync.notifications import Notifications

# What the receiver knows of the tap.
__all__ = ["NAME", "PATIENCE", "NotificationLog", "NotificationLogError"]

# Seconds to wait for a connection, or for another writer.
PATIENCE = 10

# The name of a log: one for each organisation.
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

DEFAULT_NAME = "default"

# Options of a connection to PostgreSQL; those in the URL replace them.
_WAITING = {
    "connect_timeout": str(PATIENCE),
    "tcp_user_timeout": str(PATIENCE * 1000),
    # A server that lost its power never answers, and by default TCP notices after two hours.
    "keepalives_idle": str(PATIENCE),
    "keepalives_interval": "1",
}

# A writer locks out the others before it reads anything: positions are then in the order of
# commits, and a reader that has seen position n never misses one below it.
_BEGIN_WRITING = {
    "sqlite": (
        "PRAGMA synchronous = EXTRA",  # what is committed survives a power cut
        "BEGIN IMMEDIATE",
    ),
    "postgresql": (
        # A writer that hangs must not stop the others for good.
        f"SET LOCAL statement_timeout = '{PATIENCE}s'",
        f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE}s'",
        "SELECT pg_advisory_xact_lock(7062690576)",  # any number that is always the same
    ),
}

_TABLES = sa.MetaData()
_LOGS = sa.Table(
    "public_jobs_change_log",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("log", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
)
_CHANGES = sa.Table(
    "public_jobs_change",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("public_id", sa.Text, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("name", "position"),
)

_INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}

_NOT_A_URL = (
    "changes_url must be sqlite:///path/to/a/file, or postgresql+psycopg://user:password@host/name "
    "with an @ in the password as %40."
)


class NotificationLog:
    """The log at a URL.

    Appending creates it. Reading a log that does not exist is an error, because a mistyped path
    would otherwise look like a log without changes.

    Args:
        url: `sqlite:///…` or `postgresql+psycopg://…`; `?name=…` chooses one of several logs.

    Raises:
        NotificationLogError: The URL is not supported, or the driver is missing.
    """

    def __init__(self, url: str) -> None:
        address, self.name = _parse(url)
        self._file = address.database if address.drivername == "sqlite" else None
        # A server's address is not shown: a mistyped URL can have the password in any part.
        self._place = self._file or "the PostgreSQL database"
        timeout = {"timeout": PATIENCE, "isolation_level": None} if self._file else {}
        try:
            self._engine = sa.create_engine(address, poolclass=NullPool, connect_args=timeout)
        except ImportError as error:
            msg = (
                "changes_url needs a driver that is missing: add psycopg[binary] to the tap's "
                "pip_url in meltano.yml and run `meltano install tap-public-jobs`, or install it "
                "beside the command."
            )
            raise NotificationLogError(msg) from error

    def append(self, changes: Mapping[str, Iterable[str | None]]) -> None:
        """Note that jobs have changed, in one commit, and return after it.

        Args:
            changes: For each name of a log of the database, the publicIds of jobs; None for a
                notification that names no job. Without any, this creates the log, or makes sure
                that the database can be reached and locked.

        Raises:
            NotificationLogError: No change was noted.
        """
        with self._transaction() as connection:
            _TABLES.create_all(connection)  # looks first which tables exist
            for name, public_ids in changes.items():
                _append(connection, name, list(dict.fromkeys(public_ids)))

    def read(self, after: int = 0) -> Notifications:
        """Read the changes past a position.

        Args:
            after: The position that was read last.

        Raises:
            NotificationLogError: There is no log, or it cannot be read.
        """
        # One statement reads one consistent moment.
        is_unread = (_CHANGES.c.name == _LOGS.c.name) & (_CHANGES.c.position > after)
        columns = sa.select(_LOGS.c.log, _LOGS.c.position, _CHANGES.c.public_id)
        query = columns.outerjoin_from(_LOGS, _CHANGES, is_unread).where(_LOGS.c.name == self.name)
        rows = self._rows(query.order_by(_CHANGES.c.position))
        if not rows:
            raise self._no_log()
        log_id, position, _ = rows[0]
        public_ids = [public_id for *_, public_id in rows if public_id is not None]
        return Notifications(log_id, position, public_ids)

    def _rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        with self._errors():
            if self._file and not Path(self._file).exists():  # SQLite would create it
                raise self._no_log()
            with self._engine.connect() as connection:
                if not sa.inspect(connection).has_table(_LOGS.name):
                    raise self._no_log()
                return connection.execute(query).all()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with self._errors(), self._engine.begin() as connection:
            for statement in _BEGIN_WRITING[self._engine.dialect.name]:
                connection.exec_driver_sql(statement)
            yield connection

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, TypeError, ValueError) as error:
            cause = getattr(error, "orig", None) or error
            # Names in quotes are parts of the URL.
            reason = re.sub(r"([\"']).*?\1", "…", str(cause).strip().partition("\n")[0])
            msg = (
                f"The notification log in {self._place} cannot be used ({reason}). Make sure that "
                "the database, or the folder of the file, exists and has space, and that this user "
                "may read and write it."
            )
            raise NotificationLogError(msg) from None  # the cause shows the URL

    def _no_log(self) -> NotificationLogError:
        named, remedy = "", "start public-jobs-webhook with the same one first"
        if self.name != DEFAULT_NAME:
            named = f" with the name {self.name}"
            remedy = f"add a line `{self.name} <token>` to the receiver's tokens, and restart it"
        return NotificationLogError(
            f"There is no notification log in {self._place}{named}. Correct changes_url, or "
            f"{remedy}."
        )


def _parse(url: str) -> tuple[sa.URL, str]:
    """Return the database's address, and the name of the log in it."""
    try:
        parsed = sa.make_url(url)
    except (SQLAlchemyError, ValueError):
        raise NotificationLogError(_NOT_A_URL) from None  # the cause shows the URL
    # SQLAlchemy drops an empty name, as a variable that is not set leaves it.
    absent = "" if re.search("[?&]name=", url) else DEFAULT_NAME
    name = parsed.query.get("name", absent)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        msg = "The name in changes_url must be 1 to 64 letters, digits or any of -._"
        raise NotificationLogError(msg)
    address = parsed.difference_update_query(["name"])
    database, host = address.database or "", address.host or ""
    is_file = database and not database.startswith((":memory:", "file:"))
    if is_file and address == sa.URL.create("sqlite", database=database):
        return address, name
    # With an @ in the host or the database, a part of the password is there: it needs %40.
    is_server = address.drivername in {"postgresql", "postgresql+psycopg"}
    if is_server and "@" not in host + database:
        query = {**_WAITING, **address.query}
        return address.set(drivername="postgresql+psycopg", query=query), name
    raise NotificationLogError(_NOT_A_URL)


def _append(connection: sa.Connection, name: str, public_ids: list[str | None]) -> None:
    """Give each change a position, and delete those that are too old.

    A new notification moves the row to the end, so every reader sees it again.
    """
    this = _LOGS.c.name == name
    position = connection.scalar(sa.select(_LOGS.c.position).where(this))
    if position is None:
        position = 0
        connection.execute(sa.insert(_LOGS).values(name=name, log=str(uuid.uuid4()), position=0))
    rows = [
        {"name": name, "public_id": public_id, "position": at}
        for at, public_id in enumerate(public_ids, position + 1)
        if public_id is not None
    ]
    position += len(public_ids)
    connection.execute(sa.update(_LOGS).where(this).values(position=position))
    mine = _CHANGES.c.name == name
    if rows:
        insert = _INSERT[connection.dialect.name](_CHANGES)
        moved = {"position": insert.excluded.position}
        connection.execute(insert.on_conflict_do_update(_CHANGES.primary_key, set_=moved), rows)
    too_old = _CHANGES.c.position <= Notifications(name, position).forgotten
    connection.execute(sa.delete(_CHANGES).where(mine, too_old))
