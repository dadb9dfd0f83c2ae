"""From the portal to PostgreSQL: webhook, receiver, change log, a run of the tap."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
import pytest
from e2e.pipeline import Pipe, Tap, variables
from e2e.targets import Tables, meltanolabs
from e2e.truth import COLUMNS, listed_at, published
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from webhook.served import TOKEN
from webhook.served import serving as receiving

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from e2e.pipeline import Project, Run, Settings
    from e2e.stores import Store
    from e2e.targets import Target

JOBS = 30
LIST = "/api/public/v1/jobs"


@dataclass
class Portal:
    """A sandbox that sends webhooks, and the tap's settings to follow them."""

    sandbox: Sandbox
    settings: Settings

    def edit(self) -> str:
        """Edit a job twice; returns the path of its detail."""
        job = published(self.sandbox)[3]
        self.sandbox.edit(job["publicId"], roleOverview="Everything.")
        self.sandbox.edit(job["publicId"], jobTitle="Chief of Everything")
        return f"{LIST}/{job['publicId']}"

    def publish_and_unpublish(self) -> tuple[str, str]:
        """Publish one job and unpublish another; returns the paths of their details."""
        (new,), gone = make_jobs(1, seed=99), published(self.sandbox)[4]
        self.sandbox.publish(new)
        self.sandbox.unpublish(gone["publicId"])
        return f"{LIST}/{new['publicId']}", f"{LIST}/{gone['publicId']}"


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    log = f"sqlite:///{tmp_path / 'changes.db'}"
    with receiving(ChangeLog(log)) as receiver:
        options = Options(limited=False, webhook_url=f"{receiver}/hooks/{TOKEN}")
        sandbox = Sandbox.demo(jobs=JOBS, options=options)
        ChangeLog(log).append([])
        with serving(sandbox) as base_url:
            settings = {
                "api_key": sandbox.key,
                "base_url": base_url,
                "column_naming": "snake_case",
                "detail_refresh": "notified",
                "changes_url": log,
            }
            yield Portal(sandbox, settings)


@dataclass
class Warehouse:
    """What the tables have to hold, compared after each run.

    Details of unpublished jobs keep their rows, also where a target deletes: a run that fetches
    only what changed cannot say that the others are complete.
    """

    portal: Portal
    target: Target
    store: Store
    run: Callable[[], Run]
    streams: tuple[str, ...] = tuple(COLUMNS)
    tables: Tables = field(init=False)

    def __post_init__(self) -> None:
        self.tables = Tables(self.target)

    def sync(self) -> list[tuple[str, int | None]]:
        """Run the tap, and compare every row; returns paths and answers of its requests."""
        sandbox = self.portal.sandbox
        before = len(sandbox.requests)
        run = self.run().succeeded()
        assert TOKEN not in run.output
        asked = [(request.path, request.status) for request in sandbox.requests[before:]]
        rows = {table: self.store.rows(table) for table in self.streams}
        if asked:
            at = listed_at(rows["job_publications"])
            self.tables.sync(published(sandbox), at, activated={"jobs"})
        assert rows == {table: self.tables.rows[table] for table in self.streams}
        return sorted(asked)


def test_each_change_in_the_portal_costs_the_list_and_one_request(
    portal: Portal, database: str, tmp_path: Path
) -> None:
    target = meltanolabs("hard", "piped")
    pipe = Pipe(Tap(tmp_path), target.program)
    settings = target.settings(tmp_path, database)
    warehouse = Warehouse(
        portal,
        target,
        target.store(tmp_path, database),
        lambda: pipe.run(portal.settings, settings),
    )
    page = (LIST, 200)
    assert len(warehouse.sync()) == 1 + JOBS

    edited = portal.edit()
    assert warehouse.sync() == [page, (edited, 200)]

    new, gone = portal.publish_and_unpublish()
    assert warehouse.sync() == [page, *sorted([(new, 200), (gone, 404)])]

    assert warehouse.sync() == []


def test_meltano_brings_what_changes_in_the_portal_into_the_selected_tables(
    project: Project, portal: Portal, database: str, tmp_path: Path
) -> None:
    target = meltanolabs("hard", "meltano")
    streams = ("job_publications", "job_details")
    settings = {
        **variables("tap-public-jobs", portal.settings),
        **variables("target-postgres", target.settings(tmp_path, database)),
        "TAP_PUBLIC_JOBS__SELECT": json.dumps([f"{stream}.*" for stream in streams]),
        "MELTANO_DATABASE_URI": f"sqlite:///{tmp_path / 'meltano.db'}",
    }
    warehouse = Warehouse(
        portal,
        target,
        target.store(tmp_path, database),
        lambda: project.meltano("target-postgres", **settings),
        streams,
    )
    assert len(warehouse.sync()) == 1 + JOBS

    edited, (new, gone) = portal.edit(), portal.publish_and_unpublish()
    assert warehouse.sync() == sorted([(LIST, 200), (edited, 200), (new, 200), (gone, 404)])
    with pytest.raises(psycopg.errors.UndefinedTable):
        warehouse.store.rows("jobs")
