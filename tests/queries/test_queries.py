"""Every file in queries/ gives the same right answer on DuckDB and on PostgreSQL."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from e2e.stores import TABLES
from e2e.targets import DUCKDB, Target, meltanolabs
from queries.answers import (
    ANSWERS,
    FIRST,
    JOBS,
    LATEST,
    NESTED_VALUES,
    PAGE,
    PUBLICATIONS,
    QUERIES,
    ROWS,
    YESTERDAY,
    Job,
    Row,
    listing,
    nested_values,
    query,
)

HISTORY = ("days_open", "changes")
OF_PUBLISHED_JOBS = [name for name in ANSWERS if name not in HISTORY]


@dataclass
class Warehouse:
    """A DuckDB in memory or a database of a server, with tables as a target makes them.

    Attributes:
        name: What the page calls it.
        connection: To it.
        placeholder: What its driver replaces by a value.
        target: The target.
    """

    name: str
    connection: Any
    placeholder: str
    target: Target

    def load(self, table: str, rows: list[Job]) -> None:
        """Create a table of the tap as the target does, and fill it."""
        kinds = TABLES[table]
        columns = ", ".join(f"{name} {self.target.types[kind]}" for name, kind in kinds.items())
        self.run(f"create table public_jobs.{table} ({columns})")
        placeholders = ", ".join([self.placeholder] * len(kinds))
        insert = f"insert into public_jobs.{table} values ({placeholders})"  # noqa: S608
        values = [[self.target.stored(row.get(name)) for name in kinds] for row in rows]
        self.connection.cursor().executemany(insert, values)

    def run(self, sql: str) -> None:
        """Execute statements."""
        self.connection.execute(sql)

    def rows(self, sql: str) -> list[Row]:
        """Return the answer: numbers that are not whole as floats, JSON parsed."""
        answer = self.connection.execute(sql)
        is_text = [str(kind) == "JSON" for _, kind, *_ in answer.description]  # on DuckDB
        return [tuple(map(plain, row, is_text)) for row in answer.fetchall()]


def plain(value: Any, is_json_text: bool) -> Any:
    if is_json_text and value is not None:
        return json.loads(value)
    return float(value) if isinstance(value, Decimal) else value


@pytest.fixture(scope="module", params=["DuckDB", "PostgreSQL"])
def committed(request: pytest.FixtureRequest) -> Iterator[Warehouse]:
    """A database with all rows."""
    with ExitStack() as stack:
        if request.param == "DuckDB":
            connection: Any = stack.enter_context(duckdb.connect())
            warehouse = Warehouse(request.param, connection, "?", DUCKDB)
        else:
            address = request.getfixturevalue("database")
            connection = stack.enter_context(psycopg.connect(address, autocommit=True))
            target = meltanolabs("hard", "public_jobs")
            warehouse = Warehouse(request.param, connection, "%s", target)
        warehouse.run("create schema public_jobs")
        for table, rows in ROWS.items():
            warehouse.load(table, rows)
        yield warehouse


@pytest.fixture
def warehouse(committed: Warehouse) -> Iterator[Warehouse]:
    """A database that forgets after the test."""
    committed.run("begin")
    yield committed
    committed.run("rollback")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer(name: str, warehouse: Warehouse) -> None:
    assert warehouse.rows(query(name)) == ANSWERS[name]


def test_the_page_about_nested_values_reads_them(warehouse: Warehouse) -> None:
    assert warehouse.rows(nested_values(warehouse.name)) == NESTED_VALUES


def test_the_page_about_published_jobs_finds_them_in_tables_and_in_lines(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On tables as the targets make them, and on lines as target-jsonl does, after two runs."""
    of_tables, of_lines = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
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
    # No listing closed it, and no later one moves its closing on.
    closed_by = listing(11, 18)
    assert by_id["lost"] == ("closed", None, FIRST, listing(11, 16), closed_by, 70, None)


RULE = """
unpublished_at is null
and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
"""


def test_every_file_has_the_rule_that_the_page_explains() -> None:
    def words(text: str) -> str:
        return " ".join(text.split())

    for text in [PAGE, *map(query, ANSWERS)]:
        assert words(text).count(words(RULE)) == 1


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
