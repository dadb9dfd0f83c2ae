"""From the portal to PostgreSQL: webhook, receiver, change log, `meltano run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from e2e.targets import psycopg_url
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from webhook.served import TOKEN
from webhook.served import serving as receiving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.app import make_app

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.pipeline import Project
    from public_jobs_sandbox.postings import Job

Rows = dict[str, tuple[str, str, bool]]
DETAIL = "/api/public/v1/jobs/"


def rows(database: str) -> Rows:
    """Title, overview and flag of each detail, by its key."""
    query = "select id, job_title, role_overview, is_published from webhooks.job_details"
    with psycopg.connect(database) as connection:
        return {key: (*row,) for key, *row in connection.execute(query).fetchall()}


def row(job: Job, *, published: bool = True) -> tuple[str, str, bool]:
    return job["jobTitle"], job["roleOverview"], published


def test_what_changes_in_the_portal_is_in_the_warehouse_after_one_run(
    project: Project, database: str, tmp_path: Path
) -> None:
    """An edit costs one request; an unpublished job keeps its row, also where rows are deleted."""
    log = f"sqlite:///{tmp_path / 'changes.db'}"
    with receiving(make_app(ChangeLog(log), TOKEN)) as (host, port):
        options = Options(limited=False, webhook_url=f"http://{host}:{port}/hooks/{TOKEN}")
        sandbox = Sandbox.demo(jobs=30, options=options)
        sandbox.webhooks.flush()
        ChangeLog(log).append([])

        def sync() -> tuple[list[str], Rows]:
            before = len(sandbox.requests)
            run = project.meltano(
                "tap-public-jobs",
                "target-postgres",
                TAP_PUBLIC_JOBS_API_KEY=sandbox.key,
                TAP_PUBLIC_JOBS_BASE_URL=base_url,
                TAP_PUBLIC_JOBS_DETAIL_REFRESH="notified",
                TAP_PUBLIC_JOBS_CHANGES_URL=log,
                TAP_PUBLIC_JOBS__SELECT='["job_details.*"]',
                TARGET_POSTGRES_SQLALCHEMY_URL=psycopg_url(database),
                TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA="webhooks",
                MELTANO_DATABASE_URI=f"sqlite:///{tmp_path / 'meltano.db'}",
            )
            assert run.status == 0, run.output
            assert TOKEN not in run.output
            return [request.path for request in sandbox.requests[before:]], rows(database)

        with serving(sandbox) as base_url:
            jobs = [posting.job for posting in sandbox.organisation.published()]
            expected = {job["id"]: row(job) for job in jobs}
            asked, found = sync()
            assert len(asked) == 1 + 30
            assert found == expected

            edited, gone = jobs[3], jobs[4]
            sandbox.edit(edited["publicId"], roleOverview="Everything.")
            sandbox.edit(edited["publicId"], jobTitle="Chief of Everything")
            sandbox.webhooks.flush()
            expected[edited["id"]] = ("Chief of Everything", "Everything.", True)
            assert sync() == ([DETAIL + edited["publicId"]], expected)

            (new,) = make_jobs(1, seed=99)
            sandbox.publish(new)
            sandbox.unpublish(gone["publicId"])
            sandbox.webhooks.flush()
            expected |= {new["id"]: row(new), gone["id"]: row(gone, published=False)}
            asked, found = sync()
            assert sorted(asked) == sorted(DETAIL + job["publicId"] for job in (new, gone))
            assert found == expected

            assert sync() == ([], expected)
    assert [delivery.arrived for delivery in sandbox.webhooks.deliveries] == [True] * 4
