"""One random history: an organisation changes between and during syncs, and much goes wrong."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import TYPE_CHECKING

import duckdb
import psycopg
from e2e.pipeline import Tap, environment, program, read
from e2e.stores import in_order
from e2e.targets import DUCKDB, meltanolabs, sqlite
from e2e.truth import FIELDS, job_row
from harness import Output, select_only
from histories.organisation import Changing
from histories.quick_tap import AHEAD
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from e2e.pipeline import Settings
    from e2e.stores import Row
    from e2e.targets import Target

STREAMS = ("jobs", "job_publications", "job_details")
SELECTIONS = [("jobs", "job_publications"), ("job_details",), ("jobs",), STREAMS[1:]]
PERIODS = {
    "opened_after": False,
    "first_seen_at": True,
    "last_seen_at": True,
    "unpublished_at": False,
}
"""The times of a row, and whether its job was published then."""

FAULTS = (
    "reset",
    "cut_body",
    "cut_chunked",
    "stall",
    "http_404",
    "http_500",
    "http_503",
    "not_json",
    "empty_body",
    "json_null",
)
HOUR = 3600.0
LONGEST_WAIT = 12 * HOUR
"""Between two runs; no detail of a history is old enough to expire."""

QUICK_TAP = Path(__file__).with_name("quick_tap.py")
IMPORTS = ("tap_public_jobs.tap", "pendulum", "dateutil.parser")
NOT_THERE = (
    sqlite3.OperationalError,
    duckdb.CatalogException,
    duckdb.IOException,
    psycopg.errors.UndefinedTable,
)


def target_of(seed: int) -> Target:
    """The target of a seed, in turn."""
    targets = [sqlite("upsert", "hard"), DUCKDB, sqlite("append-only", "soft")]
    targets += [sqlite("upsert", "soft"), meltanolabs("hard", f"seed_{seed}")]
    return targets[seed % len(targets)]


@dataclass
class Sync:
    """One run: how the tap is set up, and what goes wrong."""

    refresh: str
    selection: tuple[str, ...] = STREAMS
    page_size: int = 100
    workers: int = 4
    limit: int = 100_000
    changes: int = 0
    faults: int = 0
    signal: int = 0
    loses_state: bool = False
    target: str = "loads all"

    @property
    def is_quiet(self) -> bool:
        """Whether the organisation and the API stay as they are."""
        return not (self.changes or self.faults or self.signal)


class History:
    """A history, the same for the same seed except for the order of concurrent requests.

    Args:
        seed: Determines what happens.
        folder: For all files.
        database: The address of a PostgreSQL database.
    """

    def __init__(self, seed: int, folder: Path, database: str) -> None:
        self.random = random = Random(seed)  # noqa: S311  # a seed must be repeatable
        self._folder = folder
        self._database = database
        self._target = target_of(seed)
        self._store = self._target.store(folder, database)
        self._log = random.choice([ChangeLog(f"sqlite:///{folder}/changes.db"), None, None])
        if self._log:
            self._log.append([])  # makes it
        self._ahead = time.time() - time.monotonic()
        self._organisation = Changing(random, self._clock, self._on_change)
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._steps = [f"into {self._target.name}"]
        self._loaded: dict[str, set[str]] = {table: set() for table in FIELDS}
        # The jobs whose details precede the state that the next run gets.
        self._paid: set[str] = set()
        self._changed: set[str] = set()

    @property
    def summary(self) -> str:
        """What happened, in numbers."""
        jobs = len(self._organisation.jobs)
        return f"{len(self._ends)} runs, {jobs} jobs at the end, {self._target.name}"

    def _clock(self) -> float:
        """The time by the tap's clock, which is put forward before each run."""
        return time.monotonic() + self._ahead

    def _on_change(self, public_ids: set[str], ids: set[str]) -> None:
        if self._log:
            self._log.append(public_ids)
        self._changed |= ids
        self._paid -= ids

    def play(self) -> None:
        """Run the history, and check the tables after each run and at the end.

        Raises:
            AssertionError: A check failed; names what happened before.
        """
        try:
            self._play()
        except AssertionError as error:
            raise AssertionError("\n".join([*self._steps, str(error)])) from error

    def _play(self) -> None:
        for _ in range(self.random.randint(0, 14)):
            self._organisation.publish()
        for _ in range(self.random.randint(2, 4)):
            self._sync(self._random_sync())
            for _ in range(self.random.choice([0, 1, 3, 8])):
                self._organisation.change()
        for _ in range(4):
            self._organisation.change()
        # Nothing goes wrong any more. The first run may resume another, the second does not.
        for refresh in ("notified" if self._log else "changed", "all"):
            self._sync(Sync(refresh, page_size=self.random.choice([3, 100])))
        if self._target.removal != "none" and self._target.load_method == "upsert":
            ids = sorted(job["id"] for job in self._organisation.jobs)
            for table in FIELDS:
                _same(f"ids in {table}", sorted(self._ids(table)), ids)

    def _random_sync(self) -> Sync:
        random = self.random
        sync = Sync(
            random.choice(["all", "changed", *(["notified"] if self._log else [])]),
            selection=random.choice(SELECTIONS) if random.random() < 0.25 else STREAMS,
            page_size=random.choice([2, 3, 5, 100]),
            workers=random.choice([1, 4]),
            limit=random.choice([20, 100_000]),
            loses_state=random.random() < 0.1,
        )
        if random.random() < 0.4:
            sync.changes = random.randint(1, 6)
        if random.random() < 0.3:
            sync.faults = random.choice([1, 2, 5, 30])
        if random.random() < 0.3:
            sync.signal = random.choice([signal.SIGKILL, signal.SIGTERM])
        if random.random() < 0.25:
            sync.target = random.choice(["dies in between", "loses its state", "loads nothing"])
        return sync

    def _sync(self, sync: Sync) -> None:
        self._steps.append(f"{sync}")
        tap = Tap(self._folder, _catalog(sync.selection))
        if sync.loses_state:
            tap.state.unlink(missing_ok=True)
        if sync.loses_state or sync.faults:  # a detail that fails is requested again
            self._paid.clear()
        self._changed.clear()
        self._ahead += self.random.choice([60.0, 60.0, HOUR, LONGEST_WAIT])
        self._starts.append(self._clock())
        api = Sandbox(Options(limit_requests=sync.limit, limit_period=0.1))
        api.organisation.postings = self._organisation.organisation.postings
        with serving(api) as base_url:
            status = self._run_tap(tap, sync, api, base_url)
        self._ends.append(self._clock())
        self._steps[-1] += f" -> {status}, {len(api.requests)} requests"
        self._check_requests(sync, api)
        if sync.is_quiet:
            assert status == 0, self._errors
        is_loaded = self._load(tap, sync)
        self._check_rows()
        if sync.is_quiet and is_loaded and sync.selection == STREAMS:
            self._check_tables()

    def _run_tap(self, tap: Tap, sync: Sync, api: Sandbox, base_url: str) -> int:
        settings: Settings = {
            "api_key": api.key,
            "base_url": base_url,
            "rate_limit_requests": sync.limit,
            "rate_limit_period_seconds": 0.1,
            "max_concurrent_requests": sync.workers,
            "request_timeout_seconds": 0.5 if sync.faults else 30,
            "page_size": sync.page_size,
            "detail_refresh": sync.refresh,
            "column_naming": "snake_case",
        }
        if self._log:
            settings["changes_url"] = f"sqlite:///{self._folder}/changes.db"
        pids = SimpleQueue[int]()

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.kill(pids.get(), sync.signal)

        incidents = [self._organisation.change] * sync.changes + [kill] * bool(sync.signal)
        incidents += [
            partial(api.fail_next, self.random.choice(FAULTS)) for _ in range(sync.faults)
        ]
        for incident in incidents:
            api.at_request(self.random.randint(1, 2 * len(self._organisation.jobs) + 8), incident)
        with (
            (self._folder / "stdout").open("wb") as stdout,
            (self._folder / "stderr").open("wb") as stderr,
            program(QUICK_TAP, *IMPORTS).start(
                tap.options(settings),
                environment(**{AHEAD: f"{self._ahead}"}),
                folder=self._folder,
                stdout=stdout,
                stderr=stderr,
            ) as run,
        ):
            pids.put(run.pid)
            status = run.wait()
        allowed = {0, 1, *([-signal.SIGKILL] if sync.signal == signal.SIGKILL else [])}
        allowed |= {143, -signal.SIGTERM} if sync.signal == signal.SIGTERM else set()
        assert status in allowed, f"status {status}: {self._errors}"
        assert "Traceback" not in self._errors, self._errors
        assert status != 1 or self._errors.count("| CRITICAL |") == 1, self._errors
        return status

    @property
    def _errors(self) -> str:
        return (self._folder / "stderr").read_text("utf-8")

    def _load(self, tap: Tap, sync: Sync) -> bool:
        """Load as much as the target takes, and keep its last state; returns whether it took all.

        A killed tap may leave a partial line, which no target can read.
        """
        lines = (self._folder / "stdout").read_bytes().splitlines(keepends=True)
        lines = lines if lines and lines[-1].endswith(b"\n") else lines[:-1]
        if sync.target == "loads nothing":
            return False
        if sync.target == "dies in between":
            lines = lines[: self.random.randint(0, len(lines))]
        text = b"".join(lines).decode()
        states = self._target.load(text, self._folder, self._database).splitlines()
        if states and sync.target != "loses its state":
            tap.state.write_text(states[-1], "utf-8")
            (state,) = read(tap.state)
            (self._folder / "loaded").write_text(text, "utf-8")
            messages = read(self._folder / "loaded")
            last = max(n for n, it in enumerate(messages) if it.get("value") == state)
            details = Output(messages[:last]).records("job_details")
            self._paid |= {record["id"] for record in details} - self._changed
        return sync.target != "dies in between"

    def _check_requests(self, sync: Sync, api: Sandbox) -> None:
        """No rejection, nothing twice, and no detail that was paid for and has not expired."""
        answered = [(it.path, *it.query.items()) for it in api.requests if it.status == 200]
        twice = [request for request, number in Counter(answered).items() if number > 1]
        if not sync.faults:
            assert 429 not in {request.status for request in api.requests}
        if sync.is_quiet:
            _same("requests that were repeated", twice, [])
        if sync.is_quiet and sync.refresh != "all":
            paths = {it.path.rpartition("/")[2] for it in api.requests}
            again = [job["id"] for job in self._organisation.jobs if job["publicId"] in paths]
            _same("details that were requested again", self._paid & {*again}, set())

    def _rows(self, table: str) -> list[Row]:
        """The rows of a table; none before a run has selected it."""
        with suppress(*NOT_THERE):
            return self._store.rows(table)
        return []

    def _ids(self, table: str) -> set[str]:
        return {row["id"] for row in self._rows(table) if not row.get("deleted")}

    def _check_rows(self) -> None:
        """Once loaded, a job stays for as long as it is published; and every time is true."""
        since = self._ends[-2] if len(self._ends) > 1 else 0.0
        stayed = frozenset.intersection(*self._organisation.published(since, self._ends[-1]))
        for table, before in self._loaded.items():
            ids = self._ids(table)
            assert before & stayed <= ids, f"{table} has lost {before & stayed - ids}"
            self._loaded[table] = ids
        for row in self._rows("job_publications"):
            for column, is_published in PERIODS.items():
                if row[column]:
                    at = row[column].replace(tzinfo=UTC).timestamp() + 0.001  # in milliseconds
                    run = max(n for n, start in enumerate(self._starts) if start <= at)
                    states = self._organisation.published(self._starts[run], self._ends[run])
                    found = {row["id"] in ids for ids in states}
                    assert is_published in found, f"{column} is wrong: {row}"
            times = [row[name] for name in PERIODS if row[name]]
            assert times == sorted(times), row
            assert row["unpublished_at"] != row["last_seen_at"], row

    def _check_tables(self) -> None:
        """Check that the rule finds the published jobs, with every value that the API has."""
        for table in FIELDS:
            jobs = [self._target.row(job_row(job, table)) for job in self._organisation.jobs]
            _same(f"published rows of {table}", self._store.published(table), in_order(jobs))


def _same(what: str, found: object, expected: object) -> None:
    """Compare, with both in the error."""
    assert found == expected, f"{what}:\n  found    {found}\n  expected {expected}"


@cache
def _catalog(selection: tuple[str, ...]) -> Settings:
    config = {"api_key": "a-key", "base_url": "http://127.0.0.1", "column_naming": "snake_case"}
    return select_only(config, *selection)
