"""An empty warehouse of either kind."""

from __future__ import annotations

import faulthandler
from typing import TYPE_CHECKING

import psycopg
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from psycopg import sql
from transform.warehouses import DuckDB, Postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transform.warehouses import Warehouse

LONGEST_TEST = 900
"""In seconds, on a busy machine: the first test of a set-up waits for all of its builds."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give these tests more time than pyproject.toml gives each test before it counts as hung."""
    stderr = item.config.stash[fault_handler_stderr_fd_key]  # the one that is not captured
    faulthandler.dump_traceback_later(LONGEST_TEST, exit=True, file=stderr)


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
