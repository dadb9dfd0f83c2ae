"""Every file in queries/ gives the same right answer on DuckDB and on PostgreSQL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from queries.jobs import FIRST, LATEST, YESTERDAY, listing
from queries.warehouse import TABLES

if TYPE_CHECKING:
    from queries.warehouse import Row, Warehouse

QUERIES = Path(__file__).parents[2] / "queries"
URL = "https://jobs.example.com/"

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
        ("CHF", "senior", 1, 100000, 110000, 120000),
        ("EUR", "senior", 2, 50000.5, 65000.125, 80000),
        ("GBP", "junior", 1, 30000, 30000, 30000),
        ("GBP", "not given", 1, 61000, 61000, 61000),
    ],
    "roles_without_salary": [
        ("People", None, None, "unpaid", f"{URL}unpaid"),
        ("Sales", "Head of Sales", "competitive", "head", f"{URL}head"),
        ("not given", "Köchin", None, "nowhere", f"{URL}nowhere"),
    ],
    "experience": [
        (8, "Backend Engineer", "Berlin", "backend", f"{URL}backend"),
        (6, "Account Executive", "London", "sales", f"{URL}sales"),
        (5.5, "Datenschützerin", "Zürich", "zurich", f"{URL}zurich"),
    ],
    "knockout_questions": [
        ("Backend Engineer", "May you work here?", "boolean", False, "backend"),
        ("Backend Engineer", "May you work here?", "boolean", True, "backend"),
        ("Backend Engineer", "Sprichst du Dänisch?", "text", False, "backend"),
        ("Datenschützerin", "Führerschein?", None, None, "zurich"),
        ("Frontend Engineer", "May you work here?", "boolean", False, "frontend"),
    ],
    "knockout_question_kinds": [
        ("boolean", "May you work here?", 2, 1),
        ("not given", "Führerschein?", 1, 0),
        ("text", "Sprichst du Dänisch?", 1, 0),
    ],
    "search_role_overviews": [
        (
            "design",
            "Backend Engineer",
            "You will TEST what you design.",
            "backend",
            f"{URL}backend",
        ),
        ("test", "Backend Engineer", "You will TEST what you design.", "backend", f"{URL}backend"),
        (
            "test",
            "Datenschützerin",
            "ürich, Genève und Łódź: our latest role.",
            "zurich",
            f"{URL}zurich",
        ),
    ],
    "additional_fields": [
        ("remote", 2, True),
        ("skills", 2, ["SQL", "Größe"]),
        ("minSalary", 1, "competitive"),
        ("yearsExperience", 1, "5+"),
    ],
    "days_open": [
        # title, department, status, opened after, by, closed after, by, days at least, at most
        (
            *("Backend Engineer", "Engineering", "open"),
            None,
            FIRST,
            None,
            None,
            75,
            None,
            "backend",
        ),
        (
            *("Frontend Engineer", "Engineering", "open"),
            *(None, FIRST, None, None, 75, None, "frontend"),
        ),
        ("Head of Sales", "Sales", "open", None, FIRST, None, None, 75, None, "head"),
        ("Account Executive", "Sales", "open", None, FIRST, None, None, 75, None, "sales"),
        ("Sales Trainee", "Sales", "open", None, FIRST, None, None, 75, None, "zero"),
        ("Köchin", None, "open", listing(10, 30), listing(11, 2), None, None, 19, 22, "nowhere"),
        (
            *("Datenschützerin", "Recht & Übersetzung", "open"),
            *(listing(11, 18), listing(11, 19), None, None, 2, 3, "zurich"),
        ),
        (None, "People", "open", YESTERDAY, LATEST, None, None, 0, 1, "unpaid"),
        (
            *("Frontend Engineer", "Engineering", "closed"),
            *(None, FIRST, listing(11, 16), LATEST, 70, None, "lost"),
        ),
        (
            *("Frontend Engineer", "Engineering", "closed"),
            *(listing(10, 1), listing(10, 2), YESTERDAY, LATEST, 49, 51, "unpublished"),
        ),
        (None, None, "closed", None, FIRST, listing(10, 21), LATEST, 44, None, "forgotten"),
        (
            *(None, None, "closed", listing(10, 8), listing(10, 11, 16)),
            *(listing(10, 21), listing(10, 22), 9.5, 14, "removed"),
        ),
        (
            *(None, None, "closed", FIRST, listing(9, 8)),
            *(listing(9, 9), listing(9, 10), 1, 3, "long-ago"),
        ),
    ],
    "days_open_by_department": [
        # department, status, roles, those whose opening is unknown, medians at least and at most
        ("Engineering", "open", 2, 2, None, None),
        ("Engineering", "closed", 2, 1, 49, 51),
        ("People", "open", 1, 0, 0, 1),
        ("Recht & Übersetzung", "open", 1, 0, 2, 3),
        ("Sales", "open", 3, 3, None, None),
        ("not given", "open", 1, 0, 19, 22),
        ("not in jobs", "closed", 3, 1, 5.25, 8.5),
    ],
    "opened_and_closed_per_week": [
        ("2026-09-07", 1, 1),
        ("2026-09-28", 1, 0),
        ("2026-10-05", 1, 0),
        ("2026-10-19", 0, 1),
        ("2026-11-02", 1, 0),
        ("2026-11-16", 2, 1),
        ("unknown", 7, 2),
    ],
    "closed_last_30_days": [
        ("Frontend Engineer", "Engineering", YESTERDAY, LATEST, 49, "unpublished"),
        ("Frontend Engineer", "Engineering", listing(11, 16), LATEST, 70, "lost"),
        (None, None, listing(10, 21), listing(10, 22), 9.5, "removed"),
    ],
    "changes": [
        ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
        ("new", None, YESTERDAY, LATEST, "unpaid"),
    ],
}


HISTORY = (
    "days_open",
    "days_open_by_department",
    "opened_and_closed_per_week",
    "closed_last_30_days",
    "changes",
)
OF_PUBLISHED_JOBS = [name for name in ANSWERS if name not in HISTORY]


def query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer(name: str, warehouse: Warehouse) -> None:
    assert warehouse.rows(query(name)) == ANSWERS[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_empty_tables_have_no_answer(name: str, warehouse: Warehouse) -> None:
    for table in TABLES:
        warehouse.run(f"delete from public_jobs.{table}")  # noqa: S608

    assert warehouse.rows(query(name)) == []


@pytest.mark.parametrize("name", OF_PUBLISHED_JOBS)
def test_an_empty_list_leaves_no_published_job(name: str, warehouse: Warehouse) -> None:
    warehouse.run("""
        update public_jobs.job_publications
        set unpublished_at = timestamp '2026-11-22 04:00:00.250'
        where unpublished_at is null and last_seen_at = timestamp '2026-11-21 04:00:00.250'
    """)

    assert warehouse.rows(query(name)) == []


def test_after_the_first_sync_no_job_is_new_for_certain(warehouse: Warehouse) -> None:
    first_sync(warehouse)

    changes = warehouse.rows(query("changes"))
    assert [row[0] for row in changes] == ["first seen"] * 8
    assert changes[0][1:] == ("Account Executive", None, LATEST, "sales")


def test_after_the_first_sync_the_week_of_every_opening_is_unknown(warehouse: Warehouse) -> None:
    first_sync(warehouse)

    assert warehouse.rows(query("opened_and_closed_per_week")) == [("unknown", 8, 0)]


def test_changes_of_every_listing_of_the_day_are_shown(warehouse: Warehouse) -> None:
    """The list was read at 4:00 and at 16:00, and a job is gone that no listing closed."""
    warehouse.run("""
        update public_jobs.job_publications
        set last_seen_at = timestamp '2026-11-21 16:00:00.250'
        where unpublished_at is null and last_seen_at = timestamp '2026-11-21 04:00:00.250';

        update public_jobs.job_publications
        set last_seen_at = timestamp '2026-11-21 04:00:00.250'
        where id = 'id-lost';
    """)

    assert warehouse.rows(query("changes")) == [
        ("gone", "Frontend Engineer", LATEST, listing(11, 21, 16), "lost"),
        ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
        ("new", None, YESTERDAY, LATEST, "unpaid"),
    ]


def test_a_day_without_changes_has_no_answer(warehouse: Warehouse) -> None:
    warehouse.run("""
        update public_jobs.job_publications
        set last_seen_at = timestamp '2026-11-22 04:00:00.250'
        where unpublished_at is null and last_seen_at = timestamp '2026-11-21 04:00:00.250'
    """)

    assert warehouse.rows(query("changes")) == []


def test_a_job_published_again_is_no_longer_closed(warehouse: Warehouse) -> None:
    """The next listing shows the job that this one closed."""
    warehouse.run("""
        update public_jobs.job_publications
        set last_seen_at = timestamp '2026-11-22 04:00:00.250'
        where unpublished_at is null and last_seen_at = timestamp '2026-11-21 04:00:00.250';

        update public_jobs.job_publications
        set opened_after = timestamp '2026-11-21 04:00:00.250',
            first_seen_at = timestamp '2026-11-22 04:00:00.250',
            last_seen_at = timestamp '2026-11-22 04:00:00.250',
            unpublished_at = null
        where id = 'id-unpublished';
    """)

    again = listing(11, 22)
    assert warehouse.rows(query("open_roles"))[0] == ("Engineering", "Berlin", 3)
    assert warehouse.rows(query("changes")) == [
        ("new", "Frontend Engineer", LATEST, again, "unpublished")
    ]
    assert [row[-1] for row in warehouse.rows(query("closed_last_30_days"))] == ["lost"]
    by_id = {row[-1]: row[2:-1] for row in warehouse.rows(query("days_open"))}
    assert by_id["unpublished"] == ("open", LATEST, again, None, None, 0, 1)
    assert by_id["lost"] == ("closed", None, FIRST, listing(11, 16), again, 70, None)


def first_sync(warehouse: Warehouse) -> None:
    """Leave what the first run of the tap would have written."""
    warehouse.run("""
        delete from public_jobs.job_publications
        where unpublished_at is not null or last_seen_at < timestamp '2026-11-21 04:00:00.250';

        update public_jobs.job_publications
        set opened_after = null, first_seen_at = timestamp '2026-11-21 04:00:00.250';
    """)


def test_every_file_has_the_rule_that_the_readme_explains() -> None:
    readme = (QUERIES / "README.md").read_text(encoding="utf-8")
    rule = readme.partition("```sql\n")[2].partition("\n\n")[0]

    assert rule.startswith("with published as (")
    for name in ANSWERS:
        assert query(name).count(rule) == 1


def test_the_rule_and_the_query_of_the_readme_answer(warehouse: Warehouse) -> None:
    readme = (QUERIES / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("```sql\n")[2].partition("```")[0]

    assert warehouse.rows(shown) == [(8,)]


def test_the_readme_lists_every_file_with_its_question() -> None:
    readme = (QUERIES / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| (.*?) \| \[.*?\]\((.*?)\) \|$", readme, flags=re.MULTILINE))

    assert {file: question for question, file in listed.items()} == {
        file.name: first_line(file) for file in QUERIES.glob("*.sql")
    }
    assert set(listed.values()) == {f"{name}.sql" for name in ANSWERS}


def first_line(file: Path) -> str:
    """Return the question that a file asks, without the advice for those who copy it."""
    line = file.read_text(encoding="utf-8").splitlines()[0]
    return re.sub(r" \(Change .*\)$", "", line.removeprefix("-- "))
