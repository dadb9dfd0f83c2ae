"""Values that no warehouse can store do not stop the pipeline: every job arrives."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from e2e.pipeline import Pipe, Tap
from e2e.stores import Database
from e2e.targets import DUCKDB, Tables, Target, meltanolabs
from e2e.truth import COLUMNS, listed_at, published
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

    from public_jobs_sandbox.postings import Job

DEEP = json.loads("[" * 90 + "[1.50, 1e-7, 12345678901234567890]" + "]" * 90)


BAD: list[Job] = [
    {"jobTitle": "NUL \0 here", "roleOverview": "\0", "department": "good 😀 pair"},
    {"jobTitle": "high half \ud83d", "location": "\ude00 low half", "roleOverview": "\ude00\ud83d"},
    {"minSalary": 10**400, "maxSalary": -(10**400), "yearsExperience": 10**309},
    {"keyResponsibilities": {"a\0b": ["x\0", "\ud800", 10**400, {"k\udfff": "v\0"}]}},
    {
        "nested": DEEP,
        "knockoutQuestions": [
            {"id": "q\0", "question": "\ud83d?", "required": False, "n": 10**400}
        ],
    },
    {"new\0field": "v\0", "half \udc00": 10**400, "benefitsDescription": None, "😀": "\udc00"},
]


def storable(value: Any) -> Any:
    """The value that replaces it."""
    if isinstance(value, str):
        return re.sub("[\0\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, int) and abs(value) >= 10**309:  # beyond any column of numbers
        return str(value)
    return list(map(storable, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("target", "json_type"),
    [(DUCKDB, "json"), (meltanolabs("hard", "bad"), "jsonb")],
    ids=["DuckDB", "PostgreSQL"],
)
def test_bad_values_are_replaced_and_all_others_arrive(
    target: Target, json_type: str, database: str, tmp_path: Path
) -> None:
    """In this run, and in the next, which has the state of this one."""
    sandbox = Sandbox.demo(jobs=len(BAD) + 2, options=Options(limited=False))
    jobs = published(sandbox)
    for job, bad in zip(jobs, BAD, strict=False):
        sandbox.edit(job["publicId"], **bad)
    expected = [storable(job) for job in published(sandbox)]
    pipe, store, tables = (
        Pipe(Tap(tmp_path), target.program),
        target.store(tmp_path, database),
        Tables(target),
    )
    assert isinstance(store, Database)
    with serving(sandbox) as base_url:
        tap = {"api_key": sandbox.key, "base_url": base_url, "column_naming": "snake_case"}
        for _ in range(2):
            run = pipe.run(tap, target.settings(tmp_path, database)).succeeded()

            rows = {table: store.rows(table) for table in COLUMNS}
            assert rows == tables.sync(expected, listed_at(rows["job_publications"]))
            # A text that is no JSON ends these queries.
            for column in ("additional_fields", "knockout_questions"):
                as_json = f"select {column}::{json_type} from {store.source('job_details')}"  # noqa: S608
                assert len(store.fetch(as_json)) == len(jobs)
            for job in jobs[: len(BAD)]:
                assert re.search(
                    rf"{job['publicId']}.*holds a value that no warehouse can store", run.output
                )
