"""What analysts read after eight weeks of a board as real ones are, held against what happened."""

import json
from collections.abc import Callable, Iterator

import pytest
from support.expected import MODELS, TABLES, History, assert_holds
from support.portal import Portal, new_warehouse, opened
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
    with pytest.MonkeyPatch.context() as monkeypatch, opened(warehouse, monkeypatch) as portal:
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
