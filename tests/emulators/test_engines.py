"""The warehouses that people use: four runs in both namings, answers to the queries, and dbt.

Of dbt, the final tables on Snowflake and BigQuery hold what happened in the portal.
"""

import contextlib
import datetime as dt
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from e2e.pipeline import installed, plugin, program, written
from e2e.scenario import RUNS, record
from e2e.stores import FIELDS, properties, utc
from e2e.targets import as_double, each, load_and_compare
from emulators.engines import (
    ENGINES,
    FAKESNOW,
    HERE,
    PROJECT,
    Emulated,
    Engine,
    bigquery,
    snowflake,
)
from public_jobs_sandbox.postings import make_jobs
from queries.answers import ANSWERS, NESTED_VALUES, ROWS, nested_values, query
from support.expected import TABLES as FINAL_TABLES
from support.expected import History, assert_holds
from support.portal import Builds, first_day, opened


@each(ENGINES)
def test_every_value_and_type_is_right_after_every_run(target: Emulated, tmp_path: Path) -> None:
    """The runs after the first are loaded alone, if the target refuses their columns."""
    recordings = record(tmp_path, column_naming=target.column_naming)
    if target.refuses_columns:
        with (
            target.emulator(tmp_path) as address,
            pytest.raises(AssertionError, match=target.refuses_columns),
        ):
            load_and_compare(target, recordings, address, tmp_path)
        del recordings[RUNS[0]]
    with target.emulator(tmp_path) as address:
        load_and_compare(target, recordings, address, tmp_path)


@each([it for it in ENGINES if it.column_naming == "snake_case"])
def test_the_queries_answer(target: Emulated, tmp_path: Path) -> None:
    """In any order: nulls come first on one database and last on another."""
    with target.emulator(tmp_path) as address:
        target.load("\n".join(messages()), tmp_path, address)
        engine = target.store(tmp_path, address)
        assert isinstance(engine, Engine)
        for name in target.queries:
            found = [row.values() for row in engine.fetch(query(name))]
            expected = [map(target.stored, row) for row in ANSWERS[name]]
            assert in_one_order(found) == in_one_order(expected), name
        database = type(engine).__name__.replace("Lake", "DuckDB")
        found = [row.values() for row in engine.fetch(nested_values(database))]
        assert in_one_order(found) == in_one_order(NESTED_VALUES)


def in_one_order(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Answers of any database: empty text is null, numbers are doubles, and times have no zone."""
    found = ([None if it == "" else as_double(as_time(it)) for it in row] for row in rows)
    return sorted(found, key=str)


def messages() -> Iterator[str]:
    """What the tap writes for the rows of the tests of the queries."""
    for table, rows in ROWS.items():
        columns = {FIELDS[table][name]: kind for name, kind in properties(table).items()}
        message = {"stream": table, "schema": {"properties": columns}, "key_properties": ["id"]}
        yield json.dumps(message | {"type": "SCHEMA"})
        for row in rows:
            record = {name: row.get(name) for name in columns}
            yield json.dumps({"type": "RECORD", "stream": table, "record": record}, default=as_utc)
    yield json.dumps({"type": "STATE", "value": {}})


def as_utc(time: dt.datetime) -> str:
    return f"{time.isoformat()}Z"


def as_time(value: Any) -> Any:
    """A date, or a time in UTC, also one in a text."""
    with contextlib.suppress(ValueError, TypeError):
        return dt.date.fromisoformat(value)
    with contextlib.suppress(ValueError):
        return utc(value) if isinstance(value, str | dt.datetime) else value
    return value


ADAPTERS = {
    "snowflake": f"dbt-snowflake~=1.12.3 {FAKESNOW}",
    "bigquery": "dbt-bigquery~=1.12.1",
}
OUTPUTS = {
    "snowflake": {
        **dict.fromkeys(("account", "user", "password"), "mine"),
        "database": "WAREHOUSE",
        "schema": "analytics",
    },
    "bigquery": {"method": "oauth", "project": PROJECT, "dataset": "analytics"},
}


@dataclass
class EmulatedWarehouse(Builds):
    """A target and its emulator.

    Attributes:
        name: The adapter of dbt.
    """

    name: str = field(kw_only=True)

    @property
    def variables(self) -> dict[str, str]:
        output = {"type": self.name, "threads": 1} | OUTPUTS[self.name]
        profile = {"target": self.name, "outputs": {self.name: output}}
        file = written(self.folder / "profiles.yml", {"public_jobs": profile})
        return {"DBT_PROFILES_DIR": str(file.parent)}

    def dbt(self, *arguments: str) -> tuple[int, str]:
        core = plugin("utilities", "dbt-duckdb")["pip_url"].split()[0]
        python = installed(f"{core} {ADAPTERS[self.name]}") / "python"
        imports = (f"dbt.adapters.{self.name}", "dbt.cli.main")
        dbt = program(HERE / f"fake_{self.name}.py", *imports, python=python)
        return self.run_dbt(dbt, *arguments)

    def rows(self, table: str) -> list[dict[str, Any]]:
        rows = super().rows(table)
        return [{name: as_time(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize(
    ("name", "target"),
    [("snowflake", snowflake("snake_case", "hard")), ("bigquery", bigquery("snake_case"))],
    ids=OUTPUTS,
)
def test_every_final_table_is_what_happened(name: str, target: Emulated, tmp_path: Path) -> None:
    """A job is edited in every kind of column, one moves, one opens, one closes, one returns."""
    with (
        target.emulator(tmp_path) as address,
        opened(EmulatedWarehouse(tmp_path, address, name=name, target=target)) as portal,
    ):
        first_day(portal, odd="odd name/~.")

        portal.day(2)
        portal.edit(2, **{"odd name/~.": "text now"}, note="", maxSalary=2 * 10**15)
        portal.edit(3, jobTitle="Retitled", minSalary=50_000, maxSalary=70_000.25)
        portal.edit(4, roleOverview="Only the detail has changed.", yearsExperience=7)
        portal.publish(make_jobs(1, seed=99)[0])
        portal.unpublish(5)
        portal.unpublish(6)
        portal.sync()

        portal.day(4, hour=9)
        portal.publish(5)
        portal.edit(0, salaryPeriod="month", department="Moved")
        portal.edit(3, minSalary=55_000, currency="CHF")
        portal.sync()
        portal.build()

        history = History(portal.listings)
        for table in FINAL_TABLES:
            assert_holds(portal.warehouse, table, history)
