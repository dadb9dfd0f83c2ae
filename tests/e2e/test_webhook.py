"""From the portal to PostgreSQL: webhook, receiver, change log, a run of the tap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.pipeline import Pipe, Tap
from e2e.targets import Tables, meltanolabs
from e2e.truth import COLUMNS, listed_at, published
from public_jobs_sandbox.app import JOBS_PATH as LIST
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from webhook.served import TOKEN
from webhook.served import serving as receiving

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from pathlib import Path

JOBS = 30


def test_each_change_in_the_portal_costs_the_list_and_one_request(
    database: str, tmp_path: Path
) -> None:
    """Details of unpublished jobs keep their rows, also where a target deletes.

    A run that fetches only what changed cannot say that the others are complete.
    """
    target = meltanolabs("hard", "piped")
    pipe, store = Pipe(Tap(tmp_path), target.program), target.store(tmp_path, database)
    tables = Tables(target)
    log = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append([])

    def sync() -> list[tuple[str, int | None]]:
        """Run the tap, and compare every row; returns paths and answers of its requests."""
        sandbox.requests.clear()
        run = pipe.run(tap, target.settings(tmp_path, database)).succeeded()
        assert TOKEN not in run.output
        rows = {table: store.rows(table) for table in COLUMNS}
        if sandbox.requests:
            at = listed_at(rows["job_publications"])
            tables.sync(published(sandbox), at, activated={"jobs"})
        assert rows == tables.rows
        return sorted((request.path, request.status) for request in sandbox.requests)

    with receiving(log) as receiver:
        options = Options(limited=False, webhook_url=f"{receiver}/hooks/{TOKEN}")
        sandbox = Sandbox.demo(jobs=JOBS, options=options)
        with serving(sandbox) as base_url:
            tap = {
                "api_key": sandbox.key,
                "base_url": base_url,
                "column_naming": "snake_case",
                "detail_refresh": "notified",
                "changes_url": f"sqlite:///{tmp_path / 'changes.db'}",
            }
            assert len(sync()) == 1 + JOBS

            (new,), (_, edited, gone, *_) = make_jobs(1, seed=99), published(sandbox)
            sandbox.edit(edited["publicId"], roleOverview="Everything.")
            sandbox.edit(edited["publicId"], jobTitle="Chief of Everything")
            assert sync() == [(LIST, 200), (f"{LIST}/{edited['publicId']}", 200)]

            sandbox.publish(new)
            sandbox.unpublish(gone["publicId"])
            details = [(f"{LIST}/{new['publicId']}", 200), (f"{LIST}/{gone['publicId']}", 404)]
            assert sync() == [(LIST, 200), *sorted(details)]

            assert sync() == []
