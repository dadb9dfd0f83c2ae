"""An organisation's portal over some days: what was published when, synced by the real tap."""

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness import demo, sync
from public_jobs_sandbox.postings import Job
from public_jobs_sandbox.state import Sandbox
from support.warehouses import HISTORY_ALONE, Builds

from tap_public_jobs.tap import TapPublicJobs

FIRST_DAY = datetime(2026, 11, 1, 4, tzinfo=UTC)


@dataclass
class Listing:
    """What the list showed at one time, and whether dbt ran after it.

    Attributes:
        time: As warehouses hold it: UTC without a zone.
        jobs: The published jobs by id.
        built: Whether a build followed before the next listing.
        remembered: The listing before that the tap remembers, if it is not the one before.
    """

    time: datetime
    jobs: dict[str, Job]
    built: bool = False
    remembered: datetime | None = None


@dataclass
class Portal:
    """One organisation, its tap and its warehouse.

    Attributes:
        sandbox: The API.
        config: The tap's settings.
        warehouse: Where the tap's messages go.
        monkeypatch: Sets the tap's clock.
        schema: The schema of the organisation.
        now: The time of the next sync.
        listings: What happened so far.
        state: What the tap remembers.
        catalog: What it is given; None for its own.
    """

    sandbox: Sandbox
    config: dict[str, Any]
    warehouse: Builds
    monkeypatch: pytest.MonkeyPatch
    schema: str = "public_jobs"
    now: datetime = FIRST_DAY
    listings: list[Listing] = field(default_factory=list)
    state: dict[str, Any] | None = None
    catalog: dict[str, Any] | None = None

    @property
    def public_ids(self) -> list[str]:
        return list(self.sandbox.organisation.postings)

    def day(self, number: int, hour: int = 4) -> None:
        self.now = FIRST_DAY + timedelta(days=number - 1, hours=hour - 4)

    def edit(self, number: int, **fields: object) -> None:
        self.sandbox.edit(self.public_ids[number], **fields)

    def unpublish(self, number: int) -> None:
        self.sandbox.unpublish(self.public_ids[number])

    def publish(self, job: Job | int) -> None:
        self.sandbox.publish(self.public_ids[job] if isinstance(job, int) else job)

    def sync(self) -> None:
        """Run the tap and load what it writes."""
        published = (copy.deepcopy(it.job) for it in self.sandbox.organisation.published())
        time = self.now.replace(tzinfo=None)
        self.listings.append(Listing(time, {job["id"]: job for job in published}))
        self.state = self.warehouse.load(self._messages(), self.schema)

    def sync_until(self, stream: str) -> None:
        """Run the tap into a target that dies in the middle of a stream; the state stays."""
        lines = self._messages().splitlines(keepends=True)
        start = {"type": "RECORD", "stream": stream}.items()
        records = [number for number, line in enumerate(lines) if start <= json.loads(line).items()]
        middle = records[len(records) // 2]
        self.warehouse.load("".join([*lines[:middle], "killed\n"]), self.schema, dies=True)

    def _messages(self) -> str:
        now = self.now.timestamp()
        self.monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(lambda: now))
        return sync(self.config, catalog=self.catalog, state=copy.deepcopy(self.state)).text

    def build(self, *arguments: str) -> str:
        self.listings[-1].built = True
        return self.warehouse.build(*arguments)


@contextlib.contextmanager
def opened(
    warehouse: Builds, monkeypatch: pytest.MonkeyPatch, schema: str = "public_jobs"
) -> Iterator[Portal]:
    """Serve an organisation with twelve jobs."""
    with demo(12) as (sandbox, settings):
        # One at a time, so that details arrive in the order of the list, wherever a load stops.
        config = settings | {"column_naming": "snake_case", "max_concurrent_requests": 1}
        yield Portal(sandbox, config, warehouse, monkeypatch, schema)


def first_day(portal: Portal, odd: str = 'odd "name"/~.') -> None:
    """Jobs that lack what others have; one has fields without a column, of which one is odd."""
    portal.edit(0, knockoutQuestions=[], salaryPeriod="year")
    portal.edit(1, department="", minSalary=0, maxSalary=61000.5)
    portal.edit(2, **{odd: {"nested": [1, None]}}, note="some text", maxSalary=9)
    # A question that is none hides no other one.
    question = {"id": "q", "question": "Is it?", "type": "boolean", "required": True}
    portal.edit(9, knockoutQuestions=[None, "odd", 5, question])
    portal.sync()
    portal.build(*HISTORY_ALONE)
