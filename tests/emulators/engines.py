"""Warehouses without an account: targets, emulators, and what they hold.

The engine of ClickHouse is a download of 600 MB, so that only a weekly workflow runs it, with the
variable CLICKHOUSE: `CLICKHOUSE=1 uv run pytest tests/emulators -k ClickHouse`.
"""

import contextlib
import datetime as dt
import json
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import duckdb
import requests
from e2e.pipeline import Settings, definition, environment, installed, listening, run
from e2e.stores import FIELDS, Database, Row, columns_of
from e2e.targets import DUCKDB, Target, as_double, metadata, types
from model_target import Removal
from queries.answers import ANSWERS

HERE = Path(__file__).parent

# Both emulators translate SQL with sqlglot, which is faster compiled.
FAKESNOW = "fakesnow==0.12.1 sqlglot[c]"
BQEMULATOR = (
    "bqemulator==1.4.0 sqlglot[c] numpy duckdb==1.5.5 duckdb-extensions==1.5.5"
    " duckdb-extension-icu==1.5.5 duckdb-extension-spatial==1.5.5"
)

PROJECT = "project"
BUCKET = "lake"
QUERIES = ("open_roles", "changes", "days_open")
# Of all rows in the files of a bucket, the one of each id that counts.
LATEST = """
    qualify row_number() over (partition by id order by _PROCESS_DATE desc, filename desc) = 1
"""


def defined(name: str) -> tuple[str, Settings]:
    """What `meltano add --from-ref` puts into a project: what to install, and the settings."""
    found = definition("loaders", name)
    return found["pip_url"], {it["name"]: it["value"] for it in found["settings"] if "value" in it}


SNOWFLAKE, SNOWFLAKE_SETTINGS = defined("target-snowflake")
BIGQUERY, BIGQUERY_SETTINGS = defined("target-bigquery")
# The newest in the package index, of 2024. It adds no column to a table.
BIGQUERY_RELEASE = "z3-target-bigquery==0.7.2 setuptools<81"


@cache
def bigquery_target() -> str:
    """What users install or, where its repository is out of reach, the release.

    With the variable FROM_GIT, it is always what users install.
    """
    if os.environ.get("FROM_GIT"):
        return BIGQUERY
    repository = BIGQUERY.removeprefix("git+").rpartition("@")[0]
    ask = run("git", "ls-remote", repository, "HEAD", folder=HERE, GIT_TERMINAL_PROMPT="0")
    return BIGQUERY_RELEASE if ask.status else BIGQUERY


@dataclass(frozen=True, kw_only=True)
class Emulated(Target):
    """A target with an emulator.

    Attributes:
        column_naming: The tap's setting.
        emulator: Starts what the target writes to, given a folder; yields the address.
        queries: The queries of docs/query/sql.md that the database understands, in snake case.
        refuses_columns: What it says of a column that comes later; empty if it adds the column.
    """

    column_naming: str
    emulator: Callable[[Path], contextlib.AbstractContextManager[str]]
    queries: tuple[str, ...] = ()
    refuses_columns: str = ""


def without_end(sql: str) -> str:
    """A query, to put into another one."""
    return sql.rstrip().rstrip(";")


@dataclass
class Engine(Database):
    """What a target has written. Columns are named as in snake case, whatever the tap's setting.

    Attributes:
        address: Where the emulator is.
        names: The column of each name that the target stores.
    """

    describe = "describe table {}"
    address: str
    names: dict[str, str]

    def fetch(self, sql: str) -> list[Row]:
        return [self.renamed(row) for row in self.answer(sql)]

    def renamed(self, row: Row) -> Row:
        return {self.names.get(name, name): value for name, value in row.items()}

    def answer(self, sql: str) -> list[Row]:
        """Run a query as it is."""
        raise NotImplementedError

    def types(self, table: str) -> dict[str, str]:
        return self.renamed(super().types(table))


class Snowflake(Engine):
    """A folder with a database of fakesnow, which stores names in upper case."""

    def answer(self, sql: str) -> list[Row]:
        result = snowflake("snake_case", "hard").program.run([], environment(), text=sql)
        assert result.returncode == 0, result.stderr
        return list(json.loads(result.stdout))

    def renamed(self, row: Row) -> Row:
        return super().renamed({name.lower(): value for name, value in row.items()})


class BigQuery(Engine):
    """A dataset of bqemulator."""

    def answer(self, sql: str) -> list[Row]:
        # As JSON, because the API sends every value as text.
        query = f"select to_json_string(answer) from ({without_end(sql)}) as answer"  # noqa: S608
        found = self._request("POST", "queries", json={"query": query, "useLegacySql": False})
        return [json.loads(row["f"][0]["v"]) for row in found.get("rows", [])]

    def types(self, table: str) -> dict[str, str]:
        found = self._request("GET", f"datasets/public_jobs/tables/{table}")
        # bqemulator keeps the case in which the target has sent a type.
        return self.renamed({it["name"]: it["type"].upper() for it in found["schema"]["fields"]})

    def _request(self, method: str, path: str, **options: Any) -> Any:
        url = f"{self.address}/bigquery/v2/projects/{PROJECT}/{path}"
        response = requests.request(method, url, timeout=60, **options)
        found = response.json()
        assert response.ok, found
        assert "errors" not in found, found  # the status of a query that fails may be 200
        return found


@dataclass
class Lake(Engine):
    """A bucket to which each run adds a file a stream.

    `_PROCESS_DATE` orders the rows, in whole seconds; within one, so does the order of the files.

    Attributes:
        folder: Where its files are copied to, numbered.
    """

    describe = "select column_name as name, column_type as type from (describe from {})"
    folder: Path

    def answer(self, sql: str) -> list[Row]:
        if "public_jobs." in sql:
            duckdb.execute("create schema if not exists public_jobs")
            for table in FIELDS:
                view = self.source(table, LATEST)
                duckdb.execute(f"create or replace view public_jobs.{table} as from {view}")
        # As JSON, because values with a time zone need one more package.
        query = f"select to_json(answer) from ({without_end(sql)}) as answer"  # noqa: S608
        return [json.loads(row) for (row,) in duckdb.execute(query).fetchall()]

    def source(self, table: str, which: str = "") -> str:
        files = [str(file) for file in self._files(table)]
        return f"""(
            select * exclude (_PROCESS_DATE, filename)
            from read_parquet({files}, filename = true, union_by_name = true)
            {which} order by _PROCESS_DATE, filename
        ) as {table}"""  # noqa: S608

    def _files(self, table: str) -> list[Path]:
        listed = requests.get(f"{self.address}/{BUCKET}?list-type=2", timeout=60).content
        tree = ET.fromstring(listed)  # noqa: S314 - moto has written it
        copied = {path.name.partition(" ")[2]: path for path in self.folder.glob("* *.parquet")}
        for key in tree.findall("{*}Contents/{*}Key"):
            name = str(key.text).rpartition("/")[2]
            if name not in copied:
                copied[name] = self.folder / f"{len(copied):03} {name}"
                found = requests.get(f"{self.address}/{BUCKET}/{key.text}", timeout=60)
                copied[name].write_bytes(found.content)
        return [path for name, path in copied.items() if name.startswith(f"{table}2")]


class ClickHouse(Engine):
    """A database that has one row for each key under `final`."""

    def answer(self, sql: str) -> list[Row]:
        options = {"default_format": "JSONEachRow"}
        query = f"{without_end(sql)} settings final = 1, join_use_nulls = 1"
        response = requests.post(self.address, query.encode(), params=options, timeout=60)
        assert response.ok, response.text
        return [json.loads(line) for line in response.iter_lines()]

    def renamed(self, row: Row) -> Row:
        # In JSON a number has no more digits than make it out.
        numbers = columns_of("number")
        return {
            name: as_float32(value) if name in numbers else value
            for name, value in super().renamed(row).items()
        }


@contextlib.contextmanager
def fakesnow(folder: Path) -> Iterator[str]:
    """Give the folder: fakesnow is no server, and writes to the folder."""
    with mock.patch.dict(os.environ, {"FAKESNOW": str(folder)}):
        yield str(folder)


@contextlib.contextmanager
def bqemulator(folder: Path) -> Iterator[str]:
    commands = installed(BQEMULATOR)
    # DuckDB looks for its extensions in the home folder.
    home = {"HOME": str(folder)}
    for extension in ("icu", "spatial"):
        script = f"import duckdb_extensions as it; it.import_extension('{extension}')"
        run(commands / "python", "-c", script, folder=folder, **home).succeeded()
    options = ["--grpc-port", "0", "--project", PROJECT, "--rest-port"]
    with (
        served([commands / "bqemulator", "start", *options], folder, **home) as address,
        mock.patch.dict(os.environ, {"BIGQUERY_EMULATOR_HOST": address}),
    ):
        yield address


@contextlib.contextmanager
def moto(folder: Path) -> Iterator[str]:
    command = installed("moto[server]==5.2.5") / "moto_server"
    with served([command, "-H", "127.0.0.1", "-p"], folder) as address:
        requests.put(f"{address}/{BUCKET}", timeout=60).raise_for_status()
        yield address


def chdb(folder: Path) -> contextlib.AbstractContextManager[str]:
    python = installed("chdb==4.4.0") / "python"
    return served([python, HERE / "fake_clickhouse.py", folder / "clickhouse"], folder)


@contextlib.contextmanager
def served(command: Sequence[str | Path], folder: Path, **variables: str) -> Iterator[str]:
    """Start a server, given all but a port as its last argument; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with listening([*command, str(port)], port, folder, environment(**variables)):
        yield f"http://127.0.0.1:{port}"


def names(column_naming: str, stored: Callable[[str], str] = str) -> dict[str, str]:
    """The column of each name that a target stores.

    Args:
        column_naming: The tap's setting.
        stored: What the target makes of a name.
    """
    fields = {name: it for columns in FIELDS.values() for name, it in columns.items()}
    return {stored(f if column_naming == "source" else it): it for f, it in fields.items()}


def snowflake(column_naming: str, removal: Removal) -> Emulated:
    return Emulated(
        name=f"Snowflake, {removal} delete, {column_naming}",
        script=HERE / "fake_snowflake.py",
        requirements=f"{SNOWFLAKE} {FAKESNOW}",
        imports=("fakesnow", "target_snowflake.target"),
        column_naming=column_naming,
        emulator=fakesnow,
        queries=QUERIES,
        settings=lambda *_: (
            SNOWFLAKE_SETTINGS
            | dict.fromkeys(("account", "user", "password"), "mine")
            | {"database": "WAREHOUSE", "hard_delete": removal == "hard"}
        ),
        store=lambda _, address: Snowflake(address, names(column_naming, str.lower)),
        types=types("VARCHAR(16777216)", "FLOAT", "TIMESTAMP_NTZ(9)"),
        metadata=metadata("TIMESTAMP_NTZ(9)", "NUMBER(38,0)"),
        stored=as_double,
        removal=removal,
    )


def bigquery(column_naming: str) -> Emulated:
    requirements, added = bigquery_target(), metadata("TIMESTAMP", "INTEGER")
    is_release = requirements == BIGQUERY_RELEASE
    if is_release:
        del added["_sdc_sync_started_at"]
    return Emulated(
        name=f"BigQuery, {column_naming}",
        script=HERE / "fake_bigquery.py",
        requirements=requirements,
        imports=("target_bigquery.target",),
        column_naming=column_naming,
        emulator=bqemulator,
        queries=QUERIES[:-1],
        refuses_columns="does not have a column with name" if is_release else "",
        settings=lambda *_: BIGQUERY_SETTINGS | {"project": PROJECT},
        store=lambda _, address: BigQuery(address, names(column_naming)),
        types=types("STRING", "FLOAT", "TIMESTAMP"),
        metadata=added,
        stored=as_double,
    )


def s3_settings(_: Path, address: str) -> Settings:
    aws = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key", "aws_region"), "mine")
    aws |= {"aws_bucket": BUCKET, "aws_endpoint_override": address}
    return {
        "format": {"format_type": "parquet"},
        "cloud_provider": {"cloud_provider_type": "aws", "aws": aws},
        "include_process_date": True,
    }


def in_whole_seconds(value: Any) -> Any:
    return value.replace(microsecond=0) if isinstance(value, dt.datetime) else as_double(value)


def s3(column_naming: str) -> Emulated:
    return Emulated(
        name=f"Parquet on S3, {column_naming}",
        requirements="plinxore-target-s3==0.1.7",
        executable="target-s3",
        imports=("target_s3.target",),
        column_naming=column_naming,
        emulator=moto,
        queries=tuple(ANSWERS),
        settings=s3_settings,
        store=lambda folder, address: Lake(address, names(column_naming), folder),
        types=DUCKDB.types | {"date-time": "TIMESTAMP WITH TIME ZONE"},
        stored=in_whole_seconds,
        load_method="append-only",
    )


def as_float32(value: Any) -> Any:
    number = in_whole_seconds(value)
    return struct.unpack("f", struct.pack("f", number))[0] if isinstance(number, float) else number


def clickhouse(column_naming: str) -> Emulated:
    return Emulated(
        name=f"ClickHouse, {column_naming}",
        requirements="shaped-target-clickhouse==0.2.5 setuptools<81",
        executable="target-clickhouse",
        imports=("target_clickhouse.target",),
        column_naming=column_naming,
        emulator=chdb,
        queries=QUERIES,
        settings=lambda _, address: {
            "password": "mine",
            "port": urlsplit(address).port,
            "database": "public_jobs",
            "engine_type": "ReplacingMergeTree",
            "add_record_metadata": True,
        },
        store=lambda _, address: ClickHouse(address, names(column_naming, str.lower)),
        types=types("String", "Float32", "Nullable(DateTime)"),
        metadata=metadata("Nullable(DateTime)", "Int64"),
        stored=as_float32,
        instead_of_null={"string": "", "number": 0.0},
        removal="soft",
    )


MAKERS = [bigquery, s3, *([clickhouse] if os.environ.get("CLICKHOUSE") else [])]
ENGINES = [
    snowflake("snake_case", "hard"),
    snowflake("source", "soft"),
    *(make(naming) for make in MAKERS for naming in ("snake_case", "source")),
]
