"""What the files in queries/ and the page about SQL ask, and the right answers."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING

from queries.jobs import JOBS, LATEST, PUBLICATIONS, YESTERDAY

if TYPE_CHECKING:
    from queries.warehouse import Row

QUERIES = Path(__file__).parents[2] / "queries"
PAGE = (QUERIES.parent / "docs" / "sql.md").read_text("utf-8")


def days_open() -> list[Row]:
    """Bounds of how long each role was open, and of when it opened and closed."""
    answer: list[Row] = []
    listings = {row[name] for row in PUBLICATIONS for name in TIMES} - {None}
    for row in PUBLICATIONS:
        job = next((job for job in JOBS if job["id"] == row["id"]), {})
        opened, seen, last = row["opened_after"], row["first_seen_at"], row["last_seen_at"]
        is_open = row["unpublished_at"] is None and last == LATEST
        later = [time for time in listings if time > last]
        closed = None if is_open else row["unpublished_at"] or min(later)
        answer.append((
            *(job.get("job_title"), job.get("department") or None),
            "open" if is_open else "closed",
            *(opened, seen, None if is_open else last, closed),
            (last - seen) / DAY,
            ((closed or last) - opened) / DAY if opened else None,
            row["public_id"],
        ))  # fmt: skip
    return sorted(answer, key=lambda it: (it[2] == "closed", -it[7], it[-1]))


DAY = dt.timedelta(days=1)
TIMES = ("opened_after", "first_seen_at", "last_seen_at", "unpublished_at")
ANSWERS: dict[str, list[Row]] = {
    "open_roles": [
        ("Engineering", "Berlin", 2),
        ("Sales", "London", 2),
        ("People", "Berlin", 1),
        ("Recht & Übersetzung", "Zürich", 1),
        ("Sales", "London, UK", 1),
        ("not given", "not given", 1),
    ],
    "salary_ranges": [
        ("CHF", "not given", "senior", 1, 100000, 110000, 120000),
        ("EUR", "month", "senior", 1, 50000.5, 60000.25, 70000),
        ("EUR", "not given", "senior", 1, 60000, 70000, 80000),
        ("GBP", "not given", "junior", 1, 30000, 30000, 30000),
        ("GBP", "not given", "not given", 1, 61000, 61000, 61000),
    ],
    "knockout_questions": [
        ("Backend Engineer", "May you work here?", "boolean", False, "backend"),
        ("Backend Engineer", "May you work here?", "boolean", True, "backend"),
        ("Backend Engineer", "Sprichst du Dänisch?", "text", False, "backend"),
        ("Datenschützerin", "Führerschein?", None, None, "zurich"),
        ("Frontend Engineer", "May you work here?", "boolean", False, "frontend"),
    ],
    "additional_fields": [
        ("remote", 2, True),
        ("requiredSkills", 2, ["SQL", "Größe"]),
        ("minSalary", 1, "competitive"),
        ("salaryPeriod", 1, "month"),
        ("yearsExperience", 1, "5+"),
    ],
    "days_open": days_open(),
    "changes": [
        ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
        ("new", None, YESTERDAY, LATEST, "unpaid"),
    ],
}


def query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


def nested_values(name: str) -> str:
    """A query of what the page says about a database."""
    lines = rf"^\| {name} \| `(.*)` \| `(.*)` \| `(.*)` \|$"
    ((field, questions, text),) = re.findall(lines, PAGE, re.MULTILINE)
    return f"""
        select {field} as skill, {text} as question
        from public_jobs.job_details {questions}
        where public_id = 'backend'
        order by 2
    """  # noqa: S608


NESTED_VALUES = [("SQL", "May you work here?")] * 2 + [("SQL", "Sprichst du Dänisch?")]
