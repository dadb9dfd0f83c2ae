"""The tables of change logs, and the statements on them.

Each statement works on SQLite and PostgreSQL, and names the log that it is about.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from tap_public_jobs.changelog.database import Transaction

MOST_ROWS = 100_000
"""Rows of one log. Each has a different publicId, so only a flood of invented ones fills it."""

MOST_UNRECOGNISED = 1_000
"""Payloads that one log keeps: the latest."""

LONGEST_PAYLOAD = 16_384
"""Characters that are kept of a payload."""

_CREATE = (
    """
    CREATE TABLE public_jobs_log (
        name TEXT PRIMARY KEY, log TEXT NOT NULL, position BIGINT NOT NULL,
        forgotten BIGINT NOT NULL, kept BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE public_jobs_log_change (
        name TEXT NOT NULL, public_id TEXT NOT NULL, position BIGINT NOT NULL,
        received_at TEXT NOT NULL, PRIMARY KEY (name, public_id)
    )
    """,
    "CREATE INDEX public_jobs_log_order ON public_jobs_log_change (name, position)",
    """
    CREATE TABLE public_jobs_log_unrecognised (
        name TEXT NOT NULL, number BIGINT NOT NULL, received_at TEXT NOT NULL,
        payload TEXT NOT NULL, PRIMARY KEY (name, number)
    )
    """,
)


class Place(NamedTuple):
    """How far a log has got."""

    log: str
    """Identity of the log. Positions in another log are unrelated."""
    position: int
    """Of its last row."""
    forgotten: int
    """The position to which rows were removed."""


class Counts(NamedTuple):
    """What a log holds."""

    log: str
    position: int
    rows: int
    unrecognised: int


def create(transaction: Transaction) -> None:
    """Create the tables."""
    for statement in _CREATE:
        transaction.execute(statement)


def places(transaction: Transaction) -> dict[str, Place]:
    """Return how far each log has got, by name."""
    rows = transaction.execute("SELECT name, log, position, forgotten FROM public_jobs_log")
    return {name: Place(*place) for name, *place in rows}


def append(
    transaction: Transaction, name: str, public_ids: Collection[str], now: str
) -> Collection[str]:
    """Note changes; in a full log, only those of jobs that it already has.

    A publicId has one row, at the position of its last notification: a reader that has seen the
    previous one sees the job again, and any other sees it once.

    Args:
        transaction: Locks out other writers, so that positions are in the order of commits, and a
            reader that sees n + 1 never misses n. With positions from a sequence, n could be
            committed later, and be skipped.
        name: Of the log, which is created if it does not exist.
        public_ids: Distinct.
        now: When they came.

    Returns:
        Those for which there is no space.
    """
    _make(transaction, name)
    transaction.execute("SAVEPOINT this_log")
    _note(transaction, name, public_ids, now)
    fits = _count(transaction, "public_jobs_log_change", name) <= MOST_ROWS
    transaction.execute("RELEASE this_log" if fits else "ROLLBACK TO this_log")
    if fits:
        return ()
    # One commit has the notifications of many senders: new jobs must not keep out known ones.
    known = set(read(transaction, name, after=0))
    _note(transaction, name, [it for it in public_ids if it in known], now)
    return set(public_ids) - known


def read(transaction: Transaction, name: str, after: int) -> list[str]:
    """Return the publicIds past a position."""
    query = """
        SELECT public_id FROM public_jobs_log_change
        WHERE name = :name AND position > :after ORDER BY position
    """
    return _column(transaction.execute(query, name=name, after=after))


def keep(transaction: Transaction, name: str, payload: str, now: str) -> None:
    """Keep a payload in which no publicId was found, and discard the oldest."""
    _make(transaction, name)
    transaction.execute("UPDATE public_jobs_log SET kept = kept + 1 WHERE name = :name", name=name)
    query = "SELECT kept FROM public_jobs_log WHERE name = :name"
    [(number,)] = transaction.execute(query, name=name)
    insert = "INSERT INTO public_jobs_log_unrecognised VALUES (:name, :number, :now, :payload)"
    text = payload[:LONGEST_PAYLOAD]
    transaction.execute(insert, name=name, number=number, now=now, payload=text)
    _discard(transaction, name, number - MOST_UNRECOGNISED)


def unrecognised(transaction: Transaction, name: str, limit: int) -> list[tuple[str, str]]:
    """Return the last payloads without a publicId and when they came, the latest last."""
    query = """
        SELECT received_at, payload FROM public_jobs_log_unrecognised
        WHERE name = :name ORDER BY number DESC LIMIT :limit
    """
    return [(at, text) for at, text in transaction.execute(query, name=name, limit=limit)][::-1]


def counts(transaction: Transaction, name: str, at: Place) -> Counts:
    """Count what a log holds."""
    rows = _count(transaction, "public_jobs_log_change", name)
    payloads = _count(transaction, "public_jobs_log_unrecognised", name)
    return Counts(at.log, at.position, rows, payloads)


def forget(transaction: Transaction, name: str, up_to: int) -> int:
    """Remove the rows to a position, and return how many there were."""
    transaction.execute(
        "UPDATE public_jobs_log SET forgotten = :up_to WHERE name = :name AND forgotten < :up_to",
        name=name,
        up_to=up_to,
    )
    delete = "DELETE FROM public_jobs_log_change WHERE name = :name AND position <= :up_to"
    transaction.execute(delete, name=name, up_to=up_to)
    return transaction.changed


def prune(
    transaction: Transaction, name: str, before: str | None, most: int | None
) -> tuple[int, int]:
    """Remove old rows and payloads, and return how many there were.

    Args:
        transaction: Where.
        name: Of the log.
        before: Remove what came before this time.
        most: Remove all but the last of this number.
    """
    changes = ("public_jobs_log_change", "position")
    payloads = ("public_jobs_log_unrecognised", "number")
    return (
        forget(transaction, name, _end(transaction, *changes, name, before, most)),
        _discard(transaction, name, _end(transaction, *payloads, name, before, most)),
    )


def _note(transaction: Transaction, name: str, public_ids: Collection[str], now: str) -> None:
    transaction.execute(
        "UPDATE public_jobs_log SET position = position + :count WHERE name = :name",
        count=len(public_ids),
        name=name,
    )
    query = "SELECT position FROM public_jobs_log WHERE name = :name"
    [(last,)] = transaction.execute(query, name=name)
    transaction.execute_many(
        """
        INSERT INTO public_jobs_log_change VALUES (:name, :public_id, :position, :now)
        ON CONFLICT (name, public_id)
        DO UPDATE SET position = excluded.position, received_at = excluded.received_at
        """,
        (
            {"name": name, "public_id": public_id, "position": position, "now": now}
            for position, public_id in enumerate(public_ids, last - len(public_ids) + 1)
        ),
    )


def _make(transaction: Transaction, name: str) -> None:
    insert = "INSERT INTO public_jobs_log VALUES (:name, :log, 0, 0, 0) ON CONFLICT DO NOTHING"
    transaction.execute(insert, name=name, log=str(uuid.uuid4()))


def _discard(transaction: Transaction, name: str, up_to: int) -> int:
    delete = "DELETE FROM public_jobs_log_unrecognised WHERE name = :name AND number <= :up_to"
    transaction.execute(delete, name=name, up_to=up_to)
    return transaction.changed


def _end(  # noqa: PLR0913, PLR0917  # private, and called in one place
    transaction: Transaction,
    table: str,
    number: str,
    name: str,
    before: str | None,
    most: int | None,
) -> int:
    """Return the number of the last row that is too old or one too many, or 0."""
    ends = [0]
    if before is not None:
        query = f"SELECT max({number}) FROM {table} WHERE name = :name AND received_at < :before"  # noqa: S608
        ends += _column(transaction.execute(query, name=name, before=before))
    if most is not None:
        query = f"SELECT {number} FROM {table} WHERE name = :name ORDER BY {number} DESC LIMIT 1 OFFSET :most"  # noqa: S608, E501
        ends += _column(transaction.execute(query, name=name, most=most))
    return max(end or 0 for end in ends)


def _count(transaction: Transaction, table: str, name: str) -> int:
    query = f"SELECT count(*) FROM {table} WHERE name = :name"  # noqa: S608  # a constant
    [(count,)] = transaction.execute(query, name=name)
    return int(count)


def _column(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[0] for row in rows]
