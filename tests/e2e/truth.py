"""What the tables have to hold, told by the sandbox and without the tap's own code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from e2e.pipeline import Row, exact
from public_jobs_sandbox.postings import make_jobs

if TYPE_CHECKING:
    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import Sandbox

# Section "Resources and their fields" of the API page, and the columns that meltano.yml asks for.
SUMMARY = {
    "id": "id",
    "publicId": "public_id",
    "jobTitle": "job_title",
    "location": "location",
    "department": "department",
    "type": "type",
    "seniorityLevel": "seniority_level",
    "minSalary": "min_salary",
    "maxSalary": "max_salary",
    "currency": "currency",
    "jobUrl": "job_url",
    "applyUrl": "apply_url",
}
DETAIL = SUMMARY | {
    "roleOverview": "role_overview",
    "yearsExperience": "years_experience",
    "primaryLanguage": "primary_language",
    "educationLevel": "education_level",
    "knockoutQuestions": "knockout_questions",
}
COLUMNS = {"jobs": SUMMARY, "job_details": DETAIL}
JSON_TYPES = dict.fromkeys(DETAIL.values(), "string") | {
    "min_salary": "number",
    "max_salary": "number",
    "years_experience": "number",
    "knockout_questions": "array",
    "is_published": "boolean",
    "additional_fields": "object",
}

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
    """Jobs whose values test quoting, nulls, encodings, types and the precision of numbers."""
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
    jobs[3] |= {"maxSalary": "negotiable"}
    return jobs


def published(sandbox: Sandbox) -> list[Job]:
    """The published jobs, in the order of the list."""
    return [posting.job for posting in sandbox.organisation.published()]


def row(job: Job, table: str) -> Row:
    """The row of a published job, its values as the API has them.

    What has no column, or does not fit its own, is in `additional_fields`.
    """
    columns = COLUMNS[table]
    values = exact(json.dumps(job))
    others = {} if table == "jobs" else {f: v for f, v in values.items() if f not in DETAIL}
    found = {column: values.get(field) for field, column in columns.items()}
    if isinstance(found["max_salary"], str):
        others["maxSalary"] = found["max_salary"]
        found["max_salary"] = None
    return found | {"is_published": True, "additional_fields": others or None}


def rows(jobs: list[Job], table: str) -> dict[str, Row]:
    """The rows of published jobs by their key."""
    return {job["id"]: row(job, table) for job in jobs}


def in_order(rows: dict[str, Row]) -> list[Row]:
    return [rows[key] for key in sorted(rows)]
