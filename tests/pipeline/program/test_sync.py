"""`sync`: what is loaded and built, and what the last lines say."""

import shutil
from pathlib import Path

import pytest
from stand_ins import CASES, ProjectAtWork

LOAD, BUILD = "run", "invoke dbt-duckdb:build"


@pytest.mark.parametrize(
    ("load", "fails", "status", "builds", "says"), CASES["syncs"].values(), ids=CASES["syncs"]
)
def test_it_builds_what_was_loaded_and_ends_with_what_happened(
    project: ProjectAtWork, load: str, fails: str, status: int, builds: bool, says: str
) -> None:
    ended, called, said = project.run("sync", LOADS=load, FAILS=fails)

    assert (ended, called) == (status, [LOAD, BUILD] if builds else [LOAD])
    assert said.startswith(says)
    assert ("Correct it" in said) is (
        status == 1 and load not in ("incomplete", "killed", "missing")
    )
    assert project.heard == []  # somebody is looking
    assert Path("output/warehouse-copy.duckdb").exists() == (builds and fails == "none")


def test_it_fetches_the_details_that_the_project_or_whoever_calls_it_says(
    project: ProjectAtWork,
) -> None:
    """Nightly and frequent runs with webhooks have modes of their own: see test_schedule.py."""
    for webhooks in (False, True):
        project.answer(webhooks=webhooks)
        assert project.run("sync", LOADS="done")[1] == [LOAD, BUILD]
        variables = {"LOADS": "done", "TAP_PUBLIC_JOBS_DETAIL_REFRESH": "all"}
        assert project.run("sync", **variables)[1] == [f"all {LOAD}", BUILD]


def test_it_says_where_the_tables_of_a_shared_database_are(project: ProjectAtWork) -> None:
    project.answer(warehouse="postgres")

    said = project.run("sync", LOADS="done")[2]

    assert said.endswith("\nAsk them: select * from acme_jobs_analytics.open_jobs")


# What dbt writes about a test that warns.
NO_DETAIL = """\
\x1b[0m04:00:00  8 of 9 WARN 1040 open_jobs_have_details ...... [\x1b[33mWARN 1040\x1b[0m in 0.67s]
public_jobs: 25 models success, 1 tests warn
\x1b[0m04:00:00  [\x1b[33mWARNING\x1b[0m]: in test open_jobs_have_details (tests/open_jobs.sql)
\x1b[0m04:00:00  [\x1b[33mWARNING\x1b[0m]: Got 1040 results, configured to warn if != 0
"""


def test_it_warns_of_open_jobs_without_a_detail(project: ProjectAtWork) -> None:
    def warnings() -> list[str]:
        project.run("sync", LOADS="done")
        return [it for it in project.output.splitlines() if it.startswith("Warning: ")]

    assert warnings() == []
    project.write("built", NO_DETAIL)
    (details,) = warnings()
    assert details.startswith("Warning: 1,040 open jobs have no detail. ")
    assert "TAP_PUBLIC_JOBS_DETAIL_REFRESH=all ./sync" in details


FILE, COPY = Path("output/warehouse.duckdb"), Path("output/warehouse-copy.duckdb")


def test_it_begins_no_file_anew_while_the_copy_or_the_state_is_there(
    project: ProjectAtWork,
) -> None:
    """Whose next build would replace the copy, and its details would be those of the lost file."""
    shutil.rmtree("output")
    copy, _ = project.run("sync", LOADS="done")[2].splitlines()  # the stand-in makes no database
    assert copy == f"{COPY} could not be written: No such file or directory"

    state = "prod:tap-public-jobs-to-target-duckdb:acme_jobs"
    anew = f"To begin anew: rm -f {COPY}; .venv/bin/meltano state clear --force {state}"
    restore = f"{FILE} is missing, with all history. To restore it: cp "
    project.write(f"states/{state}", "[1]")
    project.write(str(COPY), "rows")
    for backup in (str(COPY), "BACKUP"):
        assert project.run("sync", LOADS="done")[:2] == (1, [])
        assert project.errors == f"{restore}{backup} {FILE}. {anew}\n"
        assert project.run("sync", "--scheduled", LOADS="done")[:2] == (1, [])
        assert project.heard[0][1].startswith(restore)
        assert COPY.exists() is (backup != "BACKUP")
        COPY.unlink(missing_ok=True)

    Path("states", state).unlink()
    assert project.run("sync", LOADS="done")[1] == [LOAD, BUILD]
