"""Meltano into PostgreSQL with hard deletes: what a killed run leaves, and the next one repairs."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e.pipeline import variables
from e2e.stores import in_order
from e2e.targets import Tables, meltanolabs
from e2e.truth import COLUMNS, FIELDS, job_row, listed_at, published
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.pipeline import Project, Run
    from e2e.stores import Row, Store

JOBS = 300
CHECKPOINT_EVERY = 50
LIST = "/api/public/v1/jobs"
TARGET = meltanolabs("hard", "public_jobs")

Rows = dict[str, list["Row"]]


def kill_tap(folder: Path) -> None:
    """Kill the tap that Meltano runs in a folder, as the kernel does when memory runs out."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and "tap-public-jobs" in command and "--config" in command:
            os.kill(int(process.name), signal.SIGKILL)


@dataclass
class Pipeline:
    """One sandbox into the same tables, run after run."""

    project: Project
    sandbox: Sandbox
    store: Store
    meltano: Path
    variables: dict[str, str]

    def sync(self, **variables: str) -> Run:
        self.sandbox.requests.clear()
        return self.project.meltano("target-postgres", **self.variables, **variables)

    def sync_and_kill(self, number: int) -> Run:
        """Kill the tap when it makes the request with this number.

        It makes one at a time: else an early answer could still be in the hands of a thread.
        """
        self.sandbox.at_request(number, lambda: kill_tap(self.project.folder))
        return self.sync(TAP_PUBLIC_JOBS_MAX_CONCURRENT_REQUESTS="1")

    def details(self) -> Counter[str]:
        """The publicIds of the details that the last run has asked for."""
        paths = [request.path for request in self.sandbox.requests if not request.query]
        return Counter(path.removeprefix(f"{LIST}/") for path in paths)

    def kept(self) -> set[str]:
        """The publicIds that the last run fetched, by the state that Meltano keeps of it."""
        with closing(sqlite3.connect(self.meltano)) as database:
            query = "select payload from runs order by started_at desc limit 1"
            (payload,) = database.execute(query).fetchone()
        state = json.loads(payload)["singer_state"]["bookmarks"]["jobs"]["sync"]
        started_at, _ = state["unfinished"]
        return {
            public_id for _, public_id, *_, fetched_at in state["jobs"] if fetched_at >= started_at
        }

    def rows(self) -> Rows:
        return {table: self.store.rows(table) for table in COLUMNS}

    def published_now(self) -> Rows:
        return {table: self.store.published(table) for table in FIELDS}

    def truth(self) -> Rows:
        jobs = published(self.sandbox)
        return {
            table: in_order([TARGET.row(job_row(job, table)) for job in jobs]) for table in FIELDS
        }


@pytest.fixture
def pipeline(project: Project, database: str, tmp_path: Path) -> Iterator[Pipeline]:
    sandbox = Sandbox.demo(jobs=JOBS, options=Options(limited=False, latency=0.01))
    meltano = tmp_path / "meltano.db"
    with serving(sandbox) as base_url:
        tap = {"api_key": sandbox.key, "base_url": base_url, "rate_limit_requests": 100_000}
        yield Pipeline(
            project,
            sandbox,
            TARGET.store(tmp_path, database),
            meltano,
            {
                **variables("tap-public-jobs", tap),
                **variables("target-postgres", TARGET.settings(tmp_path, database)),
                "MELTANO_DATABASE_URI": f"sqlite:///{meltano}",
            },
        )


def test_a_killed_run_loses_nothing_and_the_next_resumes_it(pipeline: Pipeline) -> None:
    """The row of a job that was unpublished between the two may stay until the run after them."""
    sandbox, tables = pipeline.sandbox, Tables(TARGET)

    def expected(rows: Rows, *activated: str) -> Rows:
        at = listed_at(rows["job_publications"])
        return dict(tables.sync(published(sandbox), at, activated))

    pipeline.sync().succeeded()
    rows = pipeline.rows()
    assert rows == expected(rows, *FIELDS)
    assert len(rows["job_details"]) == JOBS
    for table in COLUMNS:
        assert pipeline.store.types(table) == TARGET.column_types(table)

    gone = [job["publicId"] for job in published(sandbox)[:5]]
    for public_id in gone:
        sandbox.unpublish(public_id)
    first, *_, last = published(sandbox)
    sandbox.edit(published(sandbox)[5]["publicId"], jobTitle="Edited")
    # Three pages, the details of the five jobs that are gone, and two thirds of all others. At most
    # 64 of them are on their way, so that two checkpoints are written.
    assert pipeline.sync_and_kill(3 + 5 + JOBS * 2 // 3).status != 0
    rows, requested, kept = pipeline.rows(), pipeline.details(), pipeline.kept()
    assert rows == expected(rows, "jobs")
    assert pipeline.published_now() == pipeline.truth()
    assert JOBS * 2 // 3 < len(requested) < JOBS * 3 // 4
    assert requested[first["publicId"]] == 1
    assert requested[last["publicId"]] == 0
    assert len(kept) >= 2 * CHECKPOINT_EVERY
    assert len(kept) % CHECKPOINT_EVERY == 0

    for job in (first, last):
        sandbox.unpublish(job["publicId"])
    pipeline.sync().succeeded()
    rows, again = pipeline.rows(), pipeline.details()
    truth = expected(rows, *FIELDS)
    assert {**rows, "job_details": []} == {**truth, "job_details": []}
    assert pipeline.published_now() == pipeline.truth()
    leftover = [row["id"] for row in rows["job_details"] if row not in truth["job_details"]]
    assert set(leftover) <= {first["id"]}
    left = {job["publicId"] for job in published(sandbox)} - kept
    # A job that is no longer listed is asked for too: only a 404 to its detail closes it.
    assert again == Counter([*left, first["publicId"], last["publicId"]])
    assert {*requested, *again} >= {job["publicId"] for job in published(sandbox)}

    pipeline.sync().succeeded()
    rows = pipeline.rows()
    assert rows == expected(rows, *FIELDS)
    assert pipeline.details() == Counter(job["publicId"] for job in published(sandbox))
