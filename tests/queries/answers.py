"""What the page about SQL without dbt asks, and the right answers.

The jobs are easily counted wrong: without a salary, department or title, or not published.
"""

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

from e2e.stores import TABLES

Job = dict[str, Any]
Row = tuple[Any, ...]

COLUMNS = (
    *("public_id", "job_title", "department", "location", "seniority_level"),
    *("min_salary", "max_salary", "currency"),
)
TABLE: list[tuple[str | float | None, ...]] = [
    ("backend", "Backend Engineer", "Engineering", "Berlin", "senior", 60000, 80000, "EUR"),
    ("frontend", "Frontend Engineer", "Engineering", "Berlin", "senior", 50000.5, 70000, "EUR"),
    ("zurich", "Datenschützerin", "Recht & Übersetzung", "Zürich", "senior", 1e5, 120000, "CHF"),
    ("nowhere", "Köchin", "", None, "junior", None, None, ""),
    ("unpaid", None, "People", "Berlin", "intern", 0, 0, "EUR"),
    ("sales", "Account Executive", "Sales", "London", "", None, 61000, "GBP"),
    ("head", "Head of Sales", "Sales", "London", "lead", None, None, "GBP"),
    ("zero", "Sales Trainee", "Sales", "London, UK", "junior", 0, 30000, "GBP"),
    # Not published any more.
    ("unpublished", "Frontend Engineer", "Engineering", "Berlin", "senior", 1, 999999, "EUR"),
    ("lost", "Frontend Engineer", "Engineering", "Berlin", "senior", 2, 888888, "EUR"),
]

MAY_WORK = {"id": "q1", "question": "May you work here?", "type": "boolean", "required": True}
DANISH = {"id": "q2", "question": "Sprichst du Dänisch?", "type": "text", "required": False}
QUESTIONS: dict[str, list[Any]] = {
    "backend": [MAY_WORK, DANISH, MAY_WORK | {"id": "q3", "required": False}],
    "frontend": [MAY_WORK | {"required": False, "weight": 2}],
    "zurich": [None, {}, "?", {"question": "Führerschein?"}],
    "unpaid": [],
    "sales": [{"id": "q4", "required": True, "type": "boolean"}],
    "unpublished": [MAY_WORK],
    "lost": [MAY_WORK],
}
OTHERS: dict[str, dict[str, Any]] = {
    "backend": {"requiredSkills": ["SQL", "Größe"], "remote": True, "salaryPeriod": "month"},
    "frontend": {"requiredSkills": [], "remote": None, "salaryPeriod": "month"},
    "head": {"minSalary": "competitive", "yearsExperience": "5+"},
    "unpublished": {"secret": 1},
    "lost": {"secret": 2},
}


def job(values: tuple[str | float | None, ...]) -> Job:
    """One row of both tables; what is nested is JSON text, and what is not given is null."""
    row: Job = dict(zip(COLUMNS, values, strict=True))
    key = row["public_id"]
    for column, nested in (("knockout_questions", QUESTIONS), ("additional_fields", OTHERS)):
        row[column] = json.dumps(nested[key]) if key in nested else None
    return row | {"id": f"id-{key}", "job_url": f"https://jobs.example.com/{key}"}


JOBS = [job(values) for values in TABLE]


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
    times = (opened_after, first_seen_at, last_seen_at, unpublished_at)
    row = (f"id-{public_id}", public_id, *times)
    return dict(zip(TABLES["job_publications"], row, strict=True))


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

# The rows of each table.
ROWS = {"jobs": JOBS, "job_details": JOBS, "job_publications": PUBLICATIONS}


PAGE = (Path(__file__).parents[2] / "docs/query/sql.md").read_text("utf-8")
ASKED = {
    "open_roles": "How many roles are open, by department and location?",
    "salary_ranges": "What do roles pay, by seniority, currency and salary period?",
    "knockout_questions": "Which questions of each role can rule an applicant out?",
    "additional_fields": (
        "Which fields does the API send that have no column of their own, and what is in them?"
    ),
    "days_open": "How long are roles open, and how long were the closed ones?",
    "changes": "Which jobs are new or gone since yesterday?",
}
"""The questions, each a heading with its query below."""
QUERIES: dict[str, str] = {
    heading: sql
    for heading, _, section in (it.partition("\n") for it in PAGE.split("\n### "))
    if heading.endswith("?")
    for sql in re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
}


OPEN_SINCE_FIRST = ("open", None, FIRST, None, None, 75, None)
LAWYER = ("Datenschützerin", "Recht & Übersetzung")
ENGINEER = ("Frontend Engineer", "Engineering")
REMOVED = (None, None, "closed")  # the target has no row of the job any more
OCTOBER, LATE_OCTOBER = (listing(10, 1), listing(10, 2)), (listing(10, 21), listing(10, 22))
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
        ("EUR", "month", "senior", 2, 50000.5, 65000.125, 80000),
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
        ("salaryPeriod", 2, "month"),
        ("minSalary", 1, "competitive"),
        ("yearsExperience", 1, "5+"),
    ],
    # Bounds of how long each role was open, and of when it opened and closed.
    "days_open": [
        ("Backend Engineer", "Engineering", *OPEN_SINCE_FIRST, "backend"),
        ("Frontend Engineer", "Engineering", *OPEN_SINCE_FIRST, "frontend"),
        ("Head of Sales", "Sales", *OPEN_SINCE_FIRST, "head"),
        ("Account Executive", "Sales", *OPEN_SINCE_FIRST, "sales"),
        ("Sales Trainee", "Sales", *OPEN_SINCE_FIRST, "zero"),
        ("Köchin", None, "open", listing(10, 30), listing(11, 2), None, None, 19, 22, "nowhere"),
        (*LAWYER, "open", listing(11, 18), listing(11, 19), None, None, 2, 3, "zurich"),
        (None, "People", "open", YESTERDAY, LATEST, None, None, 0, 1, "unpaid"),
        (*ENGINEER, "closed", None, FIRST, listing(11, 16), listing(11, 18), 70, None, "lost"),
        (*ENGINEER, "closed", *OCTOBER, YESTERDAY, LATEST, 49, 51, "unpublished"),
        (*REMOVED, None, FIRST, *LATE_OCTOBER, 44, None, "forgotten"),
        (*REMOVED, listing(10, 8), listing(10, 11, 16), *LATE_OCTOBER, 9.5, 14, "removed"),
        (*REMOVED, FIRST, listing(9, 8), listing(9, 9), listing(9, 10), 1, 3, "long-ago"),
    ],
    "changes": [
        ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
        ("new", None, YESTERDAY, LATEST, "unpaid"),
    ],
}


def query(name: str) -> str:
    return QUERIES[ASKED[name]]


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
