"""The dashboard selects from the final tables, wherever they are, and says what to do without."""

import base64
import datetime as dt
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from dashboard import page
from e2e.stores import Row
from public_jobs_pipeline.tables import found, opened
from support.expected import KEY, Tables, make

DAYS: Row = {"opened_on": "2026-10-31", "from_day": "2026-10-31", "until_day": "9999-12-31"}
ENDS: Row = {"began_as": "opened", "ended_as": "open"}
SALARY: Row = {"has_salary": True, "currency": "EUR", "salary_period": "Month", "pay": "EUR 5000"}
# A city of the seed of locations, and a location that it lacks.
BERN: Row = {"location": "CH - Bern", "city": "Bern", "country": "Switzerland"}
AFAR: Row = {"location": "From afar"}
LONG, SHORTENED = "é" * 61, f"{'é' * 60}…"
NEW = KEY | {"job_key": "acme/2", "id": "2", "public_id": "new"}
# Two roles of acme, one of them open no longer, a third that closed two years ago, and another
# organisation without any.
ROWS: Tables = {
    "job_spells": [
        KEY | DAYS | ENDS | SALARY | BERN | {"job_title": "Cook", "salary_low": 4000.5},
        NEW | DAYS | {"until_day": "2026-11-02", "began_as": "found", "ended_as": "closed"},
        KEY | DAYS | AFAR | {"job_key": "acme/3", "until_day": "2024-11-02", "ended_as": "closed"},
    ],
    "jobs_ever": [
        KEY | {"job_url": "https://a.example/1", "is_open": True, "reposted_after": "2026-10-01"},
        NEW | {"job_url": "https://a.example/2", "is_open": False},
        KEY | {"job_key": "acme/3", "is_open": False},
    ],
    "job_events": [
        row | {"is_long": False}
        for row in (
            KEY | BERN | {"happened_by": "2026-11-03", "event": "edited", "new_value": LONG},
            KEY | AFAR | {"happened_by": "2026-11-02", "event": "repriced", "change_percent": 2.5},
            NEW | {"happened_by": "2026-11-02 04:00", "event": "closed", "days_open": 2},
        )
    ]
    + [KEY | {"happened_by": "2026-11-01", "event": "edited", "new_value": "a", "is_long": True}],
    # A day without a listing has the last one before it.
    "nights": [
        {"organisation": name, "day": f"2026-11-{day}", "listings": listings}
        | {"built_listings": listings, "last_listed_at": f"2026-11-{last}"}
        for name, day, listings, last in (
            *(
                ("acme", 27, 1, "27 04:00"),
                ("acme", 28, 0, "27 04:00"),
                ("acme", 29, 2, "29 16:00"),
            ),
            ("globex", 29, 1, "29 04:00"),
        )
    ],
}


def made(folder: Path, tables: Tables) -> str:
    file = str(folder / "warehouse.duckdb")
    with duckdb.connect(file) as connection:
        make(connection.execute, tables)
    return file


def read(warehouse: str, *organisations: str) -> Tables:
    """What the page is made of; times as text."""
    with opened(warehouse) as run:
        tables = page.read(run, found(run, "Build them", page.FINAL), organisations)
    return {
        name: [dict(zip(table["columns"], map(as_text, row), strict=True)) for row in table["rows"]]
        for name, table in tables.items()
    }


def as_text(value: Any) -> Any:
    is_time = isinstance(value, int) and value > 1e12
    return f"{dt.datetime.fromtimestamp(value / 1000, dt.UTC):%Y-%m-%d %H}" if is_time else value


SHOWN: Tables = {
    "organisations": [{"organisation": "acme"}, {"organisation": "globex"}],
    "listed": [
        {"organisation": "acme", "listed_at": "2026-11-27 04"},
        {"organisation": "acme", "listed_at": "2026-11-29 16"},
        {"organisation": "globex", "listed_at": "2026-11-29 04"},
    ],
    "spells": [
        {"job_title": "Cook", "job_url": "https://a.example/1", "reposted_after": "2026-10-01 00"}
        | {"place": "Bern, Switzerland"},
        # A role that is closed has no page any more.
        {"job_title": "new", "job_url": None, "reposted_after": None, "place": None},
    ],
    # A long text ends with dots, so that nobody takes two beginnings for the whole. One that a
    # database would have to look up is not there.
    "events": [
        {"happened_by": "2026-11-03 00", "event": "edited", "new_value": SHORTENED}
        | {"place": "Bern, Switzerland"},
        {"happened_by": "2026-11-02 04", "event": "closed", "new_value": None, "place": None},
        {"happened_by": "2026-11-02 00", "event": "repriced", "new_value": None}
        | {"place": "From afar"},
        {"happened_by": "2026-11-01 00", "event": "edited", "new_value": None, "place": None},
    ],
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
    for name in ("organisations", "listed"):
        assert [it["organisation"] for it in alone.pop(name)] == ["globex"]
    assert not any(alone.values())


def in_one_order(tables: Tables) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows)) for name, rows in tables.items()}


def test_no_text_of_a_job_is_html(tmp_path: Path) -> None:
    """A page says nothing of a job but in its compressed data; its name is an attribute."""
    evil = "</script><b>R&D</b>"
    rows = ROWS | {"job_spells": [KEY | DAYS | ENDS | {"job_title": evil}]}
    file = made(tmp_path, rows)

    page.main([file, "--name", evil])

    text = Path(file).with_suffix(".html").read_text("utf-8")
    (data,) = re.findall(r'id="data">(.*?)</script>', text)
    assert evil not in text
    assert (
        evil in json.loads(gzip.decompress(base64.b64decode(data)))["spells"]["job_title"]["texts"]
    )


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
