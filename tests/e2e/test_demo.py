"""The first lines of meltano.yml, and the demo, which answers well and leaves nothing behind."""

import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import distributions
from pathlib import Path

import duckdb
import pytest
from e2e.pipeline import REPOSITORY, installed, run, variables
from e2e.scenario import published
from e2e.targets import DUCKDB
from harness import demo
from public_jobs_sandbox.app import JOBS_PATH
from public_jobs_sandbox.meltano import uv_command
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.recruiters import RAISED, RENAMED, REOPENED, RETITLED
from public_jobs_sandbox.weeks import MISSED, NIGHTS, SATURDAY

# The demo runs the Meltano project around its own code, so that is the copy's.
CODE = "import sys; sys.path.insert(0, 'sandbox'); from public_jobs_sandbox.cli import main; main()"
DEMO = [sys.executable, "-c", CODE, "demo"]
PUBLISHED_AT_FIRST = 120
PAID = [job for job in make_jobs(PUBLISHED_AT_FIRST) if job["maxSalary"]]
README = (REPOSITORY / "README.md").read_text("utf-8")
Shell = dict[str, str]
Table = list[list[str]]

# In one worker, which shares the clone with what Meltano has installed there.
pytestmark = pytest.mark.xdist_group("demo")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the changes that are not committed, so that the user's files are left alone."""
    clone = tmp_path_factory.mktemp("clone") / "tap-public-jobs"
    run("git", "clone", "--quiet", REPOSITORY, clone, folder=REPOSITORY).succeeded()
    git = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    for name in run(*git, folder=REPOSITORY).succeeded().output.splitlines():
        if (REPOSITORY / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, clone / name)
        else:
            (clone / name).unlink(missing_ok=True)
    run("git", "add", "--all", folder=clone).succeeded()
    author = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    run("git", *author, "commit", "--quiet", "--allow-empty", "-m", "now", folder=clone).succeeded()
    return clone


def test_the_first_lines_of_meltano_yml_run_in_a_fresh_clone(clone: Path, tmp_path: Path) -> None:
    """They install Meltano for the user, load, and leave nothing that git sees."""
    first_lines = (clone / "meltano.yml").read_text("utf-8").partition("\nrequires_meltano")[0]
    commands = re.findall("^#   (.+)", first_lines, re.MULTILINE)
    assert [it.split()[0] for it in commands] == ["uv", "meltano"]
    programs = tmp_path / "bin"
    uv = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(programs)}
    path = {"PATH": f"{programs}:{Path(*uv_command()).parent}:{os.environ['PATH']}"}

    with demo(5) as (sandbox, settings):
        tap = variables("tap-public-jobs", settings)
        for command in commands:
            run("sh", "-c", command, folder=clone, **uv, **path, **tap).succeeded()
        DUCKDB.assert_holds(DUCKDB.store(clone / "output", ""), published(sandbox))

    assert run("git", "status", "--porcelain", folder=clone).succeeded().output == ""


@pytest.fixture(scope="module")
def shell(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell and a `.env` for another API: with any of these settings a sync would fail."""
    users_files = tmp_path_factory.mktemp("users")  # of their warehouse and state
    theirs = {
        "TAP_PUBLIC_JOBS_API_KEY": "pj_this_key_is_the_users_own",
        "TAP_PUBLIC_JOBS_BASE_URL": "http://127.0.0.1:1",
        "TAP_PUBLIC_JOBS_MAX_CONCURRENT_REQUESTS": "0",
        "TARGET_DUCKDB_FILEPATH": str(users_files / "warehouse.duckdb"),
        "TARGET_DUCKDB_DEFAULT_TARGET_SCHEMA": "theirs",
        "MELTANO_DATABASE_URI": f"sqlite:///{users_files / 'meltano.db'}",
        "MELTANO_ENVIRONMENT": "nowhere",
    }
    in_file = theirs | {"TAP_PUBLIC_JOBS_PAGE_SIZE": "0", "TAP_PUBLIC_JOBS__SELECT": '["!*.*"]'}
    file = clone / ".env"
    file.write_text("".join(f"{name}='{value}'\n" for name, value in in_file.items()), "utf-8")
    yield {"COLUMNS": "200"} | theirs
    file.unlink()


@pytest.fixture(scope="module")
def shown(clone: Path, shell: Shell) -> str:
    """What the demo prints, in a folder where an earlier one was killed while it loaded."""
    output = clone / "output"
    output.mkdir(exist_ok=True)
    with duckdb.connect(str(output / "demo.duckdb")) as earlier:
        earlier.execute("create schema public_jobs; create table public_jobs.jobs (stale int)")
    (output / "demo.duckdb.wal").write_bytes(b"half a change")
    return run(*DEMO, folder=clone, **shell).succeeded().output


def tables(output: str) -> list[Table]:
    """Return the rows of each table that was printed, cell by cell."""
    found = re.findall(r"^ +-+(?: +-+)+\n((?: +\S.*\n)+)", output, flags=re.MULTILINE)
    return [[re.split(r" {2,}", line.strip()) for line in rows.splitlines()] for rows in found]


def test_readme_shows_what_the_demo_prints(shown: str) -> None:
    assert README.partition("```text\n")[2].partition("```")[0].strip() in shown


def test_it_begins_with_what_it_will_do_and_ends_with_the_commands(shown: str) -> None:
    """The first screen ends before the first answer."""
    start = README.partition("## Set it up")[2].partition("```sh\n")[2].partition("```")[0]
    opened, _, _ = shown.partition("\n1. ")

    assert shown.startswith("This demo plays eight weeks of an organisation with 120 jobs")
    # Packages that are new to the machine have lines of their own.
    later = [it for it in opened.splitlines() if "Install" not in it and not it.startswith("  uv ")]
    assert len(later) <= 30, opened
    assert textwrap.indent(start, "  ") in shown
    assert shown.count("git clone") == 1


def test_readme_says_how_much_the_demo_installs(shown: str, clone: Path) -> None:
    """What `uv run` has not: Meltano, the loader and dbt."""
    assert shown
    plugins = [*clone.glob(".meltano/loaders/*/venv/bin/python")]
    plugins += clone.glob(".meltano/utilities/*/venv/bin/python")
    folders = [
        str(packages)
        for python in (installed("meltano~=4.4") / "python", *plugins)
        for packages in python.parent.parent.glob("lib/*/site-packages")
    ]
    files = [file for it in folders for one in distributions(path=[it]) for file in one.files or ()]

    (said,) = re.findall(r"then (\d+) MB more", README)
    assert len(folders) == 3
    assert int(said) == pytest.approx(sum(file.size or 0 for file in files) / 1e6, rel=0.1)


@pytest.fixture(scope="module")
def warehouse(shown: str, clone: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """What the demo leaves behind."""
    assert shown
    with duckdb.connect(str(clone / "output" / "demo.duckdb"), read_only=True) as opened:
        yield opened


def test_eight_weeks_have_a_listing_each_night_but_one(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    """By the clock of the demo, at four o'clock, and the last one today."""
    listings = "select built_listed_at from analytics.nights where built_listings > 0 order by 1"
    times = [it for (it,) in warehouse.execute(listings).fetchall()]
    days = [it.date() for it in times]
    first = days[-1] - timedelta(days=NIGHTS - 1)

    assert days == [first + timedelta(days=it) for it in range(NIGHTS) if it != MISSED]
    assert {(it.hour, it.minute // 10) for it in times[:-1]} == {(4, 0)}
    assert datetime.now(UTC).replace(tzinfo=None) - times[-1] < timedelta(hours=1)


def test_history_has_what_the_organisation_did(warehouse: duckdb.DuckDBPyConnection) -> None:
    """Dated by the nights that found it, whether or not dbt ran on a day of its own."""
    last = warehouse.execute("select max(last_listed_at) from analytics.nights").fetchone()
    assert last
    today = last[0].date()
    nights = [today - timedelta(days=it) for it in reversed(range(NIGHTS))]
    # A night finds what was done the day before.
    worked = [it for it in nights if (it - timedelta(days=1)).weekday() < SATURDAY]

    def dates(question: str) -> list[date]:
        return [it.date() for (it,) in warehouse.execute(question).fetchall()]

    events = "select distinct happened_by from analytics.job_events where event = '{}'"
    moved = f"{events.format('moved')} and field = 'department' and new_value = 'People & Culture'"
    renamed = dates(f"{moved} and is_rename")
    raised = dates(events.format("repriced"))
    titles = dates(f"{events.format('edited')} and field = 'job_title'")

    assert len(worked) == NIGHTS // 7 * 5
    assert renamed == [worked[RENAMED]]
    assert dates(events.format("reopened")) == [worked[REOPENED]]
    assert worked[RAISED] in raised
    # The night after the one without a sync finds what that would have found.
    assert {*raised} <= {*worked, nights[MISSED + 1]}
    assert titles == [worked[RETITLED]]


def test_each_question_has_an_answer(shown: str, warehouse: duckdb.DuckDBPyConnection) -> None:
    """A time to close of every level, and what happened since Monday, each job once per event."""
    _, lengths, events, *_ = tables(shown)
    levels = {job["seniorityLevel"] for job in make_jobs(PUBLISHED_AT_FIRST)}
    last = warehouse.execute("select max(last_listed_at) from analytics.nights").fetchone()
    assert last
    monday = last[0].date() - timedelta(days=last[0].weekday() or 7)
    of_jobs = warehouse.execute(
        "select distinct event, job_key from analytics.job_events where happened_by >= ?", [monday]
    ).fetchall()

    assert {row[0] for row in lengths} == levels
    known = [float(row[-1]) for row in lengths if row[-1] != "most are open"]
    assert all(days > 0 for days in known)
    assert len(known) > len(levels) / 2
    assert {row[0]: int(row[1]) for row in events} == Counter(event for event, _ in of_jobs)


def test_each_spelling_has_its_place(warehouse: duckdb.DuckDBPyConnection) -> None:
    """So that the page counts a city once; remote jobs have none."""
    spellings = "select distinct location, city, is_remote from analytics.job_spells"
    found = warehouse.execute(spellings).fetchall()
    cities = {city for _, city, _ in found}

    assert len(cities) < len(found)
    assert all(city or is_remote for _, city, is_remote in found)


def test_it_says_what_went_wrong_and_asks_only_what_is_new(shown: str) -> None:
    """A night without a sync, a detail that fails for four nights, and no request too many."""
    assert "A night without a sync." in shown
    assert shown.count("The tap ended with 1: ") == 1
    assert "rejected 0." in shown
    assert "Pictures of it: open output/demo.html in a browser." in shown
    (asked,) = re.findall(r"(\d+) requests \(0 rejections, 0 retries\)", shown)
    assert int(asked) < PUBLISHED_AT_FIRST


def test_the_users_key_warehouse_and_state_are_left_alone(shown: str, shell: Shell) -> None:
    assert shell["TAP_PUBLIC_JOBS_API_KEY"] not in shown
    assert [*Path(shell["TARGET_DUCKDB_FILEPATH"]).parent.iterdir()] == []


def test_two_webhooks_cost_the_list_and_one_request_each(clone: Path, shell: Shell) -> None:
    """The list has two pages; the detail of the unpublished job confirms that it is gone.

    That of the edited one shows that details work.
    """
    output = run(*DEMO, "--webhook", folder=clone, **shell).succeeded().output

    (before,), (after,), ((closed, *times),) = tables(output)
    paid, pays = (float(row[2].replace(",", "")) for row in (before, after))
    assert (after[:2], pays) == (before[:2], paid + 10_000)
    assert closed == PAID[1]["jobTitle"].strip()
    assert times == sorted(set(times))
    path = JOBS_PATH
    edited, unpublished = (job["publicId"] for job in PAID[:2])
    assert "The sandbox has sent 2 webhooks." in output
    asked = re.findall(r"^  GET ([^? ]+)\S* (\d+)$", output, flags=re.MULTILINE)
    details = [it for it in asked if it[0] != path]
    assert asked.count((path, "200")) == 2
    assert {(f"{path}/{edited}", "200"), (f"{path}/{unpublished}", "404")} <= {*details}
    assert (len(details), len(asked)) == (2, 4)
