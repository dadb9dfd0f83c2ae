"""Every file in queries/ gives the same right answer on DuckDB and on PostgreSQL."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from queries.jobs import FIRST, JOBS, LATEST, PUBLICATIONS, YESTERDAY, listing
from queries.warehouse import TABLES

if TYPE_CHECKING:
    from queries.warehouse import Row, Warehouse

QUERIES = Path(__file__).parents[2] / "queries"


def days_open() -> list[Row]:
    """Bounds of how long each role was open, and of when it opened and closed."""
    answer: list[Row] = []
    for row in PUBLICATIONS:
        job = next((job for job in JOBS if job["id"] == row["id"]), {})
        opened, seen, last = row["opened_after"], row["first_seen_at"], row["last_seen_at"]
        is_open = row["unpublished_at"] is None and last == LATEST
        closed = None if is_open else row["unpublished_at"] or LATEST
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
        ("yearsExperience", 1, "5+"),
    ],
    "days_open": days_open(),
    "changes": [
        ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
        ("new", None, YESTERDAY, LATEST, "unpaid"),
    ],
}


HISTORY = ("days_open", "changes")
OF_PUBLISHED_JOBS = [name for name in ANSWERS if name not in HISTORY]


def query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer(name: str, warehouse: Warehouse) -> None:
    assert warehouse.rows(query(name)) == ANSWERS[name]


def nested_values(name: str) -> str:
    """A query of what the page says about a database."""
    page = (QUERIES.parent / "docs" / "sql.md").read_text("utf-8")
    lines = rf"^\| {name} \| `(.*)` \| `(.*)` \| `(.*)` \|$"
    ((field, questions, text),) = re.findall(lines, page, re.MULTILINE)
    return f"""
        select {field} as skill, {text} as question
        from public_jobs.job_details {questions}
        where public_id = 'backend'
        order by 2
    """  # noqa: S608


NESTED_VALUES = [("SQL", "May you work here?")] * 2 + [("SQL", "Sprichst du Dänisch?")]


def test_the_page_about_nested_values_reads_them(warehouse: Warehouse) -> None:
    name = type(warehouse).__name__.replace("Postgres", "PostgreSQL")
    assert warehouse.rows(nested_values(name)) == NESTED_VALUES


def test_the_page_about_published_jobs_finds_them_in_tables_and_in_lines(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On tables as the targets make them, and on lines as target-jsonl does, after two runs."""
    page = (QUERIES.parent / "docs" / "sql.md").read_text("utf-8")
    of_tables, of_lines = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    (tmp_path / "output").mkdir()
    for table, rows in (("jobs", JOBS), ("job_publications", PUBLICATIONS)):
        before = [row | {"job_title": "old", "last_seen_at": FIRST} for row in rows]
        lines = [json.dumps(row, default=dt.datetime.isoformat) for row in before + rows]
        (tmp_path / "output" / f"{table}.jsonl").write_text("\n".join(lines), "utf-8")
    monkeypatch.chdir(tmp_path)
    titles = {job["id"]: job["job_title"] for job in JOBS[:8]}

    found = warehouse.rows(f"select id, job_title from ({of_tables}) as it")  # noqa: S608
    assert dict(found) == titles
    with duckdb.connect() as connection:
        read = connection.execute(f"select id, job_title from ({of_lines})")  # noqa: S608
        assert dict(read.fetchall()) == titles
    assert len(found) == 8


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
    warehouse.run("""
        delete from public_jobs.job_publications
        where unpublished_at is not null or last_seen_at < timestamp '2026-11-21 04:00:00.250';

        update public_jobs.job_publications
        set opened_after = null, first_seen_at = timestamp '2026-11-21 04:00:00.250';
    """)

    changes = warehouse.rows(query("changes"))
    assert [row[0] for row in changes] == ["first seen"] * 8
    assert changes[0][1:] == ("Account Executive", None, LATEST, "sales")


def list_again(warehouse: Warehouse, at: str) -> None:
    """Note another listing, which shows the same jobs."""
    warehouse.run(f"""
        update public_jobs.job_publications set last_seen_at = timestamp '{at}'
        where unpublished_at is null and last_seen_at = timestamp '2026-11-21 04:00:00.250'
    """)  # noqa: S608


def test_changes_of_every_listing_of_the_day_are_shown(warehouse: Warehouse) -> None:
    """The list was read at 4:00 and at 16:00, and a job is gone that no listing closed."""
    list_again(warehouse, "2026-11-21 16:00:00.250")
    warehouse.run("""
        update public_jobs.job_publications
        set last_seen_at = timestamp '2026-11-21 04:00:00.250'
        where id = 'id-lost';
    """)

    assert warehouse.rows(query("changes")) == [
        ("gone", "Frontend Engineer", LATEST, listing(11, 21, 16), "lost"),
        ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
        ("new", None, YESTERDAY, LATEST, "unpaid"),
    ]


def test_a_job_published_again_is_no_longer_closed(warehouse: Warehouse) -> None:
    """The next listing shows the job that this one closed."""
    list_again(warehouse, "2026-11-22 04:00:00.250")
    warehouse.run("""
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
    by_id = {row[-1]: row[2:-1] for row in warehouse.rows(query("days_open"))}
    assert by_id["unpublished"] == ("open", LATEST, again, None, None, 0, 1)
    assert by_id["lost"] == ("closed", None, FIRST, listing(11, 16), again, 70, None)


RULE = """
unpublished_at is null
and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
"""


def test_every_file_has_the_rule_that_the_readme_explains() -> None:
    def words(text: str) -> str:
        return " ".join(text.split())

    for text in [(QUERIES / "README.md").read_text(encoding="utf-8"), *map(query, ANSWERS)]:
        assert words(text).count(words(RULE)) == 1


def test_the_query_of_the_readme_answers(warehouse: Warehouse) -> None:
    readme = (QUERIES / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("```sql\n")[2].partition("```")[0]

    assert warehouse.rows(shown) == [(8,)]


def test_the_readme_lists_every_file_with_its_question() -> None:
    readme = (QUERIES / "README.md").read_text(encoding="utf-8")
    listed = dict(
        re.findall(r"^\| (.*?) \| \[.*?\]\((.*?)\) \| `\w+` \|$", readme, flags=re.MULTILINE)
    )

    assert {file: question for question, file in listed.items()} == {
        file.name: first_line(file) for file in QUERIES.glob("*.sql")
    }
    assert set(listed.values()) == {f"{name}.sql" for name in ANSWERS}


def first_line(file: Path) -> str:
    """Return the question that a file asks."""
    return file.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- ")
