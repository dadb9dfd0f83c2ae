"""What analysts read after eight weeks of a board as real ones are, held against what happened."""

import json
from collections.abc import Callable, Iterator

import pytest
from support.expected import MODELS, TABLES, History, assert_holds, first_of_month
from support.portal import DuckDB, Portal, new_warehouse, opened
from support.weeks import ZONE, eight_weeks

pytestmark = pytest.mark.e2e

# Each in one worker: another one would need its own eight weeks.
KINDS = [
    pytest.param(it, marks=pytest.mark.xdist_group(f"weeks in {it}"))
    for it in ("DuckDB", "PostgreSQL")
]


@pytest.fixture(scope="module", params=KINDS)
def board(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_database: Callable[[], str],
) -> Iterator[Portal]:
    """A board after the last build."""
    warehouse = new_warehouse(request.param, tmp_path_factory.mktemp("weeks"), new_database)
    with opened(warehouse) as portal:
        eight_weeks(portal)
        portal.build()
        yield portal


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_what_happened(board: Portal, table: str) -> None:
    assert_holds(board.warehouse, table, History(board.listings))


def test_what_another_system_published_again_is_reposted(board: Portal) -> None:
    rows = {row["id"]: row for row in board.warehouse.rows("analytics.jobs_ever")}
    others = [row for key, row in rows.items() if key.endswith(("-new", "-again"))]
    reposted = [row for row in others if row["job_title"] != "Returned"]  # edited since
    assert len(reposted) > 30
    for row in reposted:
        before = rows[row["reposted_from"]]
        for name in ("job_title", "location"):
            assert before[name] == row[name]


def numbers(values: list[str]) -> list[float | None]:
    return [float(value) if value else None for value in values]


@pytest.mark.parametrize("board", KINDS[:1], indirect=True)
def test_metricflow_answers_as_the_tables_do(board: Portal) -> None:
    """Levels are those of a month's last day or last week; all else adds up, but for the median."""
    assert isinstance(board.warehouse, DuckDB)
    history = History(board.listings)
    days, jobs = history.daily_open_jobs(), history.weekly_open_jobs()
    expected: dict[str, list[float | None]] = {}
    for month in {first_of_month(row["day"]) for row in days}:
        of_month = [row for row in days if first_of_month(row["day"]) == month]
        last_day = max(row["day"] for row in of_month)
        is_open = sum(row["open_jobs"] for row in of_month if row["day"] == last_day)
        opened, closed = (sum(row[flow] for row in of_month) for flow in ("opened", "closed"))
        weeks = [row["week"] for row in jobs if first_of_month(row["week"]) == month]
        listed = [row["has_salary"] for row in jobs if row["week"] == max(weeks)]
        share = sum(filter(None, listed)) / len(listed)
        expected[str(month)] = [is_open, opened, closed, opened - closed, share]
    names = ("open", "opened", "closed", "net_openings", "share_with_pay")
    medians = {
        (row["dimension"], row["value"]): row["median_days"]
        for row in board.warehouse.rows("analytics.time_to_close")
    }
    for opened_in, values in expected.items():
        values.append(medians["month", opened_in])

    found = board.warehouse.metrics(
        *(f"public_jobs_{name}" for name in (*names, "time_to_close_by_month")),
        by="metric_time__month",
    )
    answers = {time[:10]: numbers(values) for time, *values in map(dict.values, found)}
    assert answers == expected
    (overall,) = board.warehouse.metrics(
        "public_jobs_time_to_close", by="public_jobs_of_a_group__organisation"
    )
    organisation, *median = overall.values()
    assert (organisation, numbers(median)) == ("public_jobs", [medians["overall", "all"]])


def test_the_days_are_those_of_a_zone_and_every_field_has_a_column(board: Portal) -> None:
    """In summer and in winter time. No field takes the name of another column."""
    variables = {"time_zone": ZONE, "extra_fields": "all"}
    board.build("--vars", json.dumps(variables))
    history = History(board.listings, zone=ZONE)
    of_days = ("daily_open_jobs", "weekly_open_jobs", "monthly_open_jobs", "nights", "dates")
    for table in of_days:
        assert_holds(board.warehouse, table, history)

    fields = board.warehouse.rows(
        "(select distinct field from analytics.undeclared_fields) as them"
    )
    columns = {
        "salaryPeriod": "field_salary_period",
        "updatedAt": "field_updated_at",
        "version": "field_version",
        "a b": "a_b",
        "a_b": "field_a_b",
    }
    assert columns.keys() < {row["field"] for row in fields}
    for table in ("open_jobs", "jobs_ever", "job_versions"):
        rows = board.warehouse.rows(f"analytics.{table}")
        assert len(rows[0]) == len(MODELS[table]["columns"]) + len(fields)
    for row in board.warehouse.rows("analytics.job_versions"):
        sent = json.loads(row["additional_fields"] or "{}")
        for field, column in columns.items():
            assert row[column] == sent.get(field)
