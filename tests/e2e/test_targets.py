"""Four runs into each target: every row, every value and every type is what the API has.

And Meltano into PostgreSQL with hard deletes: what a killed run leaves, and the next one repairs.
"""

import json
import shlex
import sys
from pathlib import Path

import pytest
from e2e.pipeline import REPOSITORY, MeltanoProject, installed, options, run, variables, written
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
TARGET = meltanolabs("hard", "public_jobs")


def details(sandbox: Sandbox) -> list[str]:
    """The publicIds of the details that were requested since the last look."""
    asked = [path.removeprefix("/jobs/") for path in paths(sandbox.requests) if "?" not in path]
    sandbox.requests.clear()
    return sorted(asked)


def test_duckdb_keeps_a_first_load_that_is_killed_with_the_tap_but_for_a_batch(
    tmp_path: Path,
) -> None:
    """With the settings of meltano.yml: by default, it passes on no state before the end."""
    store = DUCKDB.store(tmp_path, "")
    target = installed(DUCKDB.requirements) / DUCKDB.executable
    config = written(tmp_path / "target.json", DUCKDB.settings(tmp_path, ""))
    states = tmp_path / "states"
    with demo(JOBS, latency=0.01) as (sandbox, tap):
        command = f"{Path(sys.executable).parent}/tap-public-jobs"
        settings = {"max_concurrent_requests": 1, "column_naming": "snake_case"}
        given = options(tmp_path, config=tap | settings)

        def load(*state: str | Path) -> None:
            shell = f"{shlex.join(map(str, [command, *given, *state]))} | {target} -c {config}"
            run("sh", "-c", f"{shell} >> {states}", folder=tmp_path)

        sandbox.at_request(
            3 + DUCKDB_BATCH + CHECKPOINT_EVERY,
            lambda: run("pkill", "-KILL", "-f", str(tmp_path), folder=tmp_path),
        )
        load()
        fetched = details(sandbox)
        acknowledged = json.loads(states.read_text("utf-8").splitlines()[-1])
        assert len(store.rows("job_details")) == DUCKDB_BATCH

        load("--state", written(tmp_path / "state.json", acknowledged))
        again = details(sandbox)
        DUCKDB.assert_holds(store, published(sandbox))

    assert len({*fetched, *again}) == JOBS
    assert len({*fetched} & {*again}) <= DUCKDB_BATCH


def test_a_killed_run_loses_nothing_the_next_resumes_it_and_a_refused_key_is_one_line(
    project: MeltanoProject, database: str, tmp_path: Path
) -> None:
    store = TARGET.store(tmp_path, database)
    with demo(JOBS, latency=0.01) as (sandbox, tap):
        settings = {
            # One request at a time: else an early answer could still be in the hands of a thread.
            **variables("tap-public-jobs", tap | {"max_concurrent_requests": 1}),
            **variables("target-postgres", TARGET.settings(tmp_path, database)),
            "MELTANO_DATABASE_URI": f"sqlite:///{tmp_path / 'meltano.db'}",
        }
        project.meltano("target-postgres", **settings).succeeded()
        TARGET.assert_holds(store, published(sandbox))
        ids = details(sandbox)
        assert len(ids) == JOBS
        gone = ids[:5]
        for public_id in gone:
            sandbox.unpublish(public_id)
        first, *_, last = (job["publicId"] for job in published(sandbox))
        for public_id in (first, last):
            sandbox.edit(public_id, jobTitle="Edited")

        # Three pages, the details of the five jobs that are gone, and two thirds of all others. At
        # most 64 of them are on their way, so that two checkpoints are written.
        # Then the tap is killed, as the kernel does when memory runs out.
        kill = ("pkill", "-KILL", "-f", f"{project.folder}/.*/tap-public-jobs --config")
        sandbox.at_request(3 + 5 + JOBS * 2 // 3, lambda: run(*kill, folder=tmp_path))
        assert project.meltano("target-postgres", **settings).status != 0
        # Only the table whose stream was complete has lost the rows of jobs that are gone.
        assert [len(store.rows(table)) for table in FIELDS] == [JOBS - 5, JOBS]
        assert [len(store.published(table)) for table in FIELDS] == [JOBS - 5, JOBS - 5]
        fetched = {*details(sandbox)} - {*gone}
        assert last not in fetched

        project.meltano("target-postgres", **settings).succeeded()
        TARGET.assert_holds(store, published(sandbox))
        again = {*details(sandbox)}
        assert {*ids} - {*gone} - fetched <= again
        assert JOBS - len(gone) - len(again) in {2 * CHECKPOINT_EVERY, 3 * CHECKPOINT_EVERY}

        sandbox.revoke(sandbox.key)
        refused = project.meltano("target-postgres", **settings)

    assert [request.status for request in sandbox.requests] == [401]
    assert refused.status != 0
    (line,) = [line for line in refused.output.splitlines() if "refused the key (401)" in line]
    assert "critical" in line
    assert "Settings → Integrations → API keys" in line
    assert "Traceback" not in refused.output
    assert sandbox.key not in refused.output
    # Without a project_id, Meltano would write one and format the whole file.
    original = (REPOSITORY / "meltano.yml").read_text("utf-8")
    assert (project.folder / "meltano.yml").read_text("utf-8") == original
