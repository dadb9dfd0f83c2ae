"""The dashboard selects from the final tables, wherever they are, and says what to do without."""

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from dashboard import page
from e2e.stores import Row
from support.expected import KEY, Tables, make

JOB = KEY | {"department": "Sales"}
OLD = JOB | {"job_key": "acme/0", "id": "0"}
NEW = JOB | {"job_key": "acme/2", "id": "2"}
DAY = {"organisation": "acme", "department": "Sales", "location": "Bonn", "seniority_level": "mid"}
TIMES: Row = {"opened_after": "2026-10-30 04:00", "opened_by": "2026-10-31 04:00"}
SALARY: Row = {"has_salary": True, "currency": "EUR", "salary_period": "month"}
AMOUNTS: Row = {"min_salary": 0, "max_salary": 5000, "salary_low": 5000, "salary_high": 5000}
YEAR: Row = dict.fromkeys(("annual_low", "annual_middle", "annual_high"), 60000)
ALWAYS: Row = {"in_force_from": "0001-01-01", "in_force_until": "9999-12-31"}
ESTIMATE: Row = {"organisation": "acme", "dimension": "overall", "value": "all"}
CLOSING: Row = {"longest_days": 29.5, "at_risk": 1, "closed": 0}
DAYS = ("2026-10-31", "2026-11-01", "2026-11-29")
EVERY_DAY = [f"{dt.date(2026, 10, 31) + dt.timedelta(days=it)}" for it in range(30)]
LONG, SHORTENED = "é" * 61, f"{'é' * 60}…"
# Two roles of acme, of which one was open four weeks before, and another organisation without any.
# Each is a repost; the role that the second reposts is open again.
ROWS: Tables = {
    "open_jobs": [JOB | SALARY | AMOUNTS | YEAR, NEW],
    "jobs_ever": [
        JOB | {"reposted_from": "0"},
        OLD | {"closed_by": "2026-10-01 04:00"},
        NEW | {"reposted_from": "1"},
    ],
    "publication_periods": [
        JOB | TIMES | {"is_open": True},
        OLD | {"opened_by": "2026-09-01", "closed_by": "2026-10-01 04:00", "is_open": False},
    ],
    "job_versions": [JOB | ALWAYS | {"has_salary": False}],
    "daily_open_jobs": [
        DAY | {"day": day, "open_jobs": 1, "opened": opened, "closed": 0}
        for day, opened in zip(DAYS, (1, 0, 0), strict=True)
    ],
    "time_to_close": [ESTIMATE | CLOSING],
    "time_to_close_curve": [ESTIMATE | {"days": 29.5, "still_open": 1}],
    "job_changes": [
        KEY | {"changed_by": "2026-11-02", "field": "max_salary", "old_number": 4000.5},
        KEY | {"changed_by": "2026-11-03", "field": "role_overview", "new_value": LONG},
    ],
    "listings": [
        {"organisation": name, "listed_at": "2026-11-29 04:00", "is_latest": True}
        for name in ("acme", "globex")
    ],
    "dates": [
        {"day": day, "week": "2026-11-23"} for day in ("2026-10-30", *EVERY_DAY, "2026-11-30")
    ],
}


def made(folder: Path, tables: Tables) -> str:
    file = str(folder / "warehouse.duckdb")
    with duckdb.connect(file) as connection:
        make(connection.execute, tables)
    return file


def read(warehouse: str, *organisations: str) -> Tables:
    """What the page is made of; times as text."""
    with page.opened(warehouse) as run:
        tables = page.read(run, page.found(run, "Build them"), organisations)
    return {
        name: [dict(zip(table["columns"], map(as_text, row), strict=True)) for row in table["rows"]]
        for name, table in tables.items()
    }


def as_text(value: Any) -> Any:
    is_time = isinstance(value, int) and value > 1e12
    return f"{dt.datetime.fromtimestamp(value / 1000, dt.UTC):%Y-%m-%d %H}" if is_time else value


# The role that the second reposts is open again. Four weeks before, the first had no pay.
SHOWN: Tables = {
    "roles": [{"earlier_closed_by": "2026-10-01 04"}, {"earlier_closed_by": None}],
    "before": [{"roles": 1, "without_pay": 1, "reposts": 1}],
    # A long text ends with dots, so that nobody takes two beginnings for the whole.
    "latest": [
        {"time": "2026-11-03 00", "event": "edited", "old_number": None, "new_value": SHORTENED},
        {"time": "2026-11-02 00", "event": "repriced", "old_number": 4000.5, "new_value": None},
        {"time": "2026-10-31 04", "event": "opened", "old_number": None, "new_value": None},
        {"time": "2026-10-01 04", "event": "closed", "old_number": None, "new_value": None},
    ],
    "days": [{"day": f"{day} 00"} for day in EVERY_DAY],
}


def test_both_databases_give_the_page_the_same(tmp_path: Path, database: str) -> None:
    """And a page of one organisation says nothing of another."""
    with psycopg.connect(database, autocommit=True) as server:
        make(lambda sql: server.execute(sql.encode()), ROWS)
    tables, alone = read(database), read(database, "globex")

    assert in_one_order(tables) == in_one_order(read(made(tmp_path, ROWS)))
    assert [name for name, rows in tables.items() if not rows] == []
    for name, rows in SHOWN.items():
        assert [{column: row[column] for column in rows[0]} for row in tables[name]] == rows
    assert [it["organisation"] for it in alone.pop("organisations")] == ["globex"]
    assert alone.pop("today") == tables["today"]
    assert alone.pop("days") == SHOWN["days"][-1:]
    assert not any(alone.values())


def in_one_order(tables: Tables) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows)) for name, rows in tables.items()}


# A Wednesday, twice on a Monday, and the Wednesday after.
LISTED = ("2026-11-25 04:00", "2026-11-30 04:00", "2026-11-30 16:00", "2026-12-02 04:00")


@pytest.mark.parametrize(
    ("listed", "monday", "since_monday"),
    [
        (LISTED[:2], "2026-11-23 00", LISTED[:2]),
        (LISTED[:3], "2026-11-23 00", LISTED[:3]),
        (LISTED, "2026-11-30 00", LISTED[2:]),
    ],
    ids=["one listing of a Monday", "two of them", "the Wednesday after"],
)
def test_what_the_first_listing_of_monday_shows_happened_before_it(
    listed: tuple[str, ...], monday: str, since_monday: tuple[str, ...], tmp_path: Path
) -> None:
    """And on a Monday, last Monday is the one before."""
    jobs = [KEY | {"job_key": time, "id": time} for time in listed]
    opened = {"opened_after": "2026-11-01", "is_open": True}
    tables: Tables = {
        "jobs_ever": jobs,
        "publication_periods": [job | opened | {"opened_by": job["id"]} for job in jobs],
        "listings": [
            {"organisation": "acme", "listed_at": time, "is_latest": time == listed[-1]}
            for time in listed
        ],
    }

    shown = read(made(tmp_path, tables))

    assert [it["monday"] for it in shown["today"]] == [monday]
    found = {it["job_key"] for it in shown["latest"] if it["is_since_monday"]}
    assert found == set(since_monday)
    assert [it["roles_since_monday"] for it in shown["counts"]] == [len(since_monday)]


NO_TABLES = (
    "no final tables. Build them: meltano run tap-public-jobs target-duckdb dbt-duckdb:build"
)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.duckdb"], "missing.duckdb is not a file. Build them: meltano run"),
        (["mysql://me:s3cret@host/db"], "An address other than postgresql:// is not a file. Build"),
        (["empty.duckdb"], NO_TABLES),
        (["two.duckdb"], "analytics and dev have final tables: name one with --analytics NAME"),
        (["two.duckdb", "--analytics", "staging"], "Cannot read the warehouse: .*staging"),
        (["two.duckdb", "--analytics=dev", "--organisation=me"], "No organisation me in dev"),
        (["two.duckdb", "--analytics=dev", "--output=no/p"], "no/p: No such file.* another place"),
        (["text.duckdb"], "Cannot read the warehouse: .*not a valid DuckDB database"),
        (["postgresql://me:s3cret@127.0.0.1:1/db"], "Cannot connect .*refused.*: check the addr"),
        (["postgresql+psycopg://me:s3cret@x@127.0.0.1:1/db"], "Cannot connect .*: check the addr"),
    ],
)
def test_wrong_input_is_one_line_without_the_password(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(page, "page", lambda _: "a page")  # what draws it is not installed here
    duckdb.connect("empty.duckdb").close()
    with duckdb.connect("two.duckdb") as two:
        make(two.execute, ROWS)
        make(two.execute, ROWS, "dev")
    Path("text.duckdb").write_text("no database " * 1000)

    with pytest.raises(SystemExit, match=says) as error:
        page.main(arguments)
    assert "\n" not in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_file_that_a_run_is_writing_is_named(tmp_path: Path) -> None:
    file = made(tmp_path, ROWS)
    code = f"import duckdb; c = duckdb.connect({file!r}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout
        run.stdout.readline()
        with pytest.raises(SystemExit, match=r"A run is writing .*: try again when it has ended"):
            page.main([file])
        run.communicate(b"\n")
