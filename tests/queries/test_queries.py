"""Every file in queries/ gives the same right answer on DuckDB and on PostgreSQL."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
}


def query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer(name: str, warehouse: Warehouse) -> None:
    assert warehouse.rows(query(name)) == ANSWERS[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_without_jobs_there_is_no_answer(name: str, warehouse: Warehouse) -> None:
    warehouse.run("delete from public_jobs.jobs; delete from public_jobs.job_details")

    assert warehouse.rows(query(name)) == []


class TestHistory:
    """What snapshot_jobs.sql keeps, and what can be asked of it."""

    def test_a_day_keeps_what_its_last_run_found(self, warehouse: Warehouse) -> None:
        warehouse.run(query("snapshot_jobs"))
        warehouse.run("update public_jobs.jobs set is_published = false where id != 'id-frontend'")
        warehouse.run(query("snapshot_jobs"))

        assert warehouse.rows("""
            select
                day = current_date, id, public_id, job_title, location, department, type,
                seniority_level, min_salary, max_salary, currency
            from public_jobs.job_snapshots
        """) == [
            (
                True,
                "id-frontend",
                "frontend",
                "Frontend Engineer",
                "Berlin",
                "Engineering",
                None,
                "senior",
                50000.5,
                70000,
                "EUR",
            )
        ]

    def test_on_the_first_day_every_job_is_new(self, warehouse: Warehouse) -> None:
        warehouse.run(query("snapshot_jobs"))

        assert warehouse.rows(query("changes")) == [
            ("new", "Account Executive", None, None, "sales"),
            ("new", "Backend Engineer", None, None, "backend"),
            ("new", "Datenschützerin", None, None, "zurich"),
            ("new", "Frontend Engineer", None, None, "frontend"),
            ("new", "Head of Sales", None, None, "head"),
            ("new", "Köchin", None, None, "nowhere"),
            ("new", "Sales Trainee", None, None, "zero"),
            ("new", None, None, None, "unpaid"),
        ]

    def test_changes_since_the_last_earlier_day(self, warehouse: Warehouse) -> None:
        self.keep_three_days(warehouse)

        day = dt.date(2026, 1, 3)
        assert warehouse.rows(query("changes")) == [
            ("changed", "Frontend Engineer", "job_title, location, max_salary", day, "frontend"),
            ("changed", "Köchin", "currency", day, "nowhere"),
            ("gone", "Frontend Engineer", None, day, "unpublished"),
            ("new", "Datenschützerin", None, day, "zurich"),
        ]

    def test_without_changes_there_is_no_answer(self, warehouse: Warehouse) -> None:
        warehouse.run(query("snapshot_jobs"))
        warehouse.run("update public_jobs.job_snapshots set day = date '2026-01-03'")

        assert warehouse.rows(query("changes")) == []

    @staticmethod
    def keep_three_days(warehouse: Warehouse) -> None:
        """Snapshots of today, and of three days of which the last is not like today."""
        warehouse.run(query("snapshot_jobs"))
        for day in (1, 2, 3):
            warehouse.run(f"""
                insert into public_jobs.job_snapshots
                select
                    date '2026-01-0{day}', id, public_id, job_title, location, department, type,
                    seniority_level, min_salary, max_salary, currency
                from public_jobs.job_snapshots
                where day = current_date
            """)  # noqa: S608
        warehouse.run("""
            delete from public_jobs.job_snapshots
            where day = date '2026-01-03' and id = 'id-zurich';

            update public_jobs.job_snapshots
            set job_title = 'UI Engineer', location = null, max_salary = 70000.5
            where day < current_date and id = 'id-frontend';

            update public_jobs.job_snapshots
            set currency = 'SEK'
            where day = date '2026-01-03' and id = 'id-nowhere';

            insert into public_jobs.job_snapshots (day, id, public_id, job_title)
            values (date '2026-01-03', 'id-unpublished', 'unpublished', 'Frontend Engineer');
        """)


def test_the_table_of_questions_has_each_file_and_what_it_says_it_asks() -> None:
    table = (QUERIES / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| (.*?) \| \[.*?\]\((.*?)\) \|$", table, flags=re.MULTILINE))

    assert {file: question for question, file in listed.items()} == {
        file.name: first_line(file)
        for file in QUERIES.glob("*.sql")
        if file.stem != "snapshot_jobs"  # asks nothing
    }
    assert set(listed.values()) == {f"{name}.sql" for name in [*ANSWERS, "changes"]}


def first_line(file: Path) -> str:
    """The question that a file asks, without what is said to those who copy it."""
    line = file.read_text(encoding="utf-8").splitlines()[0]
    return re.sub(r" \(Change .*\)$", "", line.removeprefix("-- "))
