"""An organisation's portal over some days, and the warehouses that follow it.

The real tap syncs the portal, real targets load what it writes, and real dbt builds from that.
"""

import contextlib
import copy
import csv
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from e2e.pipeline import REPOSITORY, environment, installed, plugin, program, run, variables
from e2e.scenario import storable
from e2e.stores import Database, Row
from e2e.targets import DUCKDB, DUCKDB_FILE, Target, meltanolabs
from forked import Program
from harness import captured, demo, run_tap
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import Job
from public_jobs_sandbox.state import Sandbox
from typing_extensions import override

from tap_public_jobs.errors import TapError

TRANSFORM = REPOSITORY / "pipeline" / "transform"
DBT_2 = "dbt==2.0.0rc196"  # the last that is a wheel: later ones download themselves
METRICFLOW = "dbt-metricflow==0.15.0"
LIBRARY = "bareduckdb==0.12.155"  # a package that has DuckDB as a library

Ended = subprocess.CompletedProcess[str]
WITHOUT_TESTS = ("--exclude-resource-type", "test", "unit_test")
# What can't be built again.
HISTORY_ALONE = ("--select", "+path:snapshots", *WITHOUT_TESTS)
# And the tables that each build adds to.
INCREMENTS = ("--select", "path:snapshots", "path:models/staging", "path:seeds", *WITHOUT_TESTS)


def dbt_command(name: str) -> Path:
    """Install dbt as Meltano would, or another version of it; returns the path of its command."""
    core, *others = plugin("utilities", name)["pip_url"].split()
    return installed(" ".join([os.environ.get("DBT_CORE", core), *others])) / "dbt"


def dbt_program(name: str) -> Program:
    """The same as a program that has read the package."""
    script = Path(__file__).with_name("dbt_read.py")
    return program(script, "support.dbt_read", python=dbt_command(name).with_name("python"))


@dataclass
class Builds:
    """What all kinds of warehouse have in common.

    Attributes:
        folder: For the files of target and dbt.
        address: Of a database.
        project: What dbt builds.
        target: What loads it.
        utility: The plugin that builds in it.
    """

    folder: Path
    address: str = ""
    project: Path = field(default=TRANSFORM, kw_only=True)
    target: Target = field(kw_only=True)
    utility: ClassVar[str]

    def load(self, messages: str, schema: str, **settings: Any) -> Ended:
        """Run the target, with more settings."""
        into = (self.folder, self.address)
        return self.target.run(messages, *into, default_target_schema=schema, **settings)

    def rows(self, table: str) -> list[Row]:
        """All rows of a table."""
        store = self.target.store(self.folder, self.address)
        assert isinstance(store, Database)
        return store.fetch(f"select * from {table}")  # noqa: S608

    @property
    def variables(self) -> dict[str, str]:
        """The variables from which dbt takes the address of the database, as the loader does."""
        return variables(self.target.executable, self.target.settings(self.folder, self.address))

    def dbt(self, *arguments: str) -> tuple[int, str]:
        """Run dbt; returns its status and what it prints."""
        output = plugin("utilities", self.utility)["config"]["target"]
        return self.run_dbt(dbt_program(self.utility), *arguments, "--target", output)

    def run_dbt(self, dbt: Program, *arguments: str) -> tuple[int, str]:
        """Run this dbt; returns its status and what it prints."""
        shell = environment(**self.shell)
        result = dbt.run(["--no-use-colors", *arguments], shell, folder=self.project)
        return result.returncode, result.stdout + result.stderr

    @property
    def shell(self) -> dict[str, str]:
        """The variables of dbt, which keeps its files in the folder."""
        # Nothing that dbt writes depends on where it runs.
        zone = dict.fromkeys(("TZ", "PGTZ"), "America/New_York")
        files = dict.fromkeys(("DBT_TARGET_PATH", "DBT_LOG_PATH"), str(self.folder / "dbt"))
        # No project of a test changes but in its packages, and to parse it anew takes seconds.
        parse = {"DBT_PARTIAL_PARSE": "true"}
        return zone | files | parse | {"DBT_PROFILES_DIR": str(TRANSFORM)} | self.variables

    def build(self, *arguments: str) -> str:
        """Run `dbt build`, which must end well; returns what it prints."""
        production = () if "unit_test" in arguments else ("--exclude-resource-type", "unit_test")
        # To write files that nobody reads takes a quarter of a short build.
        quiet = ("--no-write-json", "--log-level-file", "error")
        status, output = self.dbt("build", *quiet, *arguments, *production)
        assert status == 0, output
        return output

    def listed_at(self, *arguments: str) -> str:
        """Run `dbt source freshness`; returns the time that it finds too long ago."""
        status, output = self.dbt("source", "freshness", *arguments)
        assert "ERROR STALE" in output
        assert status == 1
        results = json.loads((self.folder / "dbt" / "sources.json").read_text("utf-8"))["results"]
        (publications,) = results  # the only source that has freshness
        return str(publications["max_loaded_at"])


@dataclass
class DuckDB(Builds):
    """A file."""

    target: Target = field(default=DUCKDB, kw_only=True)
    utility = "dbt-duckdb"

    @property
    def file(self) -> Path:
        return self.folder / DUCKDB_FILE

    def run(self, statement: str) -> None:
        # By the DuckDB of dbt: the target may not read what a newer one has written.
        python = dbt_command(self.utility).with_name("python")
        code = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.stdin.read())"
        subprocess.run([python, "-c", code, self.file], input=statement, text=True, check=True)

    def metrics(self, *names: str, by: str) -> list[dict[str, str]]:
        """Ask MetricFlow for metrics of the last build."""
        project, answer = self.folder / "metrics", self.folder / "metrics.csv"
        if not project.exists():
            status, output = self.dbt("parse")  # a build here writes no definitions
            assert status == 0, output
            project.mkdir()
            (project / "target").symlink_to(self.folder / "dbt")
            for part in self.project.iterdir():
                (project / part.name).symlink_to(part)
        dbt = plugin("utilities", self.utility)["pip_url"]
        query = ("query", "--metrics", ",".join(names), "--group-by", by, "--csv", str(answer))
        run(
            installed(f"{dbt} {METRICFLOW}") / "mf", *query, folder=project, **self.shell
        ).succeeded()
        with answer.open(encoding="utf-8") as file:
            return list(csv.DictReader(file))


@dataclass
class Postgres(Builds):
    """A database of a server."""

    target: Target = field(default=meltanolabs("hard", "public_jobs"), kw_only=True)
    utility = "dbt-postgres"

    def run(self, statement: str) -> None:
        with psycopg.connect(self.address) as connection:
            connection.execute(statement.encode())


class WithDbt2(DuckDB):
    """A file in which dbt 2 builds."""

    @override
    def dbt(self, *arguments: str) -> tuple[int, str]:
        library = self.folder / "library"
        if not library.exists():
            # It has no wheels for older Pythons, and none of its Python is used.
            wheel = ["--no-deps", "--python-version", "3.12", "--target", str(library), LIBRARY]
            subprocess.run([*uv_command(), "pip", "install", "-q", *wheel], check=True)
        shell = self.shell | {"LD_LIBRARY_PATH": str(library / "bareduckdb" / "_libs")}
        options = ("--no-use-colors", *arguments, "--target", "duckdb")
        ended = run(installed(DBT_2) / "dbt", *options, folder=self.project, **shell)
        return ended.status, ended.output


Warehouse = DuckDB | Postgres
# Each in one worker, where a process has read the package.
IN_DUCKDB, IN_POSTGRESQL = map(pytest.mark.xdist_group, ("DuckDB", "PostgreSQL"))
KINDS = [
    pytest.param("DuckDB", marks=IN_DUCKDB),
    pytest.param("PostgreSQL", marks=IN_POSTGRESQL),
]


def new_warehouse(kind: str, folder: Path, new_database: Callable[[], str]) -> Warehouse:
    """Make an empty warehouse of this kind; PostgreSQL needs a database of its own."""
    if kind == "PostgreSQL":
        return Postgres(folder, new_database())
    return DuckDB(folder) if kind == "DuckDB" else WithDbt2(folder)


FIRST_DAY = datetime(2026, 11, 1, 4, tzinfo=UTC)


@dataclass
class ShownList:
    """What the list showed at one time, and whether dbt ran after it.

    Attributes:
        time: As warehouses hold it: UTC without a zone.
        jobs: The published jobs by id.
        built: Whether a build followed before the next listing.
        remembered: The listing before that the tap remembers, if it is not the one before.
    """

    time: datetime
    jobs: dict[str, Job]
    built: bool = False
    remembered: datetime | None = None


@dataclass
class Portal:
    """One organisation, its tap and its warehouse.

    Attributes:
        sandbox: The API.
        config: The tap's settings.
        warehouse: Where the tap's messages go.
        schema: The schema of the organisation.
        now: The time of the next sync.
        listings: What happened so far.
        loaded: Each job as it was last loaded.
        state: What the tap remembers.
        catalog: What it is given; None for its own.
    """

    sandbox: Sandbox
    config: dict[str, Any]
    warehouse: Builds
    schema: str = "public_jobs"
    now: datetime = FIRST_DAY
    listings: list[ShownList] = field(default_factory=list)
    loaded: dict[str, Job] = field(default_factory=dict)
    state: dict[str, Any] | None = None
    catalog: dict[str, Any] | None = None

    @property
    def public_ids(self) -> list[str]:
        return list(self.sandbox.organisation.postings)

    def day(self, number: int, hour: int = 4) -> None:
        self.now = FIRST_DAY + timedelta(days=number - 1, hours=hour - 4)

    def edit(self, number: int, **fields: object) -> None:
        self.sandbox.edit(self.public_ids[number], **fields)

    def unpublish(self, number: int) -> None:
        self.sandbox.unpublish(self.public_ids[number])

    def publish(self, job: Job | int) -> None:
        self.sandbox.publish(self.public_ids[job] if isinstance(job, int) else job)

    def sync(self) -> None:
        """Run the tap and load what it writes."""
        time = self.now.replace(tzinfo=None)
        self._load(self._messages())
        listed = [posting.job["id"] for posting in self.sandbox.organisation.published()]
        self.listings.append(ShownList(time, {key: self.loaded[key] for key in listed}))

    def sync_short(self) -> None:
        """Run the tap on a list that lacks most jobs, and load what it writes: it is no listing."""
        with (
            captured() as output,
            pytest.raises(TapError, match="disappeared from the list"),
        ):
            self._run_tap()
        self._load(output.text)

    def _load(self, messages: str) -> None:
        ended = self.warehouse.load(messages, self.schema)
        assert ended.returncode == 0, ended.stderr
        self.state = json.loads(ended.stdout.splitlines()[-1])
        published = [it.job for it in self.sandbox.organisation.published()]
        self.loaded |= {job["id"]: storable(job) for job in published}

    def sync_until(self, stream: str) -> None:
        """Run the tap into a target that dies in the middle of a stream; the state stays."""
        lines = self._messages().splitlines(keepends=True)
        start = {"type": "RECORD", "stream": stream}.items()
        records = [number for number, line in enumerate(lines) if start <= json.loads(line).items()]
        middle = records[len(records) // 2]
        killed = "".join([*lines[:middle], "killed\n"])
        # In small batches, so that some rows are written before.
        assert self.warehouse.load(killed, self.schema, batch_size_rows=3).returncode != 0

    def _messages(self) -> str:
        with captured() as output:
            self._run_tap()
        return output.text

    def _run_tap(self) -> None:
        state = copy.deepcopy(self.state)
        run_tap(self.config, catalog=self.catalog, state=state, clock=self.now.timestamp)

    def build(self, *arguments: str) -> str:
        listing = self.listings[-1]
        if not listing.built:  # it sees what was loaded since, too
            listing.jobs = {key: self.loaded[key] for key in listing.jobs}
        listing.built = True
        return self.warehouse.build(*arguments)


@contextlib.contextmanager
def opened(warehouse: Builds, schema: str = "public_jobs") -> Iterator[Portal]:
    """Serve an organisation with twelve jobs."""
    with demo(12) as (sandbox, settings):
        # One at a time, so that details arrive in the order of the list, wherever a load stops.
        config = settings | {"column_naming": "snake_case", "max_concurrent_requests": 1}
        yield Portal(sandbox, config, warehouse, schema)


def first_day(portal: Portal, odd: str = 'odd "name"/~.') -> None:
    """Jobs that lack what others have; one has fields without a column, of which one is odd."""
    portal.edit(0, knockoutQuestions=[], salaryPeriod="year")
    portal.edit(1, department="", minSalary=0, maxSalary=61000.5, currency="BRL")
    portal.edit(2, **{odd: {"nested": [1, None]}}, note="some text", maxSalary=9)
    # A question that is none hides no other one.
    question = {"id": "q", "question": "Is it?", "type": "boolean", "required": True}
    portal.edit(9, knockoutQuestions=[None, "odd", 5, question])
    portal.sync()
    portal.build(*INCREMENTS)
