"""The log of changed publicIds: webhooks fill it, the tap reads it.

Tables in SQLite or PostgreSQL. Knows neither Singer nor HTTP.
"""

from __future__ import annotations

import contextlib
import uuid
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, CursorResult, Engine

    Execute = Callable[..., CursorResult[*tuple[Any, ...]]]

PATIENCE = 10
"""Seconds to wait for a connection, or for another writer."""

_SCHEMA = """
CREATE TABLE public_jobs_change_log (
    log TEXT PRIMARY KEY, position BIGINT NOT NULL, forgotten BIGINT NOT NULL
);
CREATE TABLE public_jobs_changes (
    position BIGINT PRIMARY KEY, received_at TEXT NOT NULL, public_id TEXT NOT NULL
);
CREATE TABLE public_jobs_unrecognised (received_at TEXT NOT NULL, payload TEXT NOT NULL)
"""

_LOCK = {
    # FULL: what is committed survives a power cut. IMMEDIATE: locked before anything is read.
    "sqlite": ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "BEGIN IMMEDIATE"),
    # A writer that hangs must not stop the others for good.
    "postgresql": (
        f"SET LOCAL statement_timeout = '{PATIENCE}s'",
        f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE}s'",
        "SELECT pg_advisory_xact_lock(7062690576)",  # any number that is always the same
    ),
}

_CONNECT = {
    "sqlite": {"timeout": PATIENCE},
    "postgresql": {"connect_timeout": PATIENCE, "tcp_user_timeout": PATIENCE * 1000},
}

_NOT_A_URL = (
    "changes_url must be sqlite:///path/to/a/file or postgresql+psycopg://user:password@host/name; "
    "an @ in the password is written %40."
)


class ChangeLogError(Exception):
    """The log cannot be used; the message names the remedy, and no password."""


class Changes(NamedTuple):
    """What was notified since a position."""

    log: str
    """Identity of the log. Positions in another log say nothing."""
    position: int
    """Of the last row read. Less than asked for if an earlier copy of the log was put back."""
    public_ids: list[str]
    """Distinct, in the order of their first notification."""
    forgotten: int = 0
    """Up to which position rows were removed. Who had read less has missed some."""


class Counts(NamedTuple):
    """What a log holds."""

    log: str
    position: int
    rows: int
    unrecognised: int


class ChangeLog:
    """The log at a URL.

    Appending makes it. Reading one that is not there is an error, because a path with a typing
    mistake would otherwise look like a log without changes.

    Args:
        url: `sqlite:///…` or `postgresql+psycopg://…`, as SQLAlchemy reads it.

    Raises:
        ChangeLogError: It is another URL, or the driver is missing.
    """

    def __init__(self, url: str) -> None:
        self._engine, self._name = _engine(url)

    def append(self, public_ids: Iterable[str]) -> None:
        """Note that jobs have changed; returns after the commit.

        Args:
            public_ids: Of the jobs. Without any, this only proves that the log can be written.
        """
        ids, now = list(public_ids), _now()
        with self._transaction(write=True, create=True) as execute:
            count = "UPDATE public_jobs_change_log SET position = position + :count"
            execute(count, {"count": len(ids)})
            last = execute("SELECT position FROM public_jobs_change_log").scalar_one()
            rows = [
                {"position": position, "now": now, "public_id": public_id}
                for position, public_id in enumerate(ids, last - len(ids) + 1)
            ]
            if rows:
                execute(
                    "INSERT INTO public_jobs_changes VALUES (:position, :now, :public_id)", rows
                )

    def keep(self, payload: str) -> None:
        """Keep a payload in which no publicId was found; returns after the commit."""
        with self._transaction(write=True, create=True) as execute:
            insert = "INSERT INTO public_jobs_unrecognised VALUES (:now, :payload)"
            execute(insert, {"now": _now(), "payload": payload})

    def read(self, after: int = 0) -> Changes:
        """Read the changes past a position.

        Args:
            after: The position that was read last.
        """
        with self._transaction() as execute:
            # What comes after the second query's look at the log is left to the next reader.
            log, last = execute("SELECT log, position FROM public_jobs_change_log").one()
            query = """
                SELECT public_id FROM public_jobs_changes
                WHERE position > :after AND position <= :last
                GROUP BY public_id ORDER BY min(position)
            """
            ids = list(execute(query, {"after": after, "last": last}).scalars())
            # Last, because another may be removing rows meanwhile.
            forgotten = execute("SELECT forgotten FROM public_jobs_change_log").scalar_one()
            return Changes(log, last, ids, forgotten)

    def unrecognised(self, limit: int) -> Iterator[tuple[str, str]]:
        """Yield when the last payloads without a publicId came, and the payloads."""
        query = "SELECT * FROM public_jobs_unrecognised ORDER BY received_at DESC LIMIT :limit"
        with self._transaction() as execute:
            rows = execute(query, {"limit": limit}).all()
        yield from ((received_at, payload) for received_at, payload in reversed(rows))

    def counts(self) -> Counts:
        """Count what the log holds."""
        with self._transaction() as execute:
            log, position = execute("SELECT log, position FROM public_jobs_change_log").one()
            rows = execute("SELECT count(*) FROM public_jobs_changes").scalar_one()
            unrecognised = execute("SELECT count(*) FROM public_jobs_unrecognised").scalar_one()
            return Counts(log, position, rows, unrecognised)

    def forget(self, up_to: int) -> int:
        """Remove the rows up to a position, and return how many they were."""
        with self._transaction(write=True) as execute:
            note = "UPDATE public_jobs_change_log SET forgotten = :up_to WHERE forgotten < :up_to"
            execute(note, {"up_to": up_to})
            delete = "DELETE FROM public_jobs_changes WHERE position <= :up_to"
            return int(execute(delete, {"up_to": up_to}).rowcount)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _transaction(self, *, write: bool = False, create: bool = False) -> Iterator[Execute]:
        """Commit what is executed meanwhile, or none of it.

        Writers are locked out before a position is assigned and until the commit. So positions are
        in the order of commits: a reader that sees n + 1 has seen n, or will never miss it. With
        positions from a sequence, n could still come, and would be passed over.
        """
        from sqlalchemy import inspect  # noqa: PLC0415  # the tap starts without it
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        backend = self._engine.dialect.name
        try:
            if not create and backend == "sqlite" and not Path(self._name).exists():
                raise self._missing()
            with self._engine.connect() as connection:
                for statement in _LOCK[backend] if write else ():
                    connection.exec_driver_sql(statement)
                if not inspect(connection).has_table("public_jobs_change_log"):
                    if not create:
                        raise self._missing()
                    _create(connection)
                yield partial(_execute, connection)
                connection.commit()
        except (SQLAlchemyError, OSError, TypeError, ValueError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            msg = (
                f"The change log in {self._name} cannot be used ({reason}). See that the database "
                "is there, and that this user may read and write it."
            )
            raise ChangeLogError(msg) from error

    def _missing(self) -> ChangeLogError:
        return ChangeLogError(
            f"There is no change log in {self._name}. Correct changes_url, or start "
            "public-jobs-webhook with the same one first."
        )


def _execute(
    connection: Connection,
    statement: str,
    values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> CursorResult[*tuple[Any, ...]]:
    from sqlalchemy import text  # noqa: PLC0415

    return connection.execute(text(statement), values)


def _create(connection: Connection) -> None:
    for statement in _SCHEMA.split(";"):
        connection.exec_driver_sql(statement)
    insert = "INSERT INTO public_jobs_change_log VALUES (:log, 0, 0)"
    _execute(connection, insert, {"log": str(uuid.uuid4())})


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _engine(address: str) -> tuple[Engine, str]:
    """Make the engine for a URL, and tell where that is."""
    try:
        from sqlalchemy import NullPool, create_engine, make_url  # noqa: PLC0415
        from sqlalchemy.exc import ArgumentError  # noqa: PLC0415
    except ImportError as error:
        msg = "A change log needs SQLAlchemy: install tap-public-jobs[webhook]."
        raise ChangeLogError(msg) from error
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise ChangeLogError(_NOT_A_URL) from None
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    backend, host = url.get_backend_name(), url.host or "localhost"
    place = f"{url.database} on {host}"
    if backend == "sqlite":
        place = url.database or ":memory:"
    known = url.drivername in {"sqlite", "postgresql+psycopg"}
    odd = url.host and backend == "sqlite"  # two slashes where three belong
    if not known or odd or place.startswith((":memory:", "file:")) or "@" in place:
        raise ChangeLogError(_NOT_A_URL)
    try:
        # Without a pool. A file that is kept open stays what it was when it is removed or replaced,
        # and what is written into it is lost.
        engine = create_engine(
            url,
            poolclass=NullPool,
            hide_parameters=True,
            connect_args=_CONNECT[backend],
        )
    except (TypeError, ValueError):
        raise ChangeLogError(_NOT_A_URL) from None
    except ImportError as error:
        msg = "The driver of the change log's database is missing: install psycopg[binary]."
        raise ChangeLogError(msg) from error
    return engine, place
