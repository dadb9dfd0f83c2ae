"""Three runs into each target: every row, every value and every type is what the API has."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from e2e.targets import TARGETS
from e2e.truth import COLUMNS, JSON_TYPES, awkward_jobs, in_order, published, rows
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from e2e.pipeline import Project, Row, Run
    from e2e.targets import Target
    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import SeenRequest

LIST = "/api/public/v1/jobs"
PAGE_SIZE = 5


@dataclass
class Synced:
    """A finished run: what the API had, what it was asked, and what the target holds."""

    run: Run
    published: list[Job]
    requests: list[SeenRequest]
    rows: dict[str, list[Row]]
    types: dict[str, dict[str, str]]


@dataclass
class Runs:
    """The runs into one target."""

    target: Target
    all: list[Synced]

    def expected(self, table: str, number: int) -> list[Row]:
        """The rows after a run, given those of the runs before it."""
        held: dict[str, Row] = {}
        for run in self.all[:number]:
            now = rows(run.published, table)
            stored = {key: self.target.stored_row(row) for key, row in now.items()}
            held = self.target.after(held, stored)
        return in_order(held)


def change(sandbox: Sandbox, number: int) -> None:
    """What happens to the jobs before a run: all that can, and at last one comes back."""
    ids = list(sandbox.organisation.postings)
    if number == 1:
        sandbox.edit(ids[0], jobTitle="Retitled", minSalary=1.25, location=None)
        sandbox.edit(ids[2], requiredSkills=["new", "skills"], knockoutQuestions=[])
        sandbox.unpublish(ids[1])
        sandbox.unpublish("0-a/b")
        for job in make_jobs(2, seed=3):
            sandbox.publish(job)
    if number == 2:
        sandbox.edit(ids[1], jobTitle="Back again")
        sandbox.publish(ids[1])
        sandbox.unpublish("1-c d")


@pytest.fixture(scope="module", params=TARGETS, ids=lambda target: target.name)
def runs(
    request: pytest.FixtureRequest,
    project: Project,
    database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Runs:
    target: Target = request.param
    folder = tmp_path_factory.mktemp("target")
    store = target.store(folder, database)
    sandbox = Sandbox.demo(jobs=5, options=Options(limit_requests=100, limit_period=1))
    for job in awkward_jobs():
        sandbox.publish(job)
    runs = Runs(target, [])
    with serving(sandbox) as base_url:
        tap = {
            "api_key": sandbox.key,
            "base_url": base_url,
            "page_size": PAGE_SIZE,
            "rate_limit_requests": 100,
            "rate_limit_period_seconds": 1,
        }
        for number in range(3):
            change(sandbox, number)
            before = len(sandbox.requests)
            run = target.run(project, folder, database, tap)
            assert run.status == 0, run.output
            runs.all.append(
                Synced(
                    run,
                    published(sandbox),
                    sandbox.requests[before:],
                    {table: store.rows(table) for table in COLUMNS},
                    {table: store.types(table) for table in COLUMNS},
                )
            )
    return runs


@pytest.mark.parametrize("table", COLUMNS)
def test_every_value_of_every_job_arrives(runs: Runs, table: str) -> None:
    """Fields that the API page does not name are in additional_fields."""
    first = runs.all[0]
    assert len(first.published) == 15
    assert first.rows[table] == runs.expected(table, 1)


@pytest.mark.parametrize("table", COLUMNS)
def test_columns_have_types_that_sql_can_reckon_with(runs: Runs, table: str) -> None:
    """And what a later run tells of unpublished jobs does not change them."""
    names = [*COLUMNS[table].values(), "is_published", "additional_fields"]
    expected = {name: runs.target.types[JSON_TYPES[name]] for name in names} | runs.target.metadata
    assert [run.types[table] for run in runs.all] == [expected] * 3


@pytest.mark.parametrize("table", COLUMNS)
def test_a_second_run_updates_adds_and_tells_what_is_unpublished(runs: Runs, table: str) -> None:
    first, second = runs.all[:2]
    assert len(second.published) == len(first.published) - 2 + 2
    assert second.rows[table] == runs.expected(table, 2)


@pytest.mark.parametrize("table", COLUMNS)
def test_a_job_that_is_published_again_has_its_row_again(runs: Runs, table: str) -> None:
    third = runs.all[2]
    assert "Back again" in [job["jobTitle"] for job in third.published]
    assert third.rows[table] == runs.expected(table, 3)


def test_each_run_asks_for_each_page_and_each_detail_once(runs: Runs) -> None:
    """A full last page is followed by one more request, as no single number is trusted."""
    for run in runs.all:
        pages = math.ceil((len(run.published) + 1) / PAGE_SIZE)
        expected: list[tuple[str, str | None]] = [("", str(page)) for page in range(1, pages + 1)]
        expected += [(f"/{job['publicId']}", None) for job in run.published]
        asked = [
            (unquote(request.path.removeprefix(LIST)), request.query.get("page"))
            for request in run.requests
        ]
        assert Counter(asked) == Counter(expected)
        assert {request.status for request in run.requests} == {200}


def test_the_log_shows_what_the_tap_did(runs: Runs) -> None:
    """Through Meltano, too."""
    output = runs.all[0].run.output
    assert "Fetching 15 details at up to 100 requests per second" in output
    assert "Synced 15 jobs, 15 job_details with 19 requests (0 rejections" in output
