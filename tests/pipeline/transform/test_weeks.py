"""What analysts read after eight weeks of a board as real ones are, held against what happened."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import cycle
from unicodedata import normalize

import pytest
import yaml
from e2e.pipeline import REPOSITORY, run
from e2e.stores import Row
from queries.pages import former_tables
from support.expected import LONG, MODELS, TABLES, History, assert_holds, first_of_month
from support.exports import KEYS, Exports
from support.portal import (
    HISTORY_ALONE,
    IN_POSTGRESQL,
    INCREMENTS,
    TRANSFORM,
    WITHOUT_TESTS,
    DuckDB,
    Portal,
    new_warehouse,
    opened,
)
from support.weeks import ZONE, eight_weeks

pytestmark = pytest.mark.e2e

# Each in one worker: another one would need its own eight weeks. All of DuckDB is too much for one.
KINDS = [
    pytest.param("DuckDB", marks=pytest.mark.xdist_group("weeks")),
    pytest.param("PostgreSQL", marks=IN_POSTGRESQL),
]


@dataclass
class Board(Portal):
    """A board, and what another system has of it.

    Attributes:
        exports: Those of each build.
    """

    exports: Exports = field(kw_only=True)


@pytest.fixture(scope="module", params=KINDS)
def board(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    new_database: Callable[[], str],
) -> Iterator[Board]:
    """After the last build, the only one on PostgreSQL that makes all tables."""
    warehouse = new_warehouse(request.param, tmp_path_factory.mktemp("weeks"), new_database)
    exports = Exports(warehouse)
    nights = cycle([INCREMENTS, HISTORY_ALONE, HISTORY_ALONE])
    exported = ("--select", *(f"+public_jobs__{table}" for table in KEYS), *WITHOUT_TESTS)

    with opened(warehouse) as portal:

        def build() -> None:
            if isinstance(warehouse, DuckDB):
                portal.build(*exported)
                exports.take()
            else:
                portal.build(*next(nights))

        eight_weeks(portal, build)
        portal.build()
        exports.take()
        yield Board(**vars(portal), exports=exports)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_what_happened(board: Board, table: str) -> None:
    assert_holds(board.warehouse, table, History(board.listings))


@pytest.mark.parametrize("board", KINDS[:1], indirect=True)
@pytest.mark.parametrize("table", KEYS)
def test_what_is_new_since_each_export_makes_the_table(board: Board, table: str) -> None:
    assert board.exports.merged(table) == board.exports.there(table)
    # All of it once, and then a part.
    assert max(board.exports.sizes[2:]) < sum(len(board.exports.there(it)) for it in KEYS)


# Until there is a release, the last commit whose package had other tables.
BEFORE = "e1192805"


@pytest.fixture(scope="module")
def before(board: Board, tmp_path_factory: pytest.TempPathFactory) -> DuckDB:
    """The package of before, which has made its tables of the same history."""
    folder = tmp_path_factory.mktemp("before")
    archive = folder / "package.tar"
    of_package = ("--output", archive, BEFORE, "pipeline/transform")
    run("git", "archive", *of_package, folder=REPOSITORY).succeeded()
    run("tar", "-xf", archive, folder=folder).succeeded()
    shutil.copytree(board.warehouse.folder, folder / "warehouse")
    before = DuckDB(folder / "warehouse", project=folder / "pipeline" / "transform")
    before.run("drop schema analytics cascade; drop schema analytics_staging cascade")
    before.build(*WITHOUT_TESTS)
    return before


# What both have of a former table, and in the same rows.
FORMER = {
    "job_spells": """(
        select * from analytics.job_spells
        join (select distinct day from analytics.daily_open_jobs) as days
            on day >= from_day and day < until_day
    )""",
    "listings": """(
        select * from analytics.listings where (organisation, listed_at) in (
            select (organisation, max(listed_at)) from analytics.listings
            group by organisation, listed_on
        )
    )""",
}
OF_PAY = {"min_salary", "max_salary", "currency", "additional_fields.salaryPeriod"}
KINDS_BEFORE = {"opened", "reopened", "closed", "moved", "edited"}
IN_BOTH: dict[str, Callable[[Row], object]] = {
    "last_week_changes": lambda row: row["event"] in KINDS_BEFORE,
    "field_values": lambda row: not row.get("is_long") and len(row["value"] or "") <= LONG,
    # A job that no build saw, and one whose texts came in two forms of Unicode.
    "jobs_ever": lambda row: row["job_title"],
    "job_versions": lambda row: row["department"] != "Caf\N{LATIN SMALL LETTER E WITH ACUTE}",
}


def compared(table: str, rows: list[Row], columns: list[str]) -> list[str]:
    """The rows that have to be in both."""
    is_there = IN_BOTH.get(table, bool)
    shown = []
    for row in rows:
        composed = {
            name: normalize("NFC", value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        change = [composed.get(name) for name in ("old_value", "new_value")]
        is_edit = row.get("field") and "old_value" in row
        is_one_event = row.get("field") in OF_PAY
        is_short = not row.get("is_long") and all(len(it or "") <= LONG for it in change)
        if is_there(composed) and not (
            is_edit and (is_one_event or not is_short or change[0] == change[1])
        ):
            shown.append({name: composed[name] for name in columns})
    if table == "daily_open_jobs":  # one query has the jobs, and another one what happened
        counts = {"open_jobs", "opened", "closed"}.intersection(columns)
        shown = [row for row in shown if any(row[it] for it in counts)]
    return sorted(map(repr, shown))


@pytest.mark.parametrize("board", KINDS[:1], indirect=True)
def test_each_former_table_is_a_query_of_the_page(board: Board, before: DuckDB) -> None:
    described = (before.project / "models/marts/marts.yml").read_text("utf-8")
    names = {
        model["name"].removeprefix("public_jobs__"): {it["name"] for it in model["columns"]}
        for model in yaml.safe_load(described)["models"]
    }
    pages = former_tables()
    assert pages.keys() == names.keys()

    for table, page in pages.items():
        found = set()
        for query in page.queries:
            old = before.rows(FORMER.get(table, f"analytics.{table}"))
            new = board.warehouse.rows(f"({query}) as answer")
            columns = sorted((names[table] & {*(new or old or [{}])[0]}) - page.left_out)
            assert compared(table, new, columns) == compared(table, old, columns), table
            found |= {*columns} if new else names[table]
        assert found == names[table] - page.left_out, table


@pytest.mark.parametrize("board", KINDS[:1], indirect=True)
def test_an_update_in_place_makes_what_a_new_warehouse_has(board: Board, before: DuckDB) -> None:
    """The package of before has made its tables of the same history, and then this one its own."""
    after = replace(before, project=TRANSFORM)
    after.build(*WITHOUT_TESTS)

    for table in MODELS:
        found, expected = (it.rows(f"analytics.{table}") for it in (after, board.warehouse))
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def numbers(values: list[str]) -> list[float | None]:
    return [float(value) if value else None for value in values]


@pytest.mark.parametrize("board", KINDS[:1], indirect=True)
def test_metricflow_answers_as_the_tables_do(board: Board) -> None:
    """Levels are those of a month's last day; all else adds up, but for the median."""
    assert isinstance(board.warehouse, DuckDB)
    history = History(board.listings)
    days, events = history.open_jobs_by_day(), history.job_events()
    expected: dict[str, list[float | None]] = {}
    for month in {row["month"] for row in days}:
        last_day = max(row["day"] for row in days if row["month"] == month)
        listed = [row["has_salary"] for row in days if row["day"] == last_day]
        of_month = [it["event"] for it in events if first_of_month(it["happened_on"]) == month]
        opened, closed = (
            sum(it in kinds for it in of_month) for kinds in ({"opened", "reopened"}, {"closed"})
        )
        share = sum(filter(None, listed)) / len(listed)
        expected[str(month)] = [len(listed), opened, closed, opened - closed, share]
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


def test_the_days_are_those_of_a_zone_and_every_field_has_a_column(board: Board) -> None:
    """In summer and in winter time. No field takes the name of another column."""
    variables = {"time_zone": ZONE, "extra_fields": "all"}
    board.build("--vars", json.dumps(variables))
    history = History(board.listings, zone=ZONE)
    for table in (
        "open_jobs_by_day",
        "job_spells",
        "job_events",
        "time_to_close",
        "nights",
        "dates",
    ):
        assert_holds(board.warehouse, table, history)

    fields = [it for it in board.warehouse.rows("analytics.fields") if not it["has_column"]]
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
        for name, column in columns.items():
            assert row[column] == sent.get(name)
