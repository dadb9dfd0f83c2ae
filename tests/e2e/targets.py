"""The targets that the tap is tested with, and what each makes of its records."""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from e2e.pipeline import Settings, environment, installed, plugin, program, written
from e2e.scenario import LATER, Recording, job_row
from e2e.stores import (
    FIELDS,
    KINDS,
    METADATA,
    TABLES,
    DuckDBFile,
    Lines,
    PostgresSchema,
    Row,
    SQLite,
    Store,
    cleaned,
    in_order,
)
from forked import Program
from harness import parse
from model_target import DELETED, LoadMethod, ModelTarget, Removal
from public_jobs_sandbox.postings import Job

Value = Any


def as_double(value: Value) -> Value:
    """What a column of doubles keeps of a number."""
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else value


def as_double_or_null(value: Value) -> Value:
    """The same; empty text becomes null."""
    return None if value == "" else as_double(value)


def with_escapes(value: Value) -> Value:
    """The same; line breaks and tabs in a column of text become the escapes of JSON."""
    if isinstance(value, str):
        value = value.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t")
    return as_double_or_null(value)


@dataclass(frozen=True, kw_only=True)
class Target:
    """One target with one way to set it up.

    Attributes:
        name: What the tests call it.
        requirements: What to install; empty if it is there.
        executable: Its command.
        script: What runs it; by default its command.
        imports: What it imports that takes time; nothing that starts threads.
        settings: Its settings, given a folder and the address of a database.
        store: Where it has written, given the same.
        types: The type of the column of each JSON type.
        metadata: Columns that it adds, and their types.
        stored: What it makes of a value.
        instead_of_null: What it makes of null, by JSON type.
        load_method: What a run does with the rows that are there already.
        removal: How it obeys ACTIVATE_VERSION.
    """

    name: str
    requirements: str = ""
    executable: str = ""
    script: Path | None = None
    imports: tuple[str, ...] = ()
    settings: Callable[[Path, str], Settings]
    store: Callable[[Path, str], Store]
    types: dict[str, str]
    metadata: dict[str, str] = field(default_factory=dict)
    stored: Callable[[Value], Value] = lambda value: value
    instead_of_null: dict[str, Value] = field(default_factory=dict)
    load_method: LoadMethod = "upsert"
    removal: Removal = "none"

    @property
    def command(self) -> tuple[Path, Path]:
        """Its Python, and its script."""
        here = Path(sys.executable).parent
        commands = installed(self.requirements) if self.requirements else here
        return commands / "python", self.script or commands / self.executable

    @property
    def program(self) -> Program:
        python, script = self.command
        return program(script, *self.imports, python=python)

    def run(
        self, messages: str, folder: Path, database: str, **others: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run it with what the tap has written, and with more settings."""
        config = written(folder / "target.json", self.settings(folder, database) | others)
        # As in meltano.yml: local time repeats an hour.
        return self.program.run(["--config", config], environment(PGTZ="UTC"), text=messages)

    def load(self, messages: str, folder: Path, database: str, **others: Any) -> list[Any]:
        """Load what the tap has written; returns the states that the target passes on."""
        result = self.run(messages, folder, database, **others)
        assert result.returncode == 0, result.stderr
        return [json.loads(state) for state in result.stdout.splitlines()]

    def column_types(self, table: str) -> dict[str, str]:
        columns = {column: self.types[kind] for column, kind in TABLES[table].items()}
        return columns | self.metadata

    def row(self, row: Row) -> Row:
        """What it stores of a record."""
        nulls = {name: self.instead_of_null.get(kind) for name, kind in KINDS.items()}
        kept = {
            name: nulls.get(name) if value is None else self.stored(value)
            for name, value in row.items()
        }
        return {DELETED: False} | kept if self.metadata else kept

    def rows(self, jobs: list[Job], table: str) -> list[Row]:
        """What it stores of jobs that are published."""
        return in_order([self.row(job_row(job, table)) for job in jobs])

    def assert_holds(self, store: Store, jobs: list[Job]) -> None:
        """A store has every value of these published jobs, and no other job."""
        for table in ("jobs", "job_details"):
            assert store.published(table) == store.rows(table) == self.rows(jobs, table)


class CheckedTarget:
    """A target, run after run, and a model that reads the same messages.

    Args:
        target: The target.
        folder: For its files.
        database: The address of a database.

    Attributes:
        store: Where it has written.
    """

    def __init__(self, target: Target, folder: Path, database: str) -> None:
        self.store = target.store(folder, database)
        self._target, self._folder, self._database = target, folder, database
        self._model = ModelTarget(target.load_method, target.removal)

    def load(self, messages: str) -> list[Any]:
        """Load what the tap has written, compare every row, and return the states."""
        self._model.read(io.StringIO(messages))
        states = self._target.load(messages, self._folder, self._database)
        for table, schemas in self._model.schemas.items():
            names = FIELDS[table]
            columns = dict.fromkeys(schemas[-1]["properties"])  # older rows may lack a later one
            found = [columns | row for row in self._model.all(table)]
            rows = [{names.get(k, k): v for k, v in row.items()} for row in found]
            assert self.store.rows(table) == [self._target.row(row) for row in cleaned(rows)], table
        return states


def each(targets: Sequence[Target]) -> pytest.MarkDecorator:
    """Run a test with each target; several tests of one run in one worker."""
    parameters = [
        pytest.param(target, id=target.name, marks=pytest.mark.xdist_group(target.name))
        for target in targets
    ]
    return pytest.mark.parametrize("target", parameters)


def load_and_compare(
    target: Target, recordings: dict[str, Recording], database: str, folder: Path
) -> None:
    """Load each run. Fields that the API page does not name are in additional_fields.

    What is published now is found by one rule, whatever the target keeps of earlier runs.
    No run changes a type.
    """
    checked = CheckedTarget(target, folder, database)
    store = checked.store
    for run, recording in recordings.items():
        states = checked.load(recording.text)

        for table in TABLES:
            types = target.column_types(table)
            types.pop(recording.left_out.get(table, ""), None)
            assert store.types(table) == types, (run, table)
        for table in ("jobs", "job_details"):
            # What is left out is nowhere, also where it would not fit its column.
            field = LATER[table] if recording.left_out else ""
            jobs = [{k: it for k, it in job.items() if k != field} for job in recording.published]
            rows = target.rows(jobs, table)
            for row in rows:
                row.pop(recording.left_out.get(table, ""), None)
            assert store.published(table) == rows, (run, table)
            assert target.removal != "hard" or store.rows(table) == rows, (run, table)
        assert states[-1] == parse(recording.text).messages[-1]["value"]


def psycopg_url(database: str) -> str:
    return database.replace(":", "+psycopg:", 1)


def types(text: str, number: str, time: str) -> dict[str, str]:
    return {"string": text, "number": number, "date-time": time}


def metadata(time: str, number: str) -> dict[str, str]:
    return dict(zip(METADATA, [time] * 4 + [number] * 3, strict=True))


def meltanolabs(removal: Removal, schema: str) -> Target:
    return Target(
        name=f"meltanolabs-target-postgres, {removal} delete",
        requirements=plugin("loaders", "target-postgres")["pip_url"],
        executable="target-postgres",
        imports=("target_postgres.target", "sqlalchemy.dialects.postgresql.psycopg"),
        settings=lambda _, database: {
            "sqlalchemy_url": psycopg_url(database),
            "default_target_schema": schema,
            "hard_delete": removal == "hard",
        },
        store=lambda _, database: PostgresSchema(database, schema),
        types=types("text", "numeric", "timestamp without time zone"),
        metadata=metadata("timestamp without time zone", "bigint"),
        removal=removal,
    )


def pipelinewise_settings(_: Path, database: str) -> Settings:
    address = psycopg.conninfo.conninfo_to_dict(database)
    wanted = {"port": 5432, "password": "it wants one", "default_target_schema": "pipelinewise"}
    return wanted | {name: address[name] for name in ("host", "user", "dbname")}


def sqlite(load_method: LoadMethod, removal: Removal) -> Target:
    return Target(
        name=f"target of the SDK, {load_method}, {removal} delete",
        script=Path(__file__).with_name("sqlite_target.py"),
        imports=("singer_sdk.sql", "sqlalchemy.dialects.sqlite.pysqlite"),
        settings=lambda folder, _: {
            "file": str(folder / "warehouse.sqlite"),
            "load_method": load_method,
            "hard_delete": removal == "hard",
            "add_record_metadata": True,
        },
        store=lambda folder, _: SQLite(folder / "warehouse.sqlite"),
        types=types("VARCHAR", "DECIMAL", "DATETIME"),
        metadata=metadata("DATETIME", "INTEGER"),
        stored=as_double,
        load_method=load_method,
        removal=removal,
    )


DUCKDB_FILE = "warehouse.duckdb"
DUCKDB = Target(
    name="target-duckdb",
    requirements=plugin("loaders", "target-duckdb")["pip_url"],
    executable="target-duckdb",
    settings=lambda folder, _: (
        plugin("loaders", "target-duckdb")["config"] | {"filepath": str(folder / DUCKDB_FILE)}
    ),
    store=lambda folder, _: DuckDBFile(folder / DUCKDB_FILE),
    types=types("VARCHAR", "DOUBLE", "TIMESTAMP"),
    stored=as_double_or_null,
)

TARGETS = [
    DUCKDB,
    meltanolabs("hard", "hard"),
    meltanolabs("soft", "soft"),
    Target(
        name="pipelinewise-target-postgres",
        requirements="pipelinewise-target-postgres==2.1.2",
        executable="target-postgres",
        settings=pipelinewise_settings,
        store=lambda _, database: PostgresSchema(database, "pipelinewise"),
        types=types("character varying", "double precision", "timestamp without time zone"),
        stored=with_escapes,
    ),
    Target(
        name="target-jsonl",
        requirements="target-jsonl==0.1.4",
        executable="target-jsonl",
        settings=lambda folder, _: {"destination_path": str(folder), "do_timestamp_file": False},
        store=lambda folder, _: Lines(folder),
        types=types("", "", ""),
        load_method="append-only",
    ),
    *(
        sqlite(load_method, removal)
        for load_method in ("append-only", "upsert", "overwrite")
        for removal in ("hard", "soft")
    ),
]
