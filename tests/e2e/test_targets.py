"""Four runs into each target: every row, every value and every type is what the API has.

And what a killed run leaves, and the next one repairs.
"""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e.pipeline import options, run, written
from e2e.scenario import FIELDS, Recording, published, record
from e2e.targets import DUCKDB, TARGETS, Target, each, load_and_compare, meltanolabs
from harness import demo, paths
from public_jobs_sandbox.state import Sandbox


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """What the tap wrote in each run, for every target to load."""
    return record(tmp_path_factory.mktemp("tap"))


@each(TARGETS)
def test_every_value_and_type_is_right_after_every_run(
    target: Target, recordings: dict[str, Recording], database: str, tmp_path: Path
) -> None:
    load_and_compare(target, recordings, database, tmp_path)


JOBS = 300
CHECKPOINT_EVERY = 50
DUCKDB_BATCH = 200
HARD = meltanolabs("hard", "public_jobs")


def details(sandbox: Sandbox) -> list[str]:
    """The publicIds of the details that were requested since the last look."""
    asked = [path.removeprefix("/jobs/") for path in paths(sandbox.requests) if "?" not in path]
    sandbox.requests.clear()
    return sorted(asked)


@dataclass
class Pipe:
    """`tap | target`, run after run, each with the last state that the target has passed on."""

    target: Target
    folder: Path
    database: str
    tap: dict[str, Any]

    def load(self) -> None:
        """Run both to their ends, however those come."""
        states = self.folder / "states"
        passed_on = states.read_text("utf-8").splitlines() if states.exists() else []
        # One request at a time: else an early answer could still be in the hands of a thread.
        config = self.tap | {"max_concurrent_requests": 1, "column_naming": "snake_case"}
        given = options(self.folder, config=config, state=json.loads((passed_on or ["{}"])[-1]))
        settings = self.target.settings(self.folder, self.database)
        into = written(self.folder / "target.json", settings)
        tap = shlex.join(map(str, [Path(sys.executable).with_name("tap-public-jobs"), *given]))
        target = shlex.join(map(str, [*self.target.command, "--config", into]))
        run("sh", "-c", f"{tap} | {target} >> {states}", folder=self.folder, PGTZ="UTC")

    def kill(self, process: str) -> None:
        """Kill what has these words in its command, as the kernel does when memory runs out."""
        run("pkill", "-KILL", "-f", process.format(self.folder), folder=self.folder)


def test_duckdb_keeps_a_first_load_that_is_killed_with_the_tap_but_for_a_batch(
    tmp_path: Path,
) -> None:
    """With the settings of meltano.yml: by default, it passes on no state before the end."""
    store = DUCKDB.store(tmp_path, "")
    with demo(JOBS, latency=0.01) as (sandbox, tap):
        pipe = Pipe(DUCKDB, tmp_path, "", tap)
        sandbox.at_request(3 + DUCKDB_BATCH + CHECKPOINT_EVERY, lambda: pipe.kill("{}"))
        pipe.load()
        fetched = details(sandbox)
        assert len(store.rows("job_details")) == DUCKDB_BATCH

        pipe.load()
        again = details(sandbox)
        DUCKDB.assert_holds(store, published(sandbox))

    assert len({*fetched, *again}) == JOBS
    assert len({*fetched} & {*again}) <= DUCKDB_BATCH


def test_a_killed_run_loses_nothing_and_the_next_one_resumes_it(
    database: str, tmp_path: Path
) -> None:
    """On a target that obeys ACTIVATE_VERSION, and so deletes."""
    store = HARD.store(tmp_path, database)
    with demo(JOBS, latency=0.01) as (sandbox, tap):
        pipe = Pipe(HARD, tmp_path, database, tap)
        pipe.load()
        HARD.assert_holds(store, published(sandbox))
        ids = details(sandbox)
        assert len(ids) == JOBS
        gone = ids[:5]
        for public_id in gone:
            sandbox.unpublish(public_id)
        first, *_, last = (job["publicId"] for job in published(sandbox))
        for public_id in (first, last):
            sandbox.edit(public_id, jobTitle="Edited")

        # Three pages, the details of the five jobs that are gone, and two thirds of all others, so
        # that several checkpoints are written. Then the tap is killed.
        number = 3 + 5 + JOBS * 2 // 3
        sandbox.at_request(number, lambda: pipe.kill("^[^ ]*python.*tap-public-jobs .*{}"))
        pipe.load()
        # Only the table whose stream was complete has lost the rows of jobs that are gone.
        assert [len(store.rows(table)) for table in FIELDS] == [JOBS - 5, JOBS]
        assert [len(store.published(table)) for table in FIELDS] == [JOBS - 5, JOBS - 5]
        fetched = {*details(sandbox)} - {*gone}
        assert last not in fetched

        pipe.load()
        HARD.assert_holds(store, published(sandbox))
        again = {*details(sandbox)}

    assert {*ids} - {*gone} - fetched <= again
    assert JOBS - len(gone) - len(again) in {2 * CHECKPOINT_EVERY, 3 * CHECKPOINT_EVERY}
