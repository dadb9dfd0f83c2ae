"""An organisation's portal over some days: what was published when, synced by the real tap."""

from __future__ import annotations

import contextlib
import copy
import io
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest
    from public_jobs_sandbox.postings import Job
    from transform.warehouses import Builds

FIRST_DAY = datetime(2026, 11, 1, 4, tzinfo=UTC)


@dataclass
class Listing:
    """What the list showed at one time, and whether dbt ran after it.

    Attributes:
        time: As warehouses hold it: UTC without a zone.
        jobs: The published jobs by id.
        built: Whether a build followed before the next listing.
    """

    time: datetime
    jobs: dict[str, Job]
    built: bool = False


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
    """

    sandbox: Sandbox
    config: dict[str, Any]
    warehouse: Builds
    monkeypatch: pytest.MonkeyPatch
    schema: str = "public_jobs"
    now: datetime = FIRST_DAY
    listings: list[Listing] = field(default_factory=list)
    state: dict[str, Any] | None = None

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
        now, text = self.now.timestamp(), io.StringIO()
        self.monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(lambda: now))
        with contextlib.redirect_stdout(text):
            TapPublicJobs(config=self.config, state=copy.deepcopy(self.state)).sync_all()
        self.state = self.warehouse.load(text.getvalue(), self.schema)

    def build(self, *arguments: str) -> str:
        self.listings[-1].built = True
        return self.warehouse.build(*arguments)


@contextlib.contextmanager
def opened(
    warehouse: Builds, monkeypatch: pytest.MonkeyPatch, schema: str = "public_jobs"
) -> Iterator[Portal]:
    """Serve an organisation with twelve jobs."""
    sandbox = Sandbox.demo(12, options=Options(limited=False))
    with serving(sandbox) as base_url:
        config = {
            "api_key": sandbox.key,
            "base_url": base_url,
            "rate_limit_requests": 100_000,
            "column_naming": "snake_case",
        }
        yield Portal(sandbox, config, warehouse, monkeypatch, schema)
