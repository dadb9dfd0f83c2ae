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

OF_FIRST: Row = {"period": 1, "from_day": "2026-10-31", "from_at": "2026-10-31 04:00"}
ENDS: Row = {"began_as": "opened", "ended_as": "open"}
SALARY: Row = {"has_salary": True, "currency": "EUR", "salary_period": "Month", "pay": "EUR 5000"}
# A city of the seed of locations, and a location that it lacks.
BERN: Row = {"location": "CH - Bern", "city": "Bern", "country": "Switzerland"}
AFAR: Row = {"location": "From afar"}
LONG, SHORTENED = "é" * 141, f"{'é' * 140}…"
NEW = KEY | {"job_key": "acme/2", "id": "2", "public_id": "new"}
OLD = KEY | {"job_key": "acme/3", "id": "3"}
WINTER = KEY | {"job_key": "acme/4", "id": "4"}
LATER: Row = {"spell": 2, "from_day": "2026-11-05", "from_at": "2026-11-05 04:00"}
# Leukaemia patients who were given 6-MP (Freireich and others, 1963): weeks, those who were still
# observed, and those of them whose remission ended.
REMISSIONS = [
    *((6, 21, 3), (7, 17, 1), (9, 16, 0), (10, 15, 1), (11, 13, 0), (13, 12, 1), (16, 11, 1)),
    *((17, 10, 0), (19, 9, 0), (20, 8, 0), (22, 7, 1), (23, 6, 1), (25, 5, 0), (35, 1, 0)),
]


def curve() -> list[Row]:
    """The rows of time_to_close."""
    rows, still_open = [], 1.0
    for days, at_risk, closed in REMISSIONS:
        still_open *= 1 - closed / at_risk
        rows.append({"days": days, "at_risk": at_risk, "closed": closed, "still_open": still_open})
    of_all = {"median_days": 23, "jobs": 21, "closed_jobs": 9, "longest_days": 35}
    group = {"organisation": "acme", "dimension": "department", "value": "Kitchen"}
    return [group | of_all | row for row in rows] + [group | {"dimension": "quarter"} | rows[0]]


# Two roles of acme, one of them open no longer, others that closed last winter and two years ago,
# and another organisation without any.
ROWS: Tables = {
    "job_spells": [
        KEY | OF_FIRST | ENDS | SALARY | BERN | {"spell": 1, "job_title": "Cook"},
        # An edit of what the page does not show, and one of the title.
        KEY | OF_FIRST | LATER | BERN | {"job_title": "Cook", "began_as": "edited"},
        KEY
        | OF_FIRST
        | LATER
        | BERN
        | {"spell": 3, "from_at": "2026-11-06", "job_title": "Chef"}
        | {"from_day": "2026-11-06", "began_as": "edited"},
        NEW | OF_FIRST | {"spell": 1, "began_as": "found"},
        OLD | OF_FIRST | AFAR | {"spell": 1, "from_day": "2024-10-31", "began_as": "opened"},
        WINTER | OF_FIRST | {"spell": 1, "from_day": "2026-01-01", "began_as": "opened"},
    ],
    "job_periods": [
        KEY
        | {"period": 1, "is_open": True, "open_since": "2026-10-31"}
        | {"opened_after": "2026-10-28 04:00", "shown_from": "2026-10-31 04:00"},
        NEW
        | {"period": 1, "is_open": False, "open_since": "2026-10-31", "closed_on": "2026-11-02"}
        | {"closed_after": "2026-11-01 04:00", "closed_by": "2026-11-02 04:00"},
        OLD | {"period": 1, "is_open": False, "closed_on": "2024-11-02"},
        WINTER | {"period": 1, "is_open": False, "closed_on": "2026-01-02"},
    ],
    "jobs_ever": [
        KEY | {"job_url": "https://a.example/1", "is_open": True, "reposted_after": "2026-10-01"},
        NEW | {"job_url": "https://a.example/2", "is_open": False},
        OLD | {"is_open": False},
        WINTER | {"is_open": False},
    ],
    "job_events": [
        event | {"happened_on": str(event["happened_by"])[:10], "event_key": str(place)}
        for place, event in enumerate(
            (
                KEY | BERN | {"happened_by": "2026-11-03", "event": "edited", "in_words": LONG},
                KEY
                | AFAR
                | {"happened_by": "2026-11-02", "event": "repriced", "in_words": "more"}
                | {"happened_after": "2026-10-30"},
                NEW | {"happened_by": "2026-11-02 04:00", "event": "closed"},
                KEY | {"happened_by": "2026-10-31 04:00", "event": "found"},
                *[
                    it
                    | {"happened_by": "2026-11-04", "event": "moved", "is_rename": True}
                    | {"field": "department", "old_value": "Cooks", "new_value": "Kitchen"}
                    for it in (KEY, NEW)
                ],
            )
        )
    ],
    "time_to_close": curve(),
    "dates": [{"day": f"2026-11-{day}", "end_at": f"2026-11-{day + 1} 00:00"} for day in (28, 29)]
    + [
        {"day": "2026-12-31", "end_at": "2027-01-01"},
        {"day": "2025-01-01", "end_at": "2025-01-02"},
    ],
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


def days(text: str) -> int:
    return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days


COOK: Row = {"id": "1", "place": "Bern, Switzerland", "reposted_after": "2026-10-01 00"}
SHOWN: Tables = {
    "organisations": [{"organisation": "acme"}, {"organisation": "globex"}],
    "listed": [
        {"organisation": "acme", "listed_at": "2026-11-27 04"},
        {"organisation": "acme", "listed_at": "2026-11-29 16"},
        {"organisation": "globex", "listed_at": "2026-11-29 04"},
    ],
    "days": [{"day": days("2026-11-28")}, {"day": days("2026-11-29")}],
    "spells": [
        COOK
        | {"job_title": "Chef", "began_as": "changed", "ended_as": "open", "until_day": None}
        | {"job_url": "https://a.example/1"},
        COOK
        | {"job_title": "Cook", "began_as": "opened", "ended_as": "changed", "job_url": None}
        | {"until_day": days("2026-11-06"), "opened_after": "2026-10-28 04"},
        # A role that is closed has no page any more.
        {"job_title": "new", "began_as": "found", "ended_as": "closed", "job_url": None, "id": "2"}
        | {"until_day": days("2026-11-02"), "place": None, "closed_after": None},
        {"id": "4", "ended_as": "closed", "until_day": days("2026-01-02")},
    ],
    # A long text ends with dots, so that nobody takes its beginning for the whole.
    "events": [
        *[{"event": "moved", "happened_after": None}] * 2,
        {"event": "edited", "in_words": SHORTENED, "place": "Bern, Switzerland"},
        {"event": "closed", "in_words": None, "place": None, "job_url": None},
        {"event": "repriced", "in_words": "more", "place": "From afar"}
        | {"happened_after": "2026-10-30 00"},
    ],
    "renames": [{"old_value": "Cooks", "new_value": "Kitchen", "day": days("2026-11-04")}],
    # The ends of the interval are those that SAS and Stata have for these patients.
    "closing": [
        {"department": "Kitchen", "median_days": 23, "at_least": 13, "at_most": None, "jobs": 21}
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
        found_ = [
            {column: row[column] for column in expected}
            for row, expected in zip(tables[name], rows, strict=True)
        ]
        assert found_ == rows
    for name in ("organisations", "listed"):
        assert [it["organisation"] for it in alone.pop(name)] == ["globex"]
    assert alone.pop("days") == tables["days"]  # the calendar is nobody's
    assert not any(alone.values())


def in_one_order(tables: Tables) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows)) for name, rows in tables.items()}


def test_no_text_of_a_job_is_html(tmp_path: Path) -> None:
    """A page says nothing of a job but in its compressed data; its name is an attribute."""
    evil = "</script><b>R&D</b>"
    rows = ROWS | {"job_spells": [KEY | OF_FIRST | ENDS | {"job_title": evil}]}
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
