"""What analysts read after eight weeks of a board as real ones are, held against what happened."""

from collections.abc import Callable, Iterator

import pytest
from support.expected import TABLES, History, assert_holds
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
