"""Whole runs of Meltano into DuckDB: every row and every value arrives."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from e2e.pipeline import Warehouse, exact

from tap_public_jobs.sandbox.options import Options
from tap_public_jobs.sandbox.postings import make_jobs
from tap_public_jobs.sandbox.server import serving
from tap_public_jobs.sandbox.state import Sandbox

if TYPE_CHECKING:
    from e2e.pipeline import Project, Row, Run

    from tap_public_jobs.sandbox.postings import Job
    from tap_public_jobs.sandbox.state import SeenRequest

REPOSITORY = Path(__file__).parents[2]
LIST = "/api/public/v1/jobs"

# Section "Resources and their fields" of the API page.
SUMMARY = [
    "id",
    "publicId",
    "jobTitle",
    "location",
    "department",
    "type",
    "seniorityLevel",
    "minSalary",
    "maxSalary",
    "currency",
    "jobUrl",
    "applyUrl",
]
DETAIL = [
    *SUMMARY,
    "roleOverview",
    "yearsExperience",
    "primaryLanguage",
    "educationLevel",
    "knockoutQuestions",
]

AWKWARD = [
    'Head of "R&D", EMEA; (m/w/d)',
    "two\nlines\r\nand\ta tab",
    "Łódź 東京 🚀 naïve",
    "back\\slash \\N \\n 'quoted' ''",
    "007",
    "1e5",
    "true",
    " leading and trailing ",
    "$MELTANO_PROJECT_ROOT ${HOME} {{ jinja }} %s",
    "x" * 70_000,
]
NUMBERS = [0, -1, 0.1, 1e-07, 12345678901.23, 2**53, 1e22, 99999.99, 0.30000000000000004, 3]
PUBLIC_IDS = [
    f"{number}-{text}" for number, text in enumerate(["a/b", "c d", "e?f#g", "ü%2F", ".."])
]


def awkward_jobs() -> list[Job]:
    """Jobs whose values test quoting, nulls, encodings and the precision of numbers."""
    jobs = make_jobs(len(AWKWARD), seed=2)
    for job, text, number in zip(jobs, AWKWARD, NUMBERS, strict=True):
        job |= {
            "jobTitle": text,
            "roleOverview": text,
            "minSalary": number,
            "yearsExperience": number,
            "keyResponsibilities": {"nested": [text, number, None, "", {"deep": True}]},
            "knockoutQuestions": [{"id": "q", "question": text, "required": False, "points": 1.5}],
        }
    for job, public_id in zip(jobs, PUBLIC_IDS, strict=False):
        job["publicId"] = public_id
    jobs[0] |= {"department": "", "location": None, "knockoutQuestions": []}
    del jobs[1]["maxSalary"], jobs[1]["educationLevel"]
    jobs[2] |= {"knockoutQuestions": None}
    return jobs


def expected_row(job: Job, fields: list[str]) -> Row:
    """The row of a job: target-duckdb lowers names, stores doubles, and has no empty text."""
    row: Row = {}
    for field in fields:
        value = job.get(field)
        if isinstance(value, list):
            value = exact(json.dumps(value))
        elif isinstance(value, int | float):
            value = float(value)
        row[field.lower()] = None if value == "" else value
    others = {field: value for field, value in job.items() if field not in DETAIL}
    row["additionalfields"] = exact(json.dumps(others)) if fields is DETAIL and others else None
    return row


def expected_rows(jobs: list[Job], fields: list[str]) -> list[Row]:
    return sorted((expected_row(job, fields) for job in jobs), key=lambda row: str(row["id"]))


@dataclass
class Synced:
    """A finished run: what the API had, what it was asked, and what the warehouse holds."""

    run: Run
    published: list[Job]
    requests: list[SeenRequest]
    jobs: list[Row]
    details: list[Row]

    @property
    def asked(self) -> list[tuple[str, str | None]]:
        """The path of each request below the list, and its page."""
        return [
            (unquote(request.path.removeprefix(LIST)), request.query.get("page"))
            for request in self.requests
        ]


@pytest.fixture(scope="module")
def synced(project: Project, warehouse: Warehouse) -> tuple[Synced, Synced]:
    """Two runs, and between them a job edited, one published and one unpublished."""
    limit = Options(limit_requests=100, limit_period=1)
    sandbox = Sandbox.demo(jobs=190, options=limit)
    for job in awkward_jobs():
        sandbox.publish(job)
    with serving(sandbox) as base_url:

        def sync() -> Synced:
            before = len(sandbox.requests)
            run = project.sync(
                sandbox,
                base_url,
                warehouse,
                TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS="100",
                TAP_PUBLIC_JOBS_RATE_LIMIT_PERIOD_SECONDS="1",
            )
            assert run.status == 0, run.output
            return Synced(
                run,
                [posting.job for posting in sandbox.organisation.published()],
                sandbox.requests[before:],
                warehouse.rows("jobs"),
                warehouse.rows("job_details"),
            )

        first = sync()
        edited, unpublished = (job["publicId"] for job in first.published[:2])
        sandbox.edit(edited, jobTitle="Retitled", minSalary=1.25, requiredSkills=["new", "skills"])
        sandbox.unpublish(unpublished)
        for job in make_jobs(3, seed=3):
            sandbox.publish(job)
        return first, sync()


@pytest.fixture(scope="module")
def first(synced: tuple[Synced, Synced]) -> Synced:
    return synced[0]


@pytest.fixture(scope="module")
def second(synced: tuple[Synced, Synced]) -> Synced:
    return synced[1]


def test_every_value_of_every_job_is_in_the_warehouse(first: Synced) -> None:
    assert len(first.published) == 200
    assert first.jobs == expected_rows(first.published, SUMMARY)


def test_every_value_of_every_detail_is_in_the_warehouse(first: Synced) -> None:
    """Fields that the API page does not name are in additionalfields."""
    assert first.details == expected_rows(first.published, DETAIL)


def test_a_second_run_updates_rows_and_adds_new_ones(first: Synced, second: Synced) -> None:
    """The row of an unpublished job stays: target-duckdb ignores ACTIVATE_VERSION."""
    unpublished = first.published[1]
    assert unpublished not in second.published
    kept = [*second.published, unpublished]
    assert len(kept) == 203
    assert second.jobs == expected_rows(kept, SUMMARY)
    assert second.details == expected_rows(kept, DETAIL)


@pytest.mark.parametrize("which", [0, 1])
def test_each_run_asks_for_each_page_and_each_detail_once(
    synced: tuple[Synced, Synced], which: int
) -> None:
    """A full last page is followed by one more request, as no single number is trusted."""
    run = synced[which]
    pages = math.ceil((len(run.published) + 1) / 100)
    expected: list[tuple[str, str | None]] = [("", str(page)) for page in range(1, pages + 1)]
    expected += [(f"/{job['publicId']}", None) for job in run.published]
    assert Counter(run.asked) == Counter(expected)
    assert {request.status for request in run.requests} == {200}


def test_meltano_shows_what_the_tap_did(first: Synced) -> None:
    assert "Fetching 200 details at up to 100 requests per second" in first.run.output
    assert "Synced 200 jobs, 200 job_details with 203 requests (0 rejections" in first.run.output


def test_meltano_leaves_the_project_file_as_it_is(project: Project, first: Synced) -> None:
    """Without a project_id, it would write one and format the file anew."""
    assert first.run.status == 0
    now = (project.folder / "meltano.yml").read_text("utf-8")
    assert now == (REPOSITORY / "meltano.yml").read_text("utf-8")


def test_selected_columns_arrive_whole_though_they_are_all_text(
    project: Project, tmp_path: Path
) -> None:
    """With DuckDB 1.1 or later, target-duckdb takes the first row of such a table for a header."""
    sandbox = Sandbox.demo(jobs=10, options=Options(limited=False))
    published = [posting.job for posting in sandbox.organisation.published()]
    selected = ["id", "publicId", "jobTitle"]
    warehouse = Warehouse(tmp_path)
    with serving(sandbox) as base_url:
        run = project.sync(
            sandbox,
            base_url,
            warehouse,
            TAP_PUBLIC_JOBS__SELECT=json.dumps([f"jobs.{name}" for name in selected]),
        )

    assert run.status == 0, run.output
    expected = expected_rows(published, selected)
    assert warehouse.rows("jobs") == [
        {name.lower(): row[name.lower()] for name in selected} for row in expected
    ]
    assert [request.path for request in sandbox.requests] == [LIST]


def test_a_refused_key_fails_the_run_in_one_line(project: Project, tmp_path: Path) -> None:
    """Nothing that is printed holds the key."""
    sandbox = Sandbox.demo(jobs=3)
    key = sandbox.key
    sandbox.revoke(key)
    with serving(sandbox) as base_url:
        run = project.sync(sandbox, base_url, Warehouse(tmp_path))

    assert run.status != 0
    (line,) = [line for line in run.output.splitlines() if "refused the key (401)" in line]
    assert "critical" in line
    assert "Settings → Integrations → API keys" in line
    assert "Traceback" not in run.output
    assert key not in run.output
    assert [request.status for request in sandbox.requests] == [401]
