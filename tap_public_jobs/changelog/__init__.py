"""The log of changed publicIds: webhooks write it, the tap reads it.

One database holds a log for each name, so that one receiver serves many organisations, and one
query shows which of them have news. Knows neither Singer nor HTTP.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tap_public_jobs.changelog import tables
from tap_public_jobs.changelog.database import DEFAULT_NAME, ChangeLogError, parse
from tap_public_jobs.changelog.tables import Counts, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from tap_public_jobs.changelog.database import Transaction

__all__ = ["ChangeLog", "ChangeLogError", "Changes", "Counts", "Place"]

T = TypeVar("T")


class Changes(NamedTuple):
    """What was notified since a position."""

    log: str
    """Identity of the log. Positions in another log are unrelated."""
    position: int
    """Of the last row read. Smaller than requested if an earlier copy of the log was restored."""
    public_ids: list[str]
    """Distinct, in the order of their last notification."""
    forgotten: int = 0
    """The position to which rows were removed. A reader that had not got this far missed some."""


class ChangeLog:
    """The log at a URL.

    Appending creates it. Reading a log that does not exist is an error, because a mistyped path
    would otherwise look like a log without changes.

    Args:
        url: `sqlite:///…` or `postgresql+psycopg://…`; `?name=…` chooses one of several logs.
        now: The clock.

    Raises:
        ChangeLogError: The URL is not supported, or the driver is missing.
    """

    def __init__(self, url: str, *, now: Callable[[], datetime] | None = None) -> None:
        self._database, self.name = parse(url)
        self._now = now or (lambda: datetime.now(UTC))

    def append(self, public_ids: Iterable[str]) -> None:
        """Note that jobs have changed; returns after the commit.

        Args:
            public_ids: Of the jobs. Without any, this only proves that the log can be written.

        Raises:
            ChangeLogError: The changes were not noted.
        """
        if self.append_to({self.name: list(public_ids)}):
            raise self.full(self.name)

    def append_to(self, public_ids: Mapping[str, Collection[str]]) -> dict[str, Collection[str]]:
        """Note changes in several logs, in one commit.

        Args:
            public_ids: For each name of a log, the jobs.

        Returns:
            For each name of a log that is full, the jobs that were not noted.
        """
        now = _text(self._now())
        with self._transaction(write=True, create=True) as transaction:
            refused = {
                name: tables.append(transaction, name, dict.fromkeys(ids), now)
                for name, ids in public_ids.items()
            }
            return {name: ids for name, ids in refused.items() if ids}

    def keep(self, payload: str, name: str | None = None) -> None:
        """Keep the beginning of a payload in which no publicId was found; returns after the commit.

        Args:
            payload: Its text.
            name: Of the log, if not of this one.
        """
        with self._transaction(write=True, create=True) as transaction:
            tables.keep(transaction, name or self.name, payload, _text(self._now()))

    def read(self, after: int = 0) -> Changes:
        """Read the changes past a position.

        Args:
            after: The position that was read last.
        """
        with self._transaction() as transaction:
            place = self._place(transaction)
            public_ids = tables.read(transaction, self.name, after)
            return Changes(place.log, place.position, public_ids, place.forgotten)

    def places(self) -> dict[str, Place]:
        """Return how far each log of the database has got, by name."""
        with self._transaction() as transaction:
            return tables.places(transaction)

    def unrecognised(self, limit: int) -> list[tuple[str, str]]:
        """Return when the last payloads without a publicId came, and the payloads."""
        with self._transaction() as transaction:
            return tables.unrecognised(transaction, self.name, limit)

    def counts(self) -> Counts:
        """Count what the log holds."""
        with self._transaction() as transaction:
            return tables.counts(transaction, self.name, self._place(transaction))

    def forget(self, up_to: int, name: str | None = None) -> int:
        """Remove the rows to a position, and return how many there were.

        Args:
            up_to: The position of the last that is removed.
            name: Of the log, if not of this one.
        """
        return self._remove(lambda to: tables.forget(to, name or self.name, up_to))

    def prune(self, *, before: datetime | None = None, most: int | None = None) -> tuple[int, int]:
        """Remove old rows and payloads from every log of the database, read or not.

        `Changes.forgotten` shows a reader whether it has missed some.

        Args:
            before: Remove what came before.
            most: Remove all but the last of this number, in each log.

        Returns:
            The number of rows, and of payloads.
        """
        limit = _text(before) if before else None

        def remove(transaction: Transaction) -> tuple[int, int]:
            removed = [
                tables.prune(transaction, name, limit, most) for name in tables.places(transaction)
            ]
            return sum(rows for rows, _ in removed), sum(payloads for _, payloads in removed)

        return self._remove(remove)

    def full(self, name: str) -> ChangeLogError:
        """Return the error for a log that is full."""
        return ChangeLogError(
            f"The change log {name} in {self._database.place} is full ({tables.MOST_ROWS:,} jobs): "
            "run the tap, then public-jobs-webhook prune."
        )

    def _place(self, transaction: Transaction) -> Place:
        place = tables.places(transaction).get(self.name)
        if place is None:
            raise self._missing()
        return place

    def _remove(self, remove: Callable[[Transaction], T]) -> T:
        try:
            with self._transaction(write=True) as transaction:
                return remove(transaction)
        except ChangeLogError as error:
            if not (error.__cause__ and self._database.lacks_space(error.__cause__)):
                raise
        with self._transaction(write=True, journal=False) as transaction:
            return remove(transaction)

    @contextlib.contextmanager
    def _transaction(
        self, *, write: bool = False, create: bool = False, journal: bool = True
    ) -> Iterator[Transaction]:
        database = self._database
        try:
            with database.transaction(write=write, create=create, journal=journal) as transaction:
                if transaction is None:
                    raise self._missing()
                if not database.has_tables(transaction):
                    if not create:
                        raise self._missing()
                    tables.create(transaction)
                yield transaction
        except database.errors as error:
            said = getattr(error, "strerror", None) or str(error)
            reason = said.strip().partition("\n")[0]
            msg = (
                f"The change log in {database.place} cannot be used ({reason}). Make sure that "
                "the database exists and its disk has space, and that this user may read and "
                "write it."
            )
            raise ChangeLogError(msg) from error

    def _missing(self) -> ChangeLogError:
        named = "" if self.name == DEFAULT_NAME else f" with the name {self.name}"
        return ChangeLogError(
            f"There is no change log in {self._database.place}{named}. Correct changes_url, or "
            "start public-jobs-webhook with the same one first."
        )


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")
