"""Both databases, with the same jobs in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import psycopg
import pytest
from queries.jobs import ROWS
from queries.warehouse import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queries.warehouse import Warehouse


@pytest.fixture(params=["DuckDB", "PostgreSQL"])
def warehouse(request: pytest.FixtureRequest) -> Iterator[Warehouse]:
    """A database that forgets after the test."""
    if request.param == "DuckDB":
        with duckdb.connect() as connection:
            yield loaded(DuckDB(connection))
    else:
        with psycopg.connect(request.getfixturevalue("database")) as server:
            yield loaded(Postgres(server))
            server.rollback()


def loaded(warehouse: Warehouse) -> Warehouse:
    for table, rows in ROWS.items():
        warehouse.load(table, rows)
    return warehouse
