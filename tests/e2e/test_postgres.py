"""Meltano into a real PostgreSQL: what a killed run leaves, and the next one mends."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from e2e.targets import psycopg_url
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.pipeline import Project

JOBS = 300


def titles(database: str, table: str) -> list[tuple[str, str]]:
    """The key and the title of each row."""
    query = f"select id, job_title from public_jobs.{table} order by id"  # noqa: S608
    with psycopg.connect(database) as connection:
        return connection.execute(query).fetchall()


def published(sandbox: Sandbox) -> list[tuple[str, str]]:
    jobs = (posting.job for posting in sandbox.organisation.published())
    return sorted((job["id"], job["jobTitle"]) for job in jobs)


def details(sandbox: Sandbox) -> list[str]:
    """The details asked for since the last look."""
    asked = [request.path for request in sandbox.requests if not request.query]
    sandbox.requests.clear()
    return asked


def kill_tap(folder: Path) -> None:
    """Kill the tap that Meltano runs in a folder, as the kernel does when memory runs out."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and "tap-public-jobs" in command and "--config" in command:
            os.kill(int(process.name), signal.SIGKILL)


class Pipeline:
    """The same sandbox into the same tables, run after run."""

    def __init__(self, project: Project, database: str, folder: Path) -> None:
        self.sandbox = Sandbox.demo(jobs=JOBS, options=Options(limited=False, latency=0.01))
        self._project = project
        self._variables = {
            "TAP_PUBLIC_JOBS_API_KEY": self.sandbox.key,
            "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": "100000",
            "TARGET_POSTGRES_SQLALCHEMY_URL": psycopg_url(database),
            "MELTANO_DATABASE_URI": f"sqlite:///{folder / 'meltano.db'}",
        }

    @contextmanager
    def served(self) -> Iterator[None]:
        with serving(self.sandbox) as base_url:
            self._variables["TAP_PUBLIC_JOBS_BASE_URL"] = base_url
            yield

    def sync(self, **variables: str) -> int:
        run = self._project.meltano(
            "tap-public-jobs", "target-postgres", **self._variables, **variables
        )
        return run.status

    def sync_and_kill(self, after: int) -> int:
        """Kill the tap when it asks for the detail after so many others."""
        pages = JOBS // 100 + 1
        number = len(self.sandbox.requests) + pages + after + 1
        self.sandbox.at_request(number, lambda: kill_tap(self._project.folder))
        return self.sync()


def test_a_killed_run_deletes_nothing_and_the_next_goes_on(
    project: Project, database: str, tmp_path: Path
) -> None:
    """With hard deletes, and Meltano's own state."""
    pipeline = Pipeline(project, database, tmp_path)
    sandbox = pipeline.sandbox
    with pipeline.served():
        assert pipeline.sync() == 0
        assert titles(database, "job_details") == published(sandbox)
        before = published(sandbox)
        assert len(details(sandbox)) == JOBS

        for key, _ in before[:5]:
            (job,) = (p.job for p in sandbox.organisation.published() if p.job["id"] == key)
            sandbox.unpublish(job["publicId"])
        edited = sandbox.organisation.published()[10].job["publicId"]
        sandbox.edit(edited, jobTitle="Edited")
        assert pipeline.sync_and_kill(after=JOBS * 6 // 10) != 0
        # `jobs` was complete before the kill; of the details none is gone.
        assert titles(database, "jobs") == published(sandbox)
        assert [key for key, _ in titles(database, "job_details")] == [key for key, _ in before]
        first_part = details(sandbox)

        assert pipeline.sync() == 0
        assert titles(database, "job_details") == published(sandbox)
        second_part = details(sandbox)
        # Killed after 180 details, with state after 100.
        assert len(set(first_part) & set(second_part)) <= 100
        assert set(first_part) | set(second_part) == {
            f"/api/public/v1/jobs/{posting.job['publicId']}"
            for posting in sandbox.organisation.published()
        }
        assert len(second_part) < JOBS - 90

        assert pipeline.sync() == 0
        assert len(details(sandbox)) == JOBS - 5  # a run of its own, which owes nothing to the last
        assert titles(database, "job_details") == published(sandbox)


def test_changed_runs_cost_what_has_changed(
    project: Project, database: str, tmp_path: Path
) -> None:
    """With Meltano's own state; details of unpublished jobs stay, and `jobs` tells them apart."""
    pipeline = Pipeline(project, database, tmp_path)
    sandbox = pipeline.sandbox
    with pipeline.served():
        assert pipeline.sync(TAP_PUBLIC_JOBS_DETAIL_REFRESH="changed") == 0
        details(sandbox)
        gone, edited = (posting.job["publicId"] for posting in sandbox.organisation.published()[:2])
        sandbox.unpublish(gone)
        sandbox.edit(edited, jobTitle="Edited")

        assert pipeline.sync(TAP_PUBLIC_JOBS_DETAIL_REFRESH="changed") == 0

        assert details(sandbox) == [f"/api/public/v1/jobs/{edited}"]
        assert pipeline.sync(TAP_PUBLIC_JOBS_DETAIL_REFRESH="changed") == 0
        assert details(sandbox) == []
    assert titles(database, "jobs") == published(sandbox)
    kept = set(titles(database, "job_details")) - set(published(sandbox))
    assert [key for key, _ in kept] == [sandbox.organisation.postings[gone].job["id"]]
    assert set(titles(database, "job_details")) >= set(published(sandbox))
