"""What is in the warehouse, and what should be."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, summary

from tap_public_jobs.records.naming import column_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from night import Night
    from public_jobs_sandbox.postings import Job

Row = dict[str, Any]


def rows(night: Night, organisation: str, table: str) -> list[Row]:
    """Every row, without what the target adds for itself."""
    with psycopg.connect(night.database, row_factory=dict_row) as connection:
        query = f"select * from {organisation}.{table} order by public_id"  # noqa: S608
        found = connection.execute(query.encode()).fetchall()
    return [
        {name: value for name, value in row.items() if not name.startswith("_sdc_")}
        for row in found
    ]


def open_jobs(night: Night, organisation: str) -> list[Row]:
    """What the final tables have of an organisation."""
    with psycopg.connect(night.database, row_factory=dict_row) as connection:
        query = "select * from analytics.open_jobs where organisation = %s order by public_id"
        return connection.execute(query, [organisation]).fetchall()


def published(night: Night, organisation: str) -> list[Job]:
    """The truth, with numbers as exact as PostgreSQL keeps them."""
    jobs = [posting.job for posting in night.sandbox.organisations[organisation].published()]
    exact: list[Job] = json.loads(json.dumps(jobs), parse_float=Decimal)
    return sorted(exact, key=lambda job: str(job["publicId"]))


def detail_paths(night: Night, organisation: str) -> list[str]:
    return [f"/api/public/v1/jobs/{job['publicId']}" for job in published(night, organisation)]


def columns(fields: Job, **others: Any) -> Row:
    return {column_of(name, "snake_case"): value for name, value in fields.items()} | others


def expected_job(job: Job) -> Row:
    return columns(summary(job), additional_fields=None)


def expected_detail(job: Job) -> Row:
    documented = {name: value for name, value in job.items() if name not in UNDOCUMENTED_FIELDS}
    return columns(
        documented, additional_fields={name: job[name] for name in sorted(UNDOCUMENTED_FIELDS)}
    )


def only(names: Iterable[str], rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in names} for row in rows]
