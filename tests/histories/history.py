"""One random history: an organisation changes between and during syncs, and much goes wrong."""

from __future__ import annotations

import math
import os
import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import TYPE_CHECKING, Any

from e2e.pipeline import program, read, written
from harness import select_only
from histories.api import FAULTS, Api
from histories.checks import (
    LIMIT,
    PERIOD,
    Interval,
    Kept,
    Times,
    check_periods,
    check_removed,
    check_requests,
    check_tables,
)
from histories.organisation import Organisation
from histories.paid import Paid
from histories.quick_tap import AHEAD
from histories.warehouses import Plain, Real, target_of

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from histories.warehouses import Warehouse

STREAMS = ("jobs", "job_publications", "job_details")
SELECTIONS = [("jobs", "job_publications"), ("job_details",), ("jobs",), STREAMS[1:]]
HOUR = 3600.0
MOST_SECONDS = 3.0
"""From a signal to the end of the process: two by contract, and one for a busy computer."""

QUICK_TAP = Path(__file__).with_name("quick_tap.py")
IMPORTS = ("tap_public_jobs.tap", "pendulum", "dateutil.parser")

Message = dict[str, Any]


@dataclass
class Sync:
    """One run: how the tap is set up, and what goes wrong."""

    refresh: str
    naming: str
    selection: tuple[str, ...] = STREAMS
    page_size: int = 100
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
        self.steps: list[str] = []
        self._pids: SimpleQueue[int] = SimpleQueue()
        self._folder = folder
        self._target = target_of(seed)
        self.steps.append(f"into {self._target.name}")
        self._real = Real(self._target, folder, database)
        self._warehouses: list[tuple[Warehouse, Kept]] = [(self._real, Kept()), (Plain(), Kept())]
        self._log = random.choice([ChangeLog(f"sqlite:///{folder}/changes.db"), None, None])
        if self._log:
            self._log.append([])  # makes it
        self._organisation = Organisation(random, self._on_change, shows_edits=self._log is None)
        self._api = Api(self._organisation, newest_first=random.random() < 0.3)
        self._is_limited = random.random() < 0.3
        self._workers = random.choice([1, 1, 4])
        self._merges = random.random() < 0.3
        # Rows that are appended have other columns after a switch.
        self._switches = self._target.load_method != "append-only" and random.random() < 0.5
        self._paid = Paid()
        self._times = Times()
        self._ahead = time.time() - time.monotonic()
        self._naming = "snake_case"
        self._state: Message | None = None
        # Rows that the state does not know: that their jobs are gone shows only in the times
        # of others, and so not while no job at all is published.
        self._has_unknown_rows = False
        self._requests = 0

    @property
    def summary(self) -> str:
        """What happened, in numbers."""
        runs, jobs = len(self._times.runs), len(self._organisation.jobs)
        return f"{runs} runs, {jobs} jobs, {self._requests} requests, {self._target.name}"

    def _on_change(self, public_ids: set[str], ids: set[str]) -> None:
        if self._log:
            self._log.append(public_ids)
        # A webhook names a publicId, whichever job has it.
        jobs = self._organisation.jobs.values()
        self._paid.forget(ids | {job.id for job in jobs if job.public_id in public_ids})

    def play(self) -> None:
        """Run the history, and check the tables after each run and at the end.

        Raises:
            AssertionError: A check failed; names what happened before.
        """
        with self._explained():
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
                self._sync(Sync(refresh, self._naming, page_size=self.random.choice([3, 100])))
            if self._target.removal != "none" and self._target.load_method == "upsert":
                check_removed(self._real, self._organisation, "jobs")
                check_removed(self._real, self._organisation, "job_details")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except AssertionError as error:
            raise AssertionError("\n".join([*self.steps, str(error)])) from error

    def _any_refresh(self) -> str:
        return self.random.choice(["all", "changed", *(["notified"] if self._log else [])])

    def _random_sync(self) -> Sync:
        random = self.random
        if self._switches and random.random() < 0.3:
            self._naming = {"source": "snake_case", "snake_case": "source"}[self._naming]
        sync = Sync(
            self._any_refresh(),
            self._naming,
            selection=random.choice(SELECTIONS) if random.random() < 0.25 else STREAMS,
            page_size=random.choice([2, 3, 5, 100]),
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
        self.steps.append(f"{sync}")
        if sync.loses_state:
            self._state, self._has_unknown_rows = None, True
        self._ahead += self.random.choice([60.0, 60.0, HOUR, HOUR * 30])
        clock = time.monotonic() + self._ahead
        incidents = self._incidents(sync)
        self._paid.begin(self._state)
        start = time.monotonic()
        with self._api.served(incidents) as base_url:
            status = self._run_tap(sync, base_url, has_stall="stall" in str(incidents))
        end = time.monotonic()
        self._requests += len(self._api.requests)
        self._times.runs.append(Interval(clock, start, end))
        messages = self._messages()
        self.steps[-1] += f" -> {status}, {len(self._api.requests)} requests"
        check_requests(self._api.requests, limited=self._is_limited, is_quiet=sync.is_quiet)
        if sync.is_quiet:
            assert status == 0, self._read("stderr")
            asked = {request.public_id for request in self._api.requests}
            jobs = [job for job in self._organisation.published if job.public_id in asked]
            self._paid.check(jobs, self._state, sync.refresh, sync.naming, clock)
        is_loaded, is_kept = self._load(sync, messages, clock, is_partial=status != 0)
        is_whole = is_loaded and status == 0
        for warehouse, kept in self._warehouses:
            kept.check(warehouse, self._organisation, end)
            check_periods(warehouse, self._organisation, sync.naming, self._times)
        has_jobs = bool(self._organisation.published)
        if sync.is_quiet and is_whole and sync.selection == STREAMS:
            if has_jobs or not self._has_unknown_rows:
                for warehouse, _ in self._warehouses:
                    check_tables(warehouse, self._organisation, sync.naming)
            self._has_unknown_rows &= not (has_jobs and is_kept)
        self._has_unknown_rows |= not (is_whole and is_kept)

    def _incidents(self, sync: Sync) -> dict[int, Callable[[], str | None]]:
        random, most = self.random, 2 * len(self._organisation.published) + 8
        incidents: dict[int, Callable[[], str | None]] = {}
        for _ in range(sync.faults):
            incidents[random.randint(1, most)] = partial(str, random.choice(FAULTS))
        for _ in range(sync.changes):
            incidents[random.randint(1, most)] = self._organisation.change
        if sync.signal:
            incidents[random.randint(1, most)] = partial(self._kill, sync.signal)
        return incidents

    def _kill(self, number: int) -> None:
        self._killed_at = time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(self._pids.get(), number)

    def _run_tap(self, sync: Sync, base_url: str, *, has_stall: bool) -> int:
        config: dict[str, Any] = {
            "api_key": "a-key",
            "base_url": base_url,
            "rate_limit_requests": LIMIT if self._is_limited else 100_000,
            "rate_limit_period_seconds": PERIOD,
            "max_concurrent_requests": self._workers,
            "request_timeout_seconds": 0.5 if has_stall else 30,
            "page_size": sync.page_size,
            "detail_refresh": sync.refresh,
            "column_naming": sync.naming,
        }
        if self._log:
            config["changes_url"] = f"sqlite:///{self._folder}/changes.db"
        files = {"config": config, "catalog": _catalog(sync.naming, sync.selection)}
        if self._state:
            files["state"] = self._state
        options: list[str | Path] = []
        for name, content in files.items():
            options += [f"--{name}", written(self._folder / f"{name}.json", content)]
        self._pids = SimpleQueue()
        with (
            (self._folder / "stdout").open("wb") as stdout,
            (self._folder / "stderr").open("wb") as stderr,
            program(QUICK_TAP, *IMPORTS).start(
                options,
                os.environ | {AHEAD: f"{self._ahead}"},
                folder=self._folder,
                stdout=stdout,
                stderr=stderr,
            ) as run,
        ):
            self._killed_at = math.inf
            self._pids.put(run.pid)
            status = run.wait()
            seconds = time.monotonic() - self._killed_at
            assert seconds < MOST_SECONDS, f"ended {seconds:.1f} seconds after a signal"
        errors = self._read("stderr")
        allowed = {0, 1, *([-signal.SIGKILL] if sync.signal == signal.SIGKILL else [])}
        allowed |= {143, -signal.SIGTERM} if sync.signal == signal.SIGTERM else set()
        assert status in allowed, f"status {status}: {errors}"
        assert "Traceback" not in errors, errors
        assert status != 1 or errors.count("| CRITICAL |") == 1, errors
        return status

    def _read(self, name: str) -> str:
        return (self._folder / name).read_text("utf-8")

    def _messages(self) -> list[Message]:
        """The lines that a target can read: a killed tap may leave a partial line."""
        file = self._folder / "stdout"
        text = file.read_bytes()
        file.write_bytes(text[: text.rfind(b"\n") + 1])
        return read(file)

    def _load(
        self, sync: Sync, messages: list[Message], clock: float, *, is_partial: bool
    ) -> tuple[bool, bool]:
        """Load as many messages as the target takes.

        Returns:
            Whether it took all, and whether the last state is kept.
        """
        if sync.target == "loads nothing":
            return False, False
        if sync.target == "dies in between":
            messages = messages[: self.random.randint(0, len(messages))]
        states = [warehouse.load(messages) for warehouse, _ in self._warehouses]
        if states[0] and sync.target != "loses its state":
            self._paid.note(messages, states[0], sync.naming, clock)
            is_merged = self._merges and is_partial
            self._state = _merged(self._state, states[0]) if is_merged else states[0]
        is_kept = sync.target != "loses its state" and states[0] == states[1]
        return sync.target != "dies in between", is_kept


@cache
def _catalog(naming: str, selection: tuple[str, ...]) -> Message:
    config = {"api_key": "a-key", "base_url": "http://127.0.0.1", "column_naming": naming}
    return select_only(config, *selection)


def _merged(state: Any, newer: Any) -> Any:
    """What Meltano makes of the state of a run that failed: it merges objects key by key."""
    if not isinstance(state, dict) or not isinstance(newer, dict):
        return newer
    return state | {name: _merged(state.get(name), value) for name, value in newer.items()}
