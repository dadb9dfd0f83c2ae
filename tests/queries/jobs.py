"""Jobs that are easily counted wrong: without a salary, a department or a title, or unpublished."""

from __future__ import annotations

from typing import Any

Job = dict[str, Any]


def job(public_id: str, title: str | None, **fields: object) -> Job:
    """One row of both tables; what is not given is null."""
    return {
        "id": f"id-{public_id}",
        "public_id": public_id,
        "job_title": title,
        "job_url": f"https://jobs.example.com/{public_id}",
        "is_published": True,
        **fields,
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
        additional_fields={"skills": ["SQL", "Größe"], "remote": True},
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
        additional_fields={"skills": [], "remote": None},
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
        knockout_questions=[None, {}, {"question": "Führerschein?"}],
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
        is_published=False,
    ),
]
