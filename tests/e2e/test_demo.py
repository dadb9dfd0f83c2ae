"""`public-jobs-sandbox demo` shows a newcomer true answers, and leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import uuid
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from e2e import stores
from e2e.pipeline import Run, environment
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import UNDOCUMENTED_FIELDS, make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from queries.warehouse import TABLES, DuckDB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.pipeline import Project
    from public_jobs_sandbox.postings import Job
    from public_jobs_sandbox.state import SeenRequest

REPOSITORY = Path(__file__).parents[2]
# The demo runs the Meltano project around its own code, so that is the copy's.
CODE = "import sys; sys.path.insert(0, 'sandbox'); from public_jobs_sandbox.cli import main; main()"
DEMO = [sys.executable, "-c", CODE, "demo"]
MARK = "PUBLIC_JOBS_TEST_MARK"
USERS_KEY = "pj_this_key_is_the_users_own"

Table = list[list[str]]


@pytest.fixture(scope="module")
def published() -> list[Job]:
    """The jobs that the demo serves."""
    return make_jobs(120)


@pytest.fixture(scope="module")
def users_api() -> Iterator[tuple[str, list[SeenRequest]]]:
    """An API that the user has set up already, and what it was asked."""
    sandbox = Sandbox.demo(jobs=5, options=Options(limited=False))
    with serving(sandbox) as base_url:
        yield base_url, sandbox.requests


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> stores.DuckDB:
    """The user's own."""
    return stores.DuckDB(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="module")
def shell(
    project: Project, warehouse: stores.DuckDB, users_api: tuple[str, list[SeenRequest]]
) -> Iterator[dict[str, str]]:
    """A shell and a `.env` that name the user's own API, warehouse and state."""
    theirs = {
        "TAP_PUBLIC_JOBS_API_KEY": USERS_KEY,
        "TAP_PUBLIC_JOBS_BASE_URL": users_api[0],
        "TAP_PUBLIC_JOBS_MAX_CONCURRENT_REQUESTS": "0",
        "TARGET_DUCKDB_FILEPATH": str(warehouse.file),
        "TARGET_DUCKDB_DEFAULT_TARGET_SCHEMA": "theirs",
        "MELTANO_DATABASE_URI": f"sqlite:///{warehouse.state}",
        "MELTANO_ENVIRONMENT": "nowhere",
    }
    in_file = theirs | {"TAP_PUBLIC_JOBS_PAGE_SIZE": "0", "TAP_PUBLIC_JOBS__SELECT": '["!*.*"]'}
    dotenv = "".join(f"{name}='{value}'\n" for name, value in in_file.items())
    file = project.folder / ".env"
    file.write_text(dotenv, "utf-8")
    yield environment(COLUMNS="200", **theirs, **{MARK: uuid.uuid4().hex})
    file.unlink()


@pytest.fixture(scope="module")
def shown(project: Project, shell: dict[str, str]) -> str:
    """What the demo prints, in a folder where an earlier one was killed while it loaded."""
    output = project.folder / "output"
    output.mkdir(exist_ok=True)
    with duckdb.connect(str(output / "demo.duckdb")) as earlier:
        earlier.execute("create schema public_jobs; create table public_jobs.jobs (stale int)")
    (output / "demo.duckdb.wal").write_bytes(b"half a change")
    return run(project, shell).output


def run(project: Project, shell: dict[str, str], *options: str) -> Run:
    """Run the demo, which must end well."""
    result = subprocess.run(
        [*DEMO, *options],
        cwd=project.folder,
        env=shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return Run(result.returncode, result.stdout)


def demo(project: Project) -> stores.DuckDB:
    """Return the warehouse that the demo fills."""
    warehouse = stores.DuckDB(project.folder)
    warehouse.file = project.folder / "output" / "demo.duckdb"
    return warehouse


def tables(output: str) -> list[Table]:
    """Return the rows of each table that was printed, cell by cell."""
    found: list[Table] = []
    below_header = False
    for line in output.splitlines():
        if re.fullmatch(r" +-+( +-+)+", line):
            found.append([])
            below_header = True
        elif not line.strip():
            below_header = False
        elif below_header:
            found[-1].append(re.split(r" {2,}", line.strip()))
    return found


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "a time", text)


def grouped(jobs: list[Job], key: Callable[[Job], Any]) -> dict[Any, list[Job]]:
    groups: dict[Any, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[key(job)].append(job)
    return groups


def still_running(mark: str) -> list[int]:
    """Return the processes that inherited the mark (on Linux, where the kernel lists them)."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue  # the process has ended, or belongs to someone else
    return found


class TestAnswers:
    """Of the first sync."""

    def test_open_roles_by_department(self, shown: str, published: list[Job]) -> None:
        departments = grouped(published, lambda job: job["department"])
        expected = sorted(
            (-len(jobs), name, len({job["location"] for job in jobs}))
            for name, jobs in departments.items()
        )
        assert tables(shown)[0] == [
            [name, str(-minus_count), str(places)] for minus_count, name, places in expected
        ]

    def test_is_what_the_readme_shows(self, shown: str) -> None:
        """But for the times, which are those of the run."""
        readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
        text = readme.partition("```text\n")[2].partition("```")[0]
        first, last = text.strip().split("\n\n5. ")

        assert first in shown
        assert f"5. {without_times(last)}" in without_times(shown)

    def test_salaries_by_seniority_and_currency(self, shown: str, published: list[Job]) -> None:
        in_currency = [job for job in published if job["currency"] in {"EUR", "USD"}]
        ranges = sorted(
            (
                currency,
                min(job["minSalary"] for job in jobs),
                max(job["maxSalary"] for job in jobs),
                level,
                len(jobs),
            )
            for (currency, level), jobs in grouped(
                in_currency, lambda job: (job["currency"], job["seniorityLevel"])
            ).items()
        )
        assert tables(shown)[1] == [
            [currency, level, str(count), f"{low:,.2f}", f"{high:,.2f}"]
            for currency, low, high, level, count in ranges
        ]

    def test_most_frequent_knockout_questions(self, shown: str, published: list[Job]) -> None:
        questions = [item for job in published for item in job["knockoutQuestions"]]
        expected = sorted(
            (-len(items), text, sum(item["required"] for item in items))
            for text, items in grouped(questions, lambda item: item["question"]).items()
        )
        assert tables(shown)[2] == [
            [text, str(-minus_count), str(required)] for minus_count, text, required in expected[:5]
        ]

    def test_undocumented_fields(self, shown: str, published: list[Job]) -> None:
        table = tables(shown)[3]
        example = min(published, key=lambda job: str(job["publicId"]))
        assert [row[:2] for row in table] == [[name, "120"] for name in sorted(UNDOCUMENTED_FIELDS)]
        for name, _, kind, text_shown in table:
            value = example[name]
            assert kind == ("ARRAY" if isinstance(value, list) else "VARCHAR")
            text = value[0] if isinstance(value, list) else " ".join(value.split())
            assert text[:40] in text_shown

    def test_shows_the_throttle_at_work(self, shown: str) -> None:
        assert "at up to 60 requests per second" in shown
        assert "The sandbox counted 122 requests and rejected 0." in shown

    def test_keeps_to_itself(
        self,
        shown: str,
        warehouse: stores.DuckDB,
        users_api: tuple[str, list[SeenRequest]],
    ) -> None:
        """The user's key, API, warehouse and state are not touched."""
        base_url, requests = users_api
        assert USERS_KEY not in shown
        assert base_url not in shown
        assert requests == []
        assert not warehouse.file.exists()
        assert not warehouse.state.exists()

    @pytest.mark.usefixtures("shown")
    def test_leaves_no_process_behind(self, shell: dict[str, str]) -> None:
        assert still_running(shell[MARK]) == []


def tenths(interval: dt.timedelta) -> float:
    """Round to tenths of a second as DuckDB does, halves up; Python's format would not always."""
    return math.floor(interval.total_seconds() * 10 + 0.5) / 10


class TestAnswersOverTime:
    """Of four syncs, by what each listing showed."""

    def test_open_roles_at_each_sync(
        self, shown: str, project: Project, published: list[Job]
    ) -> None:
        rows = demo(project).rows("job_publications")
        syncs = sorted({row["first_seen_at"] for row in rows})
        # Roles that were closed, in the order of the syncs that first did not show them.
        closed = [sum(row["unpublished_at"] == sync for row in rows) for sync in syncs]
        opened = [sum(row["first_seen_at"] == sync for row in rows) for sync in syncs]
        assert (opened, closed) == ([len(published), 4, 25, 6], [0, 18, 6, 20])

        found = tables(shown)[4]
        assert [row[:4] for row in found] == [
            [f"{sync:%Y-%m-%d %H:%M:%S}", *counts]
            for sync, counts in zip(
                syncs,
                [("120", "0", "0"), ("106", "4", "18"), ("125", "25", "6"), ("111", "6", "20")],
                strict=True,
            )
        ]
        assert [row[4].count("█") for row in found] == [24, 21, 25, 22]

    def test_how_long_roles_were_open_that_opened_and_closed_between_syncs(
        self, shown: str, project: Project
    ) -> None:
        titles = {row["id"]: row["job_title"] for row in demo(project).rows("jobs")}
        expected = [
            [
                titles[row["id"]],
                f"{tenths(row['last_seen_at'] - row['first_seen_at']):.1f}0",
                f"{tenths(row['unpublished_at'] - row['opened_after']):.1f}0",
            ]
            for row in demo(project).rows("job_publications")
            if row["unpublished_at"] and row["opened_after"]
        ]
        assert len(expected) == 4
        assert sorted(tables(shown)[5]) == sorted(expected)

    def test_the_later_syncs_fetch_the_list_and_what_is_new_or_gone(self, shown: str) -> None:
        asked = re.findall(r"(\d+) requests \(0 rejections, 0 retries\)", shown)
        assert list(map(int, asked)) == [122, 2 + 4 + 18, 2 + 25 + 6, 2 + 6 + 20]


@pytest.fixture(scope="module")
def webhook_demo(project: Project, shell: dict[str, str], shown: str) -> str:
    """What the demo of webhooks prints, once the plugins are installed."""
    assert shown
    return run(project, shell, "--webhook").output


def test_an_edited_job_has_its_new_salary(webhook_demo: str) -> None:
    (before,), (after,), _ = tables(webhook_demo)

    assert before[:2] == after[:2]
    paid, pays = (float(row[2].replace(",", "")) for row in (before, after))
    assert pays == paid + 10_000


def test_an_unpublished_job_is_reported_as_closed_between_the_two_syncs(
    webhook_demo: str, published: list[Job]
) -> None:
    *_, closed = tables(webhook_demo)

    ((title, closed_after, closed_by),) = closed
    assert title == published[1]["jobTitle"]
    first, second = (dt.datetime.fromisoformat(time) for time in (closed_after, closed_by))
    assert first < second


def test_two_changes_cost_the_list_and_one_request_each(
    webhook_demo: str, published: list[Job]
) -> None:
    """The list has two pages; the detail of the unpublished job confirms that it is gone."""
    asked = re.findall(r"^  GET ([^? ]+)\S* (\d+)$", webhook_demo, flags=re.MULTILINE)

    path = "/api/public/v1/jobs"
    edited, unpublished = (job["publicId"] for job in published[:2])
    assert "The sandbox has sent 2 webhooks." in webhook_demo
    assert "Requests of this run, and the answers: 4\n" in webhook_demo
    assert sorted(asked) == sorted(
        [
            (path, "200"),
            (path, "200"),
            (f"{path}/{edited}", "200"),
            (f"{path}/{unpublished}", "404"),
        ]
    )


@pytest.mark.usefixtures("webhook_demo")
def test_the_demo_of_webhooks_leaves_no_process_behind(shell: dict[str, str]) -> None:
    assert still_running(shell[MARK]) == []


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("table", TABLES)
def test_each_table_has_one_row_for_each_job_that_was_published(
    project: Project, published: list[Job], table: str
) -> None:
    ids = [row["id"] for row in demo(project).rows(table)]
    assert len(ids) == len(set(ids)) == 120 + 4 + 25 + 6
    assert {job["id"] for job in published} < set(ids)


@pytest.mark.usefixtures("shown")
@pytest.mark.parametrize("table", TABLES)
def test_its_columns_are_those_that_the_queries_are_tested_with(
    project: Project, table: str
) -> None:
    with duckdb.connect(str(demo(project).file), read_only=True) as database:
        columns = database.execute(
            "select column_name, lower(data_type) from information_schema.columns "
            "where table_schema = 'public_jobs' and table_name = ?",
            [table],
        ).fetchall()
    assert dict(columns) == {name: DuckDB.types[kind] for name, kind in TABLES[table].items()}


@contextmanager
def started(project: Project, shell: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A demo that is fetching details."""
    with subprocess.Popen(
        DEMO, cwd=project.folder, env=shell, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert any("Fetching 120 of 120 details" in line for line in process.stdout)
        yield process


def handles(mark: str) -> dict[int, int]:
    """Return a handle of each process that inherited the mark, by its number."""
    found = {}
    for pid in still_running(mark):
        with suppress(ProcessLookupError):  # it has ended since it was found
            found[pid] = os.pidfd_open(pid)
    return found


def has_ended(handle: int) -> bool:
    """Wait for the end of a process."""
    ready, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    return bool(ready)


@pytest.mark.usefixtures("shown")
def test_ctrl_c_ends_meltano_and_everything_that_it_started(
    project: Project, shell: dict[str, str]
) -> None:
    mark = {MARK: uuid.uuid4().hex}
    with started(project, shell | mark) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 1

    # A killed process is listed until a processor has time for its end.
    assert all(map(has_ended, handles(mark[MARK]).values()))
    assert still_running(mark[MARK]) == []


@pytest.mark.parametrize(
    ("sign", "status"), [(signal.SIGINT, 1), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_every_process_of_a_run_that_would_go_on_for_ever(
    project: Project,
    shell: dict[str, str],
    tmp_path: Path,
    sign: signal.Signals,
    status: int,
) -> None:
    line = '{"name": "tap-public-jobs", "event": "Fetching 120 of 120 details"}'
    uv = executable(tmp_path / "uv", f"sleep 1000 &\n(sleep 1000 & echo '{line}'; wait) &\nwait")
    mark = {MARK: uuid.uuid4().hex}
    with started(project, shell | mark | {"UV": str(uv)}) as process:
        started_by_it = handles(mark[MARK])
        os.close(started_by_it.pop(process.pid))
        process.send_signal(sign)
        assert process.wait(timeout=60) == status

    assert len(started_by_it) >= 3
    assert all(map(has_ended, started_by_it.values()))


def executable(file: Path, script: str) -> Path:
    file.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    file.chmod(0o755)
    return file


def test_without_uv_one_line_says_what_is_missing(
    project: Project, shell: dict[str, str], tmp_path: Path
) -> None:
    result = subprocess.run(
        DEMO,
        cwd=project.folder,
        env=shell | {"UV": "", "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        "Error: uv is not found, and Meltano runs with it: see https://docs.astral.sh/uv/ and "
        "retry.\n"
    )


CANNOT_INSTALL = (
    "Error: Meltano or its plugins could not be installed: check the network, which a first run "
    "needs, and retry.\n"
)
SYNC_FAILED = "Error: The sync failed. The last lines above say why.\n"


def test_without_a_network_one_line_says_what_to_do(
    project: Project, shell: dict[str, str], tmp_path: Path
) -> None:
    result = subprocess.run(
        DEMO,
        cwd=project.folder,
        # Without the tools that the user has installed, of which Meltano may be one.
        env=shell
        | {
            "UV_OFFLINE": "1",
            "UV_CACHE_DIR": str(tmp_path),
            "UV_TOOL_DIR": str(tmp_path / "tools"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "the network was disabled" in result.stdout
    assert result.stderr == CANNOT_INSTALL


@pytest.mark.parametrize(
    ("log", "error"),
    [
        pytest.param(
            ["Installation failed. Command failed.", "Running job with name 'x'", "No target"],
            CANNOT_INSTALL,
            id="a plugin is missing",
        ),
        pytest.param(
            ["Installed 2/2 plugins", "Running job with name 'x'", "No space left on device"],
            SYNC_FAILED,
            id="the target cannot write",
        ),
    ],
)
def test_a_failure_shows_the_whole_log_and_a_remedy(
    log: list[str],
    error: str,
    project: Project,
    shell: dict[str, str],
    tmp_path: Path,
) -> None:
    lines = "\n".join(json.dumps({"event": event, "level": "info"}) for event in log)
    uv = executable(tmp_path / "uv", f"cat <<'END'\n{lines}\nEND\nexit 1")
    result = subprocess.run(
        DEMO,
        cwd=project.folder,
        env=shell | {"UV": str(uv)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    _, _, shown = result.stdout.partition("All that Meltano said:\n")
    assert [line.split("  ")[-1] for line in shown.splitlines()] == log
    assert result.stderr == error
