"""The dashboard shows what plain SQL and plain Python find in the same warehouse."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest
from browser.weeks import WEEK, history, load, run_page
from queries.jobs import ROWS
from queries.warehouse import DuckDB, Postgres, Warehouse

from dashboard import page

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]
REPOSITORY = Path(__file__).parents[1]
HARD = "</script><script>alert(1)</script>"
QUERIES = ("open_roles", "salary_ranges", "days_open")


def shown(warehouse: str, schemas: list[str] | None = None) -> dict[str, list[Row]]:
    with page.opened(warehouse) as run:
        tables = page.read(run, schemas)
    return {name: records(table) for name, table in tables.items() if table}


def records(table: page.Table) -> list[Row]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


@pytest.fixture(scope="module", params=["DuckDB", "PostgreSQL"])
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, list[Any]]]:
    """The address of a warehouse full of traps, and what the files of queries/ say about it."""
    if request.param == "DuckDB":
        address = str(tmp_path_factory.mktemp("traps") / "warehouse.duckdb")
        with duckdb.connect(address) as connection:
            found = answers(DuckDB(connection))
    else:
        address = request.getfixturevalue("database")
        with psycopg.connect(address, autocommit=True) as server:
            found = answers(Postgres(server))
    return address, found


def answers(warehouse: Warehouse) -> dict[str, list[Any]]:
    for table, rows in ROWS.items():
        warehouse.load(table, rows)
    warehouse.run("commit")
    files = {name: REPOSITORY / "queries" / f"{name}.sql" for name in QUERIES}
    return {name: warehouse.rows(file.read_text("utf-8")) for name, file in files.items()}


def test_the_numbers_are_those_of_the_queries(asked: tuple[str, dict[str, list[Any]]]) -> None:
    address, queries = asked
    tables = shown(address)
    everything = [row for row in tables["pay"] if row["choice"] == 0]

    by_department: Counter[str] = Counter()
    for department, _, roles in queries["open_roles"]:
        by_department[department] += roles
    groups = {row["department"]: row["open_roles"] for row in tables["groups"]}
    assert groups.pop(None) == by_department.total()
    assert groups == by_department
    assert sorted(tuple(row.values())[1:] for row in everything) == queries["salary_ranges"]
    is_open = [row for row in queries["days_open"] if row[2] == "open"]
    oldest = [(row["job_title"], row["days"]) for row in tables["oldest"] if row["choice"] == 0]
    assert sorted(oldest) == sorted((row[0] or row[-1], row[7]) for row in is_open if row[7])
    flows = [row for row in tables["flows"] if row["choice"] == 0]
    assert sum(row["closed"] for row in flows) == len(queries["days_open"]) - len(is_open)
    assert sum(row["opened"] for row in flows) == sum(bool(row[3]) for row in queries["days_open"])


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "warehouse.duckdb")


def test_thirteen_weeks_over_time(file: str) -> None:
    """Counted role by role, for all roles and for each department."""
    rows = history()
    load(file, rows)
    tables = shown(file)
    departments = {job["id"]: job["department"] for job in rows["jobs"]}

    for group in tables["groups"]:
        roles = [
            row
            for row in rows["job_publications"]
            if group["department"] in {None, departments[row["id"]]}
        ]
        levels = [row for row in tables["levels"] if row["choice"] == group["choice"]]
        assert levels
        for level in levels:
            assert level["open_roles"] == sum(
                milliseconds(role["firstSeenAt"]) <= level["time"]
                and not (
                    role["unpublishedAt"] and milliseconds(role["unpublishedAt"]) <= level["time"]
                )
                for role in roles
            )
        curve = kaplan_meier(roles)
        points = [row for row in tables["survival"] if row["choice"] == group["choice"]]
        assert {row["days"]: row["still_open"] for row in points} == pytest.approx(
            {0: 1} | {days: curve[days] for days in {row["days"] for row in points} - {0}}, abs=1e-4
        )
        assert group["longest_days"] == max(curve) == points[-1]["days"]
        below = (days for days in sorted(curve) if curve[days] < 0.5 + 1e-9)
        assert group["median_days"] == next(below, None)


def milliseconds(time: dt.datetime) -> int:
    return round(time.replace(tzinfo=dt.UTC).timestamp() * 1000)


def kaplan_meier(roles: Iterable[Row]) -> dict[float, float]:
    """Of the roles whose opening was seen: the share still open, by days since then."""
    periods = [
        (
            (it["lastSeenAt"] - it["firstSeenAt"])
            + ((it["unpublishedAt"] or it["lastSeenAt"]) - it["openedAfter"]),
            it["unpublishedAt"] is not None,
        )
        for it in roles
        if it["openedAfter"]
    ]
    share, curve = 1.0, {}
    for length in sorted({length for length, _ in periods}):
        at_risk = sum(other >= length for other, _ in periods)
        share *= 1 - periods.count((length, True)) / at_risk
        curve[length.total_seconds() / 86400 / 2] = share
    return curve


def test_organisations_have_their_own_listings_and_namings(file: str) -> None:
    """And a page of one says nothing of another."""
    load(file, history(5, "Acme"), "acme")
    load(file, history(9, "Lumen Books"), "lumen_books", "source")

    groups = {row["organisation"]: row for row in shown(file)["groups"] if not row["department"]}
    alone = {name: shown(file, [name]) for name in ("acme", "lumen_books")}

    assert groups[None]["open_roles"] == sum(it["groups"][0]["open_roles"] for it in alone.values())
    days = [row["days"] for row in shown(file)["oldest"] if row["choice"] == 0]
    assert days == sorted(days, reverse=True)
    for name, tables in alone.items():
        measured = ("open_roles", "opened", "closed", "listed_at", "median_days")
        assert all(groups[name][it] == tables["groups"][0][it] for it in measured)
        others = alone.keys() - {name}
        assert not any(other in json.dumps(tables) for other in others)
    with pytest.raises(page.WarehouseError, match=r"in nobody\. Schemas that have it: acme, lumen"):
        shown(file, ["nobody"])


def test_a_full_refresh_forgets_what_was_before(file: str) -> None:
    """It dates the published jobs anew, so no number of open roles before it is known."""
    rows = history()
    last = max(row["lastSeenAt"] for row in rows["job_publications"])
    published = [row for row in rows["job_publications"] if not row["unpublishedAt"]]
    for row in published[1:]:
        row |= {"openedAfter": None, "firstSeenAt": last + WEEK, "lastSeenAt": last + WEEK}
    load(file, rows)  # the first one was closed while nobody looked

    tables = shown(file)

    assert [row for row in tables["levels"] if row["choice"] == 0] == [
        {"choice": 0, "time": milliseconds(last + WEEK), "open_roles": len(published) - 1}
    ]
    assert tables["flows"] == tables["latest"] == []
    assert tables["groups"][0]["longest_days"]  # closed roles still count in the estimate


def test_dbt_knows_the_periods_before_a_role_was_published_again(file: str) -> None:
    rows = history()
    load(file, rows, "apart")
    departments = {job["id"]: job["department"] for job in rows["jobs"]}
    first, again = next(
        (first, again)
        for first in rows["job_publications"]
        for again in rows["job_publications"]
        if departments[first["id"]] == departments[again["id"]]
        and first["unpublishedAt"]
        and again["firstSeenAt"] > first["unpublishedAt"]
    )
    rows["job_publications"].remove(first)
    rows["jobs"] = [job for job in rows["jobs"] if job["id"] != again["id"]]
    again["id"] = first["id"]
    load(file, rows)
    times = ("openedAfter", "firstSeenAt", "lastSeenAt", "unpublishedAt")
    with duckdb.connect(file) as connection:
        connection.execute("create schema analytics")
        connection.execute(
            "create table analytics.publication_periods as select 'public_jobs' as organisation, "
            "? as id, '' as public_id, cast(? as timestamp) as opened_after, ? as opened_by, "
            "? as closed_after, ? as closed_by",
            [first["id"], *(first[it] for it in times)],
        )

    apart, found = shown(file, ["apart"]), shown(file, ["public_jobs"])

    assert all(apart[it] == found[it] for it in ("levels", "flows", "survival"))
    measured = ("open_roles", "opened", "closed", "median_days")
    for then, now in zip(apart["groups"], found["groups"], strict=True):
        assert all(then[it] == now[it] for it in measured)


def test_departments_have_a_past_where_the_rows_of_closed_jobs_are(file: str) -> None:
    """A target may remove them, and then only dbt knows them."""
    rows = history()
    load(file, rows)
    full = shown(file)
    with duckdb.connect(file) as connection:
        connection.execute("""
            create schema analytics;
            create table analytics.jobs_ever as
            select *, 'public_jobs' as organisation from public_jobs.jobs;
            create table analytics.job_changes as
            select 'public_jobs' as organisation, id, timestamp '2026-10-26 04:00' as changed_by,
                'job_title' as field, 'Baker' as old_value, job_title as new_value
            from public_jobs.jobs limit 1;
            delete from public_jobs.jobs where id in (
                select id from public_jobs.job_publications where unpublished_at is not null
            );
        """)
    with_dbt = shown(file)
    with duckdb.connect(file) as connection:
        connection.execute("drop schema analytics cascade")
    alone = shown(file)

    edit, edit_in_department = with_dbt.pop("latest_edits")
    assert edit | {"choice": 0} == edit_in_department | {"choice": 0}
    assert (edit["job_title"], edit["old_value"]) == (edit["new_value"], "Baker")
    assert with_dbt == full
    assert [row for row in alone["levels"] if row["choice"] == 0] == [
        row for row in full["levels"] if row["choice"] == 0
    ]
    last = max(row["time"] for row in full["levels"])
    assert {row["time"] for row in alone["levels"] if row["choice"]} == {last}
    assert {row["median_days"] for row in alone["groups"] if row["department"]} == {None}


def test_a_filter_has_at_most_200_choices(file: str) -> None:
    rows = history(40)
    for place, job in enumerate(rows["jobs"]):
        job["department"] = f"Department {place}"
    load(file, rows)

    everything, *departments = shown(file)["groups"]
    assert len(departments) == 199
    assert everything["all_choices"] == 1 + len(rows["jobs"])


def test_the_page_is_beside_the_warehouse_and_a_title_in_it_is_text(file: str) -> None:
    rows = history(2)
    for job in rows["jobs"]:
        job["jobTitle"] = job["department"] = HARD
    load(file, rows)

    said = run_page(file)

    written = Path(file).with_suffix(".html")
    assert said == f"{written}\n"
    html = written.read_text("utf-8")
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == html.count("</script>") == 3
    tables = json.loads(scripts[1])["tables"]
    assert {row["job_title"] for row in records(tables["latest"])} == {HARD}
    assert {row["department"] for row in records(tables["groups"])} == {None, HARD}


def test_the_picture_in_readme_is_what_the_command_draws(file: str, tmp_path: Path) -> None:
    load(file, history())
    run_page(file, "--picture", str(tmp_path))

    for theme in page.THEMES:
        now, then = (
            re.findall("<text[^>]*>(.*?)</text>", (folder / f"dashboard-{theme}.svg").read_text())
            for folder in (tmp_path, REPOSITORY / "docs")
        )
        assert now == then
        assert "How long roles stay open" in now


@pytest.mark.parametrize(
    ("warehouse", "says"),
    [
        ("missing.duckdb", "missing.duckdb is not a file. Load the jobs first"),
        ("mysql://me:s3cret@host/db", "An address other than postgresql:// is not a file. Load"),
        ("empty.duckdb", "No table job_publications in any schema. Load the jobs first"),
        ("text.duckdb", "Cannot read the warehouse: .*not a valid DuckDB database"),
        ("postgresql://me:s3cret@127.0.0.1:1/db", r"Cannot connect .*refused.*: check the address"),
        ("postgresql+psycopg://me:s3cret@x@127.0.0.1:1/db", "Cannot connect .*: check the address"),
        ("postgres://me:s3cret@:port", r"Cannot connect .*: check the address"),
    ],
)
def test_wrong_input_is_one_line_without_the_password(
    warehouse: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    duckdb.connect("empty.duckdb").close()
    Path("text.duckdb").write_text("no database " * 1000)

    with pytest.raises(SystemExit, match=says) as error:
        page.main([warehouse])
    assert "\n" not in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_file_that_a_run_is_writing_is_named(file: str) -> None:
    code = f"import duckdb; c = duckdb.connect({file!r}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout
        run.stdout.readline()
        with pytest.raises(SystemExit, match=r"A run is writing .*: try again when it has ended"):
            page.main([file])
        run.communicate(b"\n")
