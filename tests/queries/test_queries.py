"""Every query without dbt gives the same right answer on DuckDB and on PostgreSQL."""

import datetime as dt
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from e2e.pipeline import REPOSITORY
from e2e.stores import TABLES
from e2e.targets import DUCKDB, Target, meltanolabs
from queries.answers import (
    ANSWERS,
    ASKED,
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
    publication,
    query,
)
from support.expected import make_table

HISTORY = ("days_open", "changes")


@dataclass
class EmptyWarehouse:
    """An empty DuckDB in memory, or an empty database of a server.

    Attributes:
        name: What the page calls it.
        connection: To it.
        target: The target that makes its tables.
    """

    name: str
    connection: Any
    target: Target

    def load(self, tables: dict[str, list[Job]]) -> None:
        """Create the tables of the tap as the target does, and fill them."""
        execute = self.connection.execute
        execute("create schema public_jobs")
        for table, rows in tables.items():
            stored = [{name: self.target.stored(it) for name, it in row.items()} for row in rows]
            make_table(execute, f"public_jobs.{table}", self.target.column_types(table), stored)

    def rows(self, sql: str) -> list[Row]:
        """Return the answer, its JSON parsed."""
        answer = self.connection.execute(sql)
        is_text = [str(kind) == "JSON" for _, kind, *_ in answer.description]  # on DuckDB
        return [tuple(map(parsed, row, is_text)) for row in answer.fetchall()]


def parsed(value: Any, is_json_text: bool) -> Any:
    return json.loads(value) if is_json_text and value is not None else value


@pytest.fixture(params=["DuckDB", "PostgreSQL"])
def warehouse(request: pytest.FixtureRequest) -> Iterator[EmptyWarehouse]:
    """A database that forgets after the test."""
    if request.param == "DuckDB":
        with duckdb.connect() as memory:
            yield EmptyWarehouse(request.param, memory, DUCKDB)
    else:
        with psycopg.connect(request.getfixturevalue("database")) as server:
            yield EmptyWarehouse(request.param, server, meltanolabs("hard", "public_jobs"))
            server.rollback()


def listed_again(at: dt.datetime, *changed: Job) -> dict[str, list[Job]]:
    """The rows after another listing, which shows the same jobs but for those that it changes."""
    after = {
        it["id"]: it | ({"last_seen_at": at} if it["last_seen_at"] == LATEST else {})
        for it in PUBLICATIONS
    }
    return ROWS | {"job_publications": list((after | {it["id"]: it for it in changed}).values())}


CLOSED = [
    it | {"unpublished_at": listing(11, 22)} for it in PUBLICATIONS if it["last_seen_at"] == LATEST
]
AFTERNOON, AGAIN = listing(11, 21, 16), listing(11, 22)
# Rows, and the answers of the queries to which they matter.
CASES: dict[str, tuple[dict[str, list[Job]], dict[str, list[Row]]]] = {
    "the rows of answers.py": (ROWS, ANSWERS),
    "empty tables": ({table: [] for table in TABLES}, {name: [] for name in ANSWERS}),
    "an empty list leaves no published job": (
        listed_again(LATEST, *CLOSED),
        {name: [] for name in ANSWERS if name not in HISTORY},
    ),
    # The list was read at 4:00 and at 16:00, and a job is gone that no listing closed.
    "changes of every listing of the day": (
        listed_again(AFTERNOON, publication("lost")),
        {
            "changes": [
                ("gone", "Frontend Engineer", LATEST, AFTERNOON, "lost"),
                ("gone", "Frontend Engineer", YESTERDAY, LATEST, "unpublished"),
                ("new", None, YESTERDAY, LATEST, "unpaid"),
            ]
        },
    ),
}


@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case, (_, answers) in CASES.items() for name in answers]
)
def test_the_answer(case: str, name: str, warehouse: EmptyWarehouse) -> None:
    rows, answers = CASES[case]
    warehouse.load(rows)

    assert warehouse.rows(query(name)) == answers[name]


def test_after_the_first_sync_no_job_is_new_for_certain(warehouse: EmptyWarehouse) -> None:
    seen = [publication(it["public_id"], first_seen_at=LATEST) for it in CLOSED]
    warehouse.load(ROWS | {"job_publications": seen})

    changes = warehouse.rows(query("changes"))
    assert [row[0] for row in changes] == ["first seen"] * 8
    assert changes[0][1:] == ("Account Executive", None, LATEST, "sales")


def test_a_job_published_again_is_no_longer_closed(warehouse: EmptyWarehouse) -> None:
    """The next listing shows the job that this one closed."""
    warehouse.load(listed_again(AGAIN, publication("unpublished", LATEST, AGAIN, AGAIN)))

    assert warehouse.rows(query("open_roles"))[0] == ("Engineering", "Berlin", 3)
    assert warehouse.rows(query("changes")) == [
        ("new", "Frontend Engineer", LATEST, AGAIN, "unpublished")
    ]
    by_id = {row[-1]: row[2:-1] for row in warehouse.rows(query("days_open"))}
    assert by_id["unpublished"] == ("open", LATEST, AGAIN, None, None, 0, 1)
    # No listing closed it, and no later one moves its closing on.
    closed_by = listing(11, 18)
    assert by_id["lost"] == ("closed", None, FIRST, listing(11, 16), closed_by, 70, None)


def test_the_page_about_nested_values_reads_them(warehouse: EmptyWarehouse) -> None:
    warehouse.load(ROWS)

    assert warehouse.rows(nested_values(warehouse.name)) == NESTED_VALUES


def test_the_page_about_published_jobs_finds_them_in_tables_and_in_lines(
    warehouse: EmptyWarehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On tables as the targets make them, and on lines as target-jsonl does, after two runs."""
    rule, _, _ = PAGE.partition("\n## Queries without dbt\n")
    of_tables, of_lines = re.findall(r"```sql\n(.*?)```", rule, re.DOTALL)
    (tmp_path / "output").mkdir()
    for table, rows in (("jobs", JOBS), ("job_publications", PUBLICATIONS)):
        before = [row | {"job_title": "old", "last_seen_at": FIRST} for row in rows]
        lines = [json.dumps(row, default=dt.datetime.isoformat) for row in before + rows]
        (tmp_path / "output" / f"{table}.jsonl").write_text("\n".join(lines), "utf-8")
    monkeypatch.chdir(tmp_path)
    warehouse.load(ROWS)

    published = sorted((job["id"], job["job_title"]) for job in JOBS[:8])
    in_tables = warehouse.rows(f"select id, job_title from ({of_tables}) as it order by id")  # noqa: S608
    in_lines = duckdb.execute(f"select id, job_title from ({of_lines}) order by id")  # noqa: S608
    assert in_tables == in_lines.fetchall() == published


RULE = """
unpublished_at is null
and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications)
"""


def test_one_page_has_the_rule_and_all_its_queries_keep_to_it() -> None:
    def words(text: str) -> str:
        return " ".join(text.split())

    pages = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]
    pages += [*REPOSITORY.glob("pipeline/**/*.md*")]
    having = [it.name for it in pages if words(RULE) in words(it.read_text("utf-8"))]

    assert having == ["sql.md"]
    assert [words(query(name)).count(words(RULE)) for name in ANSWERS] == [1] * len(ANSWERS)


def test_each_question_of_the_page_has_an_answer() -> None:
    assert QUERIES.keys() == set(ASKED.values())
    assert ASKED.keys() == ANSWERS.keys()
