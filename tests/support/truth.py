"""What was published when: the judge of all histories, whoever plays them.

A run may see what was published at its beginning, at its end, or at any moment between. If caches
or replicas answer it, also what was published before.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import cache
from typing import Any

Row = dict[str, Any]

# The times of a row in order, and whether its job was published then.
PERIODS = {
    "opened_after": False, "first_seen_at": True, "last_seen_at": True, "unpublished_at": False
}  # fmt: skip

# Whole seconds or milliseconds since the epoch, or a date.
TIME = re.compile(r"\b1\d{9}(?:\d{3})?\b|\d{4}-\d\d-\d\dT[\d:.]+Z")


@cache
def milliseconds(time: str) -> int:
    """Read a time that `TIME` matches."""
    if time.isdecimal():
        return int(time.ljust(13, "0"))
    return round(1000 * datetime.fromisoformat(time).timestamp())


def times_in(value: Any) -> set[int]:
    """Every time in a JSON value, in milliseconds since the epoch."""
    return {milliseconds(time) for time in TIME.findall(json.dumps(value, default=str))}


class Truth:
    """What was published at each time that a tap has written, by the tap's own clock."""

    def __init__(self) -> None:
        self._published: dict[int, list[Collection[str]]] = {}

    def note(self, written: Any, known: set[int], published: Iterable[Collection[str]]) -> None:
        """Note what a run wrote, and the ids that were published at each moment of it.

        The times that the state had before belong to the runs that wrote them first.
        """
        moments = [*published]
        for time in times_in(written) - known:
            self._published.setdefault(time, []).extend(moments)

    @property
    def latest(self) -> int:
        """The latest time of all, in milliseconds."""
        return max(self._published, default=0)

    def false_times(self, rows: Iterable[Row]) -> Iterator[tuple[str, str, str]]:
        """Yield id, column and time where a row of `job_publications` is wrong.

        A job was published when it was seen, and was not when it was not.
        """
        for row in rows:
            times = {column: milliseconds(row[column]) for column in PERIODS if row[column]}
            for column, time in times.items():
                if PERIODS[column] not in {row["id"] in it for it in self._published[time]}:
                    yield row["id"], column, row[column]
            is_ordered = [*times.values()] == sorted(times.values())
            if not is_ordered or row["unpublished_at"] == row["last_seen_at"]:
                yield row["id"], "order", f"{times}"


def lost(
    before: Collection[str], after: Collection[str], published: Iterable[Collection[str]]
) -> set[str]:
    """Return which rows are gone although their jobs were published at each of these moments."""
    return {*before}.difference(after).intersection(*published)
