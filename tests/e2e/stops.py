"""Every stop of a first load into every target, and the run that resumes it.

All rows are right then, and what is fetched again is at most what docs/set-up/targets.md says.
Weekly, because a target takes three to six minutes, and all of them three quarters of an hour:
`uv run pytest -n 0 tests/e2e/stops.py -k target-duckdb`
"""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from e2e.pipeline import environment, installed, options, run, written
from e2e.scenario import published
from e2e.targets import DUCKDB, TARGETS, Target
from emulators.engines import ENGINES, Emulated
from harness import Json, demo, paths
from public_jobs_sandbox.state import Sandbox
from typing_extensions import override

from tap_public_jobs.sync.state_json import load as sync_state

JOBS = 300
# Three pages, and most of the details.
STOPPED_AT = 3 + 260
CHECKPOINT_EVERY = 50
# Answers that the tap has, or waits for, and has not written.
ON_THEIR_WAY = 4
# After how many rows a target passes a state on; others do at the end, or after minutes.
BATCHES = {DUCKDB.name: 200}
# They pass a state on only if no row follows it, as after a signal that the tap can handle.
FORGETFUL = {"target-jsonl"}

TAP = Path(sys.executable).with_name("tap-public-jobs")
WAREHOUSES = [*TARGETS, *(it for it in ENGINES if it.column_naming == "snake_case")]


@contextmanager
def warehouse(target: Target, folder: Path, database: str) -> Iterator[str]:
    """Start what the target writes to; yields its address."""
    emulated = target if isinstance(target, Emulated) else None
    with emulated.emulator(folder) if emulated else nullcontext(database) as address:
        yield address


class Load(ABC):
    """A pipeline of the tap and a target, whose processes get signals.

    Args:
        target: The target.
        folder: For all files.
        address: What the target writes to.
        tap: Settings of the tap.
    """

    def __init__(self, target: Target, folder: Path, address: str, tap: dict[str, Json]) -> None:
        self.folder, self.target = folder, target
        # Its tables hold what the last run wrote, so that run has to be a whole one.
        self.is_overwritten = target.load_method == "overwrite"
        self.tap = tap | {"max_concurrent_requests": 1, "column_naming": "snake_case"}
        self.loader = target.settings(folder, address)

    @abstractmethod
    def run(self) -> None:
        """Run it to its end, however that comes."""

    @abstractmethod
    def kept(self) -> dict[str, Json]:
        """Return the last state that the target has passed on."""

    @abstractmethod
    def processes(self, who: str, number: int) -> list[int]:
        """Return the processes that get a signal; a negative number is a group."""

    def stop(self, who: str, number: int) -> None:
        """Send a signal; if the target loads batches, once it has passed a state of one on."""
        batch = BATCHES.get(self.target.name, 0)
        while len(self.loaded()) < batch - CHECKPOINT_EVERY:
            time.sleep(0.1)
        for process in self.processes(who, number):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def loaded(self) -> set[str]:
        """Return the publicIds of the details that the next run need not fetch."""
        known = {} if self.is_overwritten else self.kept()
        return {job.public_id for job in sync_state(known).jobs.values() if job.fetched_at}


class Pipe(Load):
    """A pipe: `tap | target`."""

    @override
    def run(self) -> None:
        state = {} if self.is_overwritten else self.kept()
        given = options(self.folder, config=self.tap, state=state)
        config = written(self.folder / "target.json", self.loader)
        variables = environment(PGTZ="UTC")
        with (
            (self.folder / "states").open("ab") as states,
            subprocess.Popen([TAP, *given], env=variables, stdout=subprocess.PIPE) as tap,
            subprocess.Popen(
                [*self.target.command, "--config", config],
                cwd=self.folder,
                env=variables,
                stdin=tap.stdout,
                stdout=states,
            ) as target,
        ):
            self._processes = {"tap": tap.pid, "target": target.pid}
            assert tap.stdout
            tap.stdout.close()  # the target alone reads, so that the tap notices if it ends

    @override
    def kept(self) -> dict[str, Json]:
        states = self.folder / "states"
        lines = states.read_text("utf-8").rpartition("\n")[0] if states.exists() else ""
        return dict(json.loads(lines.splitlines()[-1])) if lines else {}

    @override
    def processes(self, who: str, number: int) -> list[int]:
        return [it for name, it in self._processes.items() if who in {name, "both"}]


class Meltano(Load):
    """`meltano run`, with the programs of the tests."""

    @override
    def run(self) -> None:
        tap = self._plugin("tap-public-jobs", [TAP], self.tap)
        tap |= {"capabilities": ["catalog", "state", "discover"]}
        project = {
            "project_id": "stops",
            "send_anonymous_usage_stats": False,
            "default_environment": "dev",
            "environments": [{"name": "dev"}],
            "plugins": {
                "extractors": [tap],
                "loaders": [self._plugin("target", self.target.command, self.loader)],
            },
        }
        written(self.folder / "meltano.yml", project)
        program = installed("meltano~=4.4") / "meltano"
        command = [str(program), "run", "--no-install", "--force"]
        command += ["--full-refresh"] if self.is_overwritten else []
        variables = environment(PGTZ="UTC", MELTANO_CLI_DISABLE_VERSION_CHECK="true")
        command += ["tap-public-jobs", "target"]
        with subprocess.Popen(
            command, cwd=self.folder, env=variables, start_new_session=True
        ) as process:
            self._pid = process.pid
        # If it is killed, the tap and the target end by themselves.
        while run("pgrep", "-f", f"{self.folder}/[.]meltano/run", folder=self.folder).status == 0:
            time.sleep(0.1)

    def _plugin(self, name: str, command: Any, settings: dict[str, Json]) -> dict[str, Json]:
        script = self.folder / f"run-{name}"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n', "utf-8")
        script.chmod(0o755)
        return {
            "name": name,
            "namespace": name.replace("-", "_"),
            "executable": str(script),
            "settings": [{"name": it, "kind": kind_of(value)} for it, value in settings.items()],
            "config": settings,
        }

    @override
    def kept(self) -> dict[str, Json]:
        with closing(sqlite3.connect(self.folder / ".meltano/meltano.db", timeout=60)) as database:
            rows = database.execute("select completed_state, partial_state from state").fetchall()
        states = [json.loads(it).get("singer_state", {}) for row in rows for it in row if it]
        return max(states, key=lambda it: len(json.dumps(it)), default={})

    @override
    def processes(self, who: str, number: int) -> list[int]:
        return [-self._pid if number == signal.SIGINT else self._pid]  # Ctrl-C is for all


def kind_of(value: Json) -> str:
    """The kind of a setting in meltano.yml."""
    kinds = {dict: "object", list: "array", bool: "boolean", int: "integer"}
    return kinds.get(type(value), "string")


def details(sandbox: Sandbox) -> set[str]:
    """The publicIds of the details that were answered since the last look."""
    seen = [it for it in sandbox.requests if it.status == 200]
    sandbox.requests.clear()
    return {it.removeprefix("/jobs/") for it in paths(seen) if "?" not in it}


def repeated_at_most(target: Target, who: str, sent: str) -> int:
    """How many details the next run may fetch again, as docs/set-up/targets.md says."""
    if target.load_method == "overwrite":
        return JOBS  # it has no state
    if who != "tap":
        batch = BATCHES.get(target.name)
        return batch + CHECKPOINT_EVERY + ON_THEIR_WAY if batch else JOBS
    if sent != "KILL":
        return 0
    return JOBS if target.name in FORGETFUL else CHECKPOINT_EVERY + ON_THEIR_WAY


@pytest.mark.parametrize("sent", ["TERM", "INT", "KILL"])
@pytest.mark.parametrize("who", ["tap", "target", "both", "Meltano"])
@pytest.mark.parametrize("target", WAREHOUSES, ids=lambda it: it.name)
def test_the_next_run_completes_a_first_load(
    target: Target, who: str, sent: str, new_database: Callable[[], str], tmp_path: Path
) -> None:
    with warehouse(target, tmp_path, new_database()) as address, demo(JOBS, 0.01) as (sandbox, tap):
        load = (Meltano if who == "Meltano" else Pipe)(target, tmp_path, address, tap)
        number = signal.Signals[f"SIG{sent}"]
        sandbox.at_request(STOPPED_AT, lambda: load.stop(who, number))
        load.run()
        fetched, loaded = details(sandbox), load.loaded()
        gone, edited = sorted(fetched)[:5], sorted(fetched)[5:8]
        for public_id in gone:
            sandbox.unpublish(public_id)
        for public_id in edited:
            sandbox.edit(public_id, jobTitle="Edited")
        load.run()
        again = details(sandbox)
        store = target.store(tmp_path, address)
        for table in ("jobs", "job_details"):
            assert store.published(table) == target.rows(published(sandbox), table)

    lost = fetched - loaded
    assert again == {job["publicId"] for job in published(sandbox)} - loaded | {*edited}
    assert len(lost) <= repeated_at_most(target, who, sent)
