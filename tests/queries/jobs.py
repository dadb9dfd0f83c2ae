"""Jobs that are easily counted wrong: without a salary, department or title, or not published."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

Job = dict[str, Any]


def job(public_id: str, title: str | None, **fields: object) -> Job:
    """One row of both tables; what is nested is JSON text, and what is not given is null."""
    return {
        "id": f"id-{public_id}",
        "public_id": public_id,
        "job_title": title,
        "job_url": f"https://jobs.example.com/{public_id}",
    } | {
        name: json.dumps(value) if isinstance(value, list | dict) else value
        for name, value in fields.items()
    }


MAY_WORK = {"id": "q1", "question": "May you work here?", "type": "boolean", "required": True}
DANISH = {"id": "q2", "question": "Sprichst du Dänisch?", "type": "text", "required": False}

JOBS = [
    job(
        "backend",
        "Backend Engineer",
        department="Engineering",
        location="Berlin",
        seniority_level="senior",
        min_salary=60000,
        max_salary=80000,
        currency="EUR",
        years_experience=8,
        role_overview="You will TEST what you design.",
        knockout_questions=[MAY_WORK, DANISH, MAY_WORK | {"id": "q3", "required": False}],
        additional_fields={"requiredSkills": ["SQL", "Größe"], "remote": True},
    ),
    job(
        "frontend",
        "Frontend Engineer",
        department="Engineering",
        location="Berlin",
        seniority_level="senior",
        min_salary=50000.5,
        max_salary=70000,
        currency="EUR",
        years_experience=5,
        knockout_questions=[MAY_WORK | {"required": False, "weight": 2}],
        additional_fields={"requiredSkills": [], "remote": None},
    ),
    job(
        "zurich",
        "Datenschützerin",
        department="Recht & Übersetzung",
        location="Zürich",
        seniority_level="senior",
        min_salary=100000,
        max_salary=120000,
        currency="CHF",
        years_experience=5.5,
        role_overview="Für Köchinnen und Köche in Zürich, Genève und Łódź: our latest role.",
        knockout_questions=[None, {}, "?", {"question": "Führerschein?"}],
    ),
    job(
        "nowhere",
        "Köchin",
        department="",
        location=None,
        seniority_level="junior",
        currency="",
        role_overview="",
        knockout_questions=None,
    ),
    job(
        "unpaid",
        None,
        department="People",
        location="Berlin",
        seniority_level="intern",
        min_salary=0,
        max_salary=0,
        currency="EUR",
        years_experience=0,
        knockout_questions=[],
    ),
    job(
        "sales",
        "Account Executive",
        department="Sales",
        location="London",
        seniority_level="",
        max_salary=61000,
        currency="GBP",
        years_experience=6,
        knockout_questions=[{"id": "q4", "required": True, "type": "boolean"}],
    ),
    job(
        "head",
        "Head of Sales",
        department="Sales",
        location="London",
        seniority_level="lead",
        currency="GBP",
        additional_fields={"minSalary": "competitive", "yearsExperience": "5+"},
    ),
    job(
        "zero",
        "Sales Trainee",
        department="Sales",
        location="London, UK",
        seniority_level="junior",
        min_salary=0,
        max_salary=30000,
        currency="GBP",
    ),
    job(
        "unpublished",
        "Frontend Engineer",
        department="Engineering",
        location="Berlin",
        seniority_level="senior",
        min_salary=1,
        max_salary=999999,
        currency="EUR",
        years_experience=20,
        role_overview="test",
        knockout_questions=[MAY_WORK],
        additional_fields={"secret": 1},
    ),
    job(
        "lost",
        "Frontend Engineer",
        department="Engineering",
        location="Berlin",
        seniority_level="senior",
        min_salary=2,
        max_salary=888888,
        currency="EUR",
        years_experience=30,
        role_overview="design",
        knockout_questions=[MAY_WORK],
        additional_fields={"secret": 2},
    ),
]


def listing(month: int, day: int, hour: int = 4) -> dt.datetime:
    """Return when the list was read, a time in 2026, as warehouses hold it: UTC without a zone."""
    return dt.datetime(2026, month, day, hour, 0, 0, 250_000)  # noqa: DTZ001


FIRST, YESTERDAY, LATEST = listing(9, 7), listing(11, 20), listing(11, 21)


def publication(
    public_id: str,
    opened_after: dt.datetime | None = None,
    first_seen_at: dt.datetime = FIRST,
    last_seen_at: dt.datetime = LATEST,
    unpublished_at: dt.datetime | None = None,
) -> Job:
    """One row of `job_publications`; by default of a job that every listing showed."""
    return {
        "id": f"id-{public_id}",
        "public_id": public_id,
        "opened_after": opened_after,
        "first_seen_at": first_seen_at,
        "last_seen_at": last_seen_at,
        "unpublished_at": unpublished_at,
    }


PUBLICATIONS = [
    publication("backend"),
    publication("frontend"),
    publication("sales"),
    publication("head"),
    publication("zero"),
    # Opened on either side of the start of a week, which is Monday, 2 November.
    publication("nowhere", opened_after=listing(10, 30), first_seen_at=listing(11, 2)),
    # Published again after it was closed: the new period takes the place of the old one.
    publication("zurich", opened_after=listing(11, 18), first_seen_at=listing(11, 19)),
    publication("unpaid", opened_after=YESTERDAY, first_seen_at=LATEST),
    publication("unpublished", listing(10, 1), listing(10, 2), YESTERDAY, LATEST),
    # The state that knew it was lost, so that no listing closed it.
    publication("lost", last_seen_at=listing(11, 16)),
    # From here on, the target has removed the rows from the other tables.
    publication("forgotten", last_seen_at=listing(10, 21)),
    publication("removed", listing(10, 8), listing(10, 11, 16), listing(10, 21), listing(10, 22)),
    publication("long-ago", FIRST, listing(9, 8), listing(9, 9), listing(9, 10)),
]

ROWS = {"jobs": JOBS, "job_details": JOBS, "job_publications": PUBLICATIONS}
"""The rows of each table."""
