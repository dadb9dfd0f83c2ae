"""An empty warehouse of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from transform.warehouses import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transform.warehouses import Warehouse


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
