"""`sync`: what is loaded and built, and what the last lines say."""

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


def warnings(project: ProjectAtWork, load: str) -> list[str]:
    project.run("sync", LOADS=load)
    return [it for it in project.output.splitlines() if it.startswith("Warning: ")]


def test_it_warns_of_what_worked_and_was_not_meant(project: ProjectAtWork) -> None:
    """Details that are missing, a setting without effect, and lines of an update."""
    assert warnings(project, "done") == []

    project.write("built", NO_DETAIL)
    project.write("meltano.yml.new", "")
    project.write("schedule/crontab.new", "")
    for name in ("output/warehouse-copy.new", ".venv/lib/a.new"):  # of the program
        project.write(name, "")
    setting, details, *files = warnings(project, "warned")

    assert setting.startswith("Warning: TAP_PUBLIC_JOBS_PAGESIZE has no effect: did you mean ")
    assert details.startswith("Warning: 1,040 open jobs have no detail. ")
    assert "TAP_PUBLIC_JOBS_DETAIL_REFRESH=all ./sync" in details
    assert sorted(it.split()[1] for it in files) == ["meltano.yml.new", "schedule/crontab.new"]


def test_what_an_update_left_is_named_by_the_failure_and_at_set_up(project: ProjectAtWork) -> None:
    """Definitions that only half belong together install, and their builds fail."""
    project.write("plugins.yml.new", "")

    said = project.run("sync", LOADS="done", FAILS="build")[2]

    left = "no space plugins.yml.new is not merged, which may be why."
    assert said.startswith(f"The build failed: Database Error in model open_jobs {left}\n")
    project.run("setup", UV="true")
    assert project.output.startswith("Warning: plugins.yml.new has the lines of an update that ")


def test_it_fills_a_database_anew(project: ProjectAtWork) -> None:
    """With all details, until a load is complete: the state knows those of the lost database."""
    for file in Path("output").iterdir():
        file.unlink()
    Path("output").rmdir()
    assert project.run("sync", LOADS="incomplete")[:2] == (1, [f"all {LOAD}", BUILD])
    project.write("output/warehouse.duckdb", "some rows")
    assert project.run("sync", LOADS="refused")[:2] == (1, [f"all {LOAD}"])
    assert project.run("sync", LOADS="done")[:2] == (0, [f"all {LOAD}", BUILD])
    assert project.run("sync", LOADS="done")[:2] == (0, [LOAD, BUILD])

    Path("output/warehouse.duckdb").unlink()
    copy, _ = project.run("sync", LOADS="done")[2].splitlines()  # the stand-in makes no database
    assert copy == "output/warehouse-copy.duckdb could not be written: No such file or directory"
