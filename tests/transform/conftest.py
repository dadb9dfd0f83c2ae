"""An empty warehouse of either kind, and an organisation that is loaded into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.portal import opened
from support.warehouses import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.portal import Portal
    from support.warehouses import Warehouse


@pytest.fixture(scope="module")
def new_warehouse(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Warehouse]:
    """Make one, given its kind."""

    def make(kind: str) -> Warehouse:
        folder = tmp_path_factory.mktemp(kind)
        return DuckDB(folder) if kind == "DuckDB" else Postgres(folder, new_database())

    return make


@pytest.fixture(params=["DuckDB", "PostgreSQL"])
def warehouse(
    request: pytest.FixtureRequest, new_warehouse: Callable[[str], Warehouse]
) -> Warehouse:
    """An empty warehouse of each kind, one after the other."""
    return new_warehouse(request.param)


@pytest.fixture
def portal(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    """An organisation with twelve jobs, which is loaded into that warehouse."""
    with opened(warehouse, monkeypatch) as portal:
        yield portal
