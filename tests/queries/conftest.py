"""Both databases, with the same jobs in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import psycopg
import pytest
from e2e.targets import DUCKDB, meltanolabs
from queries.jobs import ROWS
from queries.warehouse import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queries.warehouse import Warehouse


POSTGRES = meltanolabs("hard", "public_jobs")


@pytest.fixture(scope="module", params=["DuckDB", "PostgreSQL"])
def committed(request: pytest.FixtureRequest) -> Iterator[Warehouse]:
    """A database with all rows."""
    if request.param == "DuckDB":
        with duckdb.connect() as connection:
            yield loaded(DuckDB(connection, DUCKDB.types, DUCKDB.stored))
    else:
        with psycopg.connect(request.getfixturevalue("database"), autocommit=True) as server:
            yield loaded(Postgres(server, POSTGRES.types, POSTGRES.stored))


@pytest.fixture
def warehouse(committed: Warehouse) -> Iterator[Warehouse]:
    """A database that forgets after the test."""
    committed.run("begin")
    yield committed
    committed.run("rollback")


def loaded(warehouse: Warehouse) -> Warehouse:
    for table, rows in ROWS.items():
        warehouse.load(table, rows)
    warehouse.run("commit")
    return warehouse
