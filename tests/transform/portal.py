"""An organisation's portal over some days: what was published when, synced by the real tap."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest
    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import SeenRequest
    from transform.warehouses import Warehouse

KILLED_TAP = """
from tap_public_jobs.tap import TapPublicJobs
TapPublicJobs.clock = staticmethod(lambda: {now})
TapPublicJobs.cli()
"""

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
        log: The change log that the portal's webhooks fill.
        monkeypatch: Sets the tap's clock.
        schema: The schema of the organisation.
        now: The time of the next sync.
        listings: What happened so far.
        state: What the tap remembers.
    """

    sandbox: Sandbox
    config: dict[str, Any]
    warehouse: Warehouse
    log: ChangeLog
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
        self.log.append([self.public_ids[number]])

    def unpublish(self, number: int) -> None:
        self.sandbox.unpublish(self.public_ids[number])
        self.log.append([self.public_ids[number]])

    def publish(self, job: Job | int) -> None:
        known = self.public_ids[job] if isinstance(job, int) else job
        self.sandbox.publish(known)
        self.log.append([known if isinstance(known, str) else known["publicId"]])

    def sync(self, *, killed: bool = False) -> None:
        """Run the tap and load what it writes; kill it among the requests for details, if asked."""
        published = (copy.deepcopy(it.job) for it in self.sandbox.organisation.published())
        time = self.now.replace(tzinfo=None)
        self.listings.append(Listing(time, {job["id"]: job for job in published}))
        messages = self._killed_run() if killed else self._run()
        self.state = self.warehouse.load(messages, self.schema)

    def _run(self) -> str:
        now = self.now.timestamp()
        self.monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(lambda: now))
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            TapPublicJobs(config=self.config, state=copy.deepcopy(self.state)).sync_all()
        return text.getvalue()

    def _killed_run(self) -> str:
        """What a process has written until SIGKILL, which meets it at a request for a detail."""
        with tempfile.TemporaryDirectory() as name:
            config, state = Path(name, "config.json"), Path(name, "state.json")
            config.write_text(json.dumps(self.config | {"max_concurrent_requests": 1}), "utf-8")
            state.write_text(json.dumps(self.state), "utf-8")
            code = KILLED_TAP.format(now=self.now.timestamp())
            arguments = ["--config", str(config), "--state", str(state)]
            command = [sys.executable, "-c", code, *arguments]
            jobs = self.listings[-1].jobs.values()
            paths = {f"/api/public/v1/jobs/{job['publicId']}" for job in jobs}
            numbers = itertools.count(1)
            # Under the other modes the run fetches the one detail that has changed.
            last = len(jobs) // 2 if self.config["detail_refresh"] == "all" else 1
            started: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()

            def kill(request: SeenRequest) -> bool:
                if request.path in paths and next(numbers) == last:
                    started.get().kill()
                return False  # it is no fault of the API's

            # Before it starts: it may make its requests before this thread runs again.
            self.sandbox.fail_next("http_500", times=None, path=kill)
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tap:
                started.put(tap)
                messages: str = tap.communicate()[0]
                self.sandbox.recover()
        assert tap.returncode == -signal.SIGKILL
        return messages

    def build(self, *arguments: str) -> str:
        self.listings[-1].built = True
        return self.warehouse.build(*arguments)


@contextlib.contextmanager
def opened(
    warehouse: Warehouse,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str = "all",
    schema: str = "public_jobs",
    jobs: int = 12,
) -> Iterator[Portal]:
    """Serve an organisation with some jobs, synced under a mode of detail_refresh."""
    url = f"sqlite:///{folder / schema}.db"
    log = ChangeLog(url)
    log.append([])
    sandbox = Sandbox.demo(jobs, options=Options(limited=False))
    with serving(sandbox) as base_url:
        config = {
            "api_key": sandbox.key,
            "base_url": base_url,
            "rate_limit_requests": 100_000,
            "column_naming": "snake_case",
            "detail_refresh": mode,
        }
        if mode != "all":
            config["changes_url"] = url
        yield Portal(sandbox, config, warehouse, log, monkeypatch, schema)
