"""An empty warehouse of either kind, and an organisation that is loaded into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from support.portal import opened
from support.warehouses import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.portal import Portal
    from support.warehouses import Warehouse


@pytest.fixture(scope="module")
def new_warehouse(
    postgresql: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Warehouse]:
    """Make one, given the name of the database."""

    def make(kind: str) -> Warehouse:
        folder: Path = tmp_path_factory.mktemp(kind)
        if kind == "DuckDB":
            return DuckDB(folder)
        name = folder.name.lower()
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return Postgres(folder, postgresql.replace("/postgres?", f"/{name}?"))

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
