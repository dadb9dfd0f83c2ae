"""Checks that must hold after a run, whatever happened before and during it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from histories.warehouses import document, without_nulls
from model_target import published_now

if TYPE_CHECKING:
    from histories.api import Request
    from histories.organisation import Organisation
    from histories.warehouses import Warehouse

LIMIT, PERIOD = 20, 0.1
"""The rate limit of the histories that have one."""


@dataclass
class Interval:
    """A run: when it began by the tap's clock, and when it really began and ended."""

    clock: float
    start: float
    end: float


@dataclass
class Times:
    """The runs so far."""

    runs: list[Interval] = field(default_factory=list)

    def of(self, time: datetime) -> Interval:
        """The run with a listing at this time."""
        at = time.replace(tzinfo=UTC).timestamp() + 0.001  # times have whole milliseconds
        return self.runs[bisect_right([run.clock for run in self.runs], at) - 1]


def same(what: str, found: object, expected: object) -> None:
    """Compare, with both in the error."""
    assert found == expected, f"{what}:\n  found    {found}\n  expected {expected}"


def published(warehouse: Warehouse, naming: str) -> dict[str, dict[str, Any]]:
    """The rows of `job_publications` whose jobs are published now, by the rule of the pages."""
    rows = [document(row, "job_publications", naming) for row in warehouse.rows("job_publications")]
    ids = published_now(row for row in rows if "lastSeenAt" in row)
    return {row["id"]: row for row in rows if row["id"] in ids}


def check_tables(warehouse: Warehouse, organisation: Organisation, naming: str) -> None:
    """Check that the rule finds the published jobs, with every value that the API has."""
    jobs = {job.id: job for job in organisation.published}
    found = published(warehouse, naming)
    same("ids of published jobs", sorted(found), sorted(jobs))
    for key, row in found.items():
        same(f"publicId of {key} in job_publications", row["publicId"], jobs[key].public_id)
    for table in ("jobs", "job_details"):
        rows = {row["id"]: row for row in warehouse.rows(table)}
        for key, job in jobs.items():
            expected = without_nulls(job.summary if table == "jobs" else job.document)
            assert key in rows, f"{table} lacks {key}"
            same(f"{key} in {table}", document(rows[key], table, naming), expected)
            assert not rows[key].get("deleted"), f"{key} in {table} is marked as deleted"


def check_removed(warehouse: Warehouse, organisation: Organisation, table: str) -> None:
    """Check that a table has no row of a job that is not published, unless it is marked."""
    ids = sorted(row["id"] for row in warehouse.rows(table) if not row.get("deleted"))
    same(f"ids in {table}", ids, sorted(job.id for job in organisation.published))


def check_periods(
    warehouse: Warehouse, organisation: Organisation, naming: str, times: Times
) -> None:
    """Check that every time in `job_publications` is true."""
    for columns in warehouse.rows("job_publications"):
        row = document(columns, "job_publications", naming)
        for name, state in (
            ("openedAfter", False),
            ("firstSeenAt", True),
            ("lastSeenAt", True),
            ("unpublishedAt", False),
        ):
            if at := row.get(name):
                run = times.of(at)
                states = organisation.jobs[row["id"]].states(run.start, run.end)
                assert state in states, f"{name} of {row} is wrong: published {states}"
        order = [row[name] for name in ("openedAfter", "firstSeenAt", "lastSeenAt") if name in row]
        assert order == sorted(order), row
        if closed := row.get("unpublishedAt"):
            assert closed > row["lastSeenAt"], row


class Kept:
    """Jobs whose rows must stay, because they have been published since they were loaded."""

    def __init__(self) -> None:
        self._loaded: dict[str, dict[str, float]] = {"jobs": {}, "job_details": {}}

    def check(self, warehouse: Warehouse, organisation: Organisation, end: float) -> None:
        for table, loaded in self._loaded.items():
            ids = {row["id"] for row in warehouse.rows(table) if not row.get("deleted")}
            stayed = {
                key: since
                for key, since in loaded.items()
                if organisation.jobs[key].states(since, end) == {True}
            }
            assert stayed.keys() <= ids, f"{table} has lost {stayed.keys() - ids}"
            self._loaded[table] = dict.fromkeys(ids, end) | stayed


def check_requests(requests: list[Request], *, limited: bool, is_quiet: bool) -> None:
    """Check the rate limit, and that nothing is requested again after a response.

    A request that the client gave up on may arrive any time later.
    """
    times = sorted(request.time for request in requests if request.is_awaited)
    for first, last in zip(times, times[LIMIT:], strict=False):
        assert not limited or last - first > PERIOD, f"{LIMIT + 1} requests in {last - first}"
    answered = Counter(request.target for request in requests if request.is_answered)
    twice = [target for target, number in answered.items() if number > 1]
    assert not is_quiet or not twice, f"requested again: {twice}"
