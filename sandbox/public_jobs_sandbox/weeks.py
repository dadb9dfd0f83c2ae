"""Eight weeks of an organisation and of its nightly syncs, by a clock that moves.

The tap, the target and dbt are the real ones. The tap and the sandbox read the clock, which stands
at four o'clock when a night begins, goes on as any clock does, and ends today. dbt takes the times
of history from what the tap writes, so it needs no clock.

Nobody works at weekends, whichever day is today. What happens is planned by working days, of which
eight weeks always have forty and four weeks twenty, so that each day's demo has the same numbers.
"""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Self

import click

from public_jobs_sandbox.meltano import REPOSITORY, SCHEMA
from public_jobs_sandbox.postings import Job, locations, make_jobs, renamed
from public_jobs_sandbox.state import Sandbox, SeenRequest
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.tap import TapPublicJobs

# The last one is today.
NIGHTS = 56
# As many as are published in all of them.
MOST_JOBS = 1000
DAYS, SATURDAY = 7, 5
# What happens on one working day alone, counted from 0.
CLOSED, REOPENED, RENAMED, RETITLED, RAISED, QUARTER_ENDS = 6, 16, 13, 24, 29, 34
# The scheduler does not run in one night, and the detail of the retitled job fails in some.
MISSED, FAILING_NIGHTS = 26, 4
# How many of the latest jobs stay open.
YOUNGEST = 15


class Clock:
    """A clock that is set when a night begins, and goes on by itself."""

    def __init__(self) -> None:
        self._today = datetime.now(UTC).replace(hour=4, minute=0, second=0, microsecond=0)
        self._ahead = 0.0

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time() + self._ahead

    def begin(self, night: int) -> None:
        """Go to four o'clock of a night; the last one is now."""
        start = self._start(night)
        self._ahead = start.timestamp() - time.time() if night < NIGHTS - 1 else 0.0

    def follows_a_working_day(self, night: int) -> bool:
        """Return whether the day before a night is none of a weekend."""
        return (self._start(night) - timedelta(days=1)).weekday() < SATURDAY

    def _start(self, night: int) -> datetime:
        return self._today - timedelta(days=NIGHTS - 1 - night)

    def wait(self, seconds: float) -> None:
        """Let time pass at once."""
        self._ahead += seconds


class Recruiters:
    """What recruiters do in the portal, the same in each demo."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._random = Random(11)  # noqa: S311 - a story, not secrets
        self._at_first = {*sandbox.organisation.postings}
        self._new = (job for job in make_jobs(MOST_JOBS) if job["publicId"] not in self._at_first)
        self._returns = self._any()
        self._fails, self._nights_failing = "", 0
        self._rename: Callable[[Job], Job] = lambda _: {}
        self._days = count()
        sandbox.fail_next("http_400", times=None, path=self._is_failing)

    def end_night(self) -> None:
        """Count the nights in which a detail fails."""
        self._nights_failing = max(0, self._nights_failing - 1)

    def work(self) -> str:
        """Make the changes of a working day, and return what the demo says of them."""
        self._work()
        day = next(self._days)
        if day == CLOSED:
            self._sandbox.unpublish(self._returns["publicId"])
        if day == REOPENED:
            self._sandbox.publish(self._returns["publicId"])
        if day == QUARTER_ENDS:
            self._close(9)
        if day == RAISED:
            for job in (it for it in self._published() if it["department"] == "Sales"):
                self._raise_pay(job["publicId"], 1.04)
        if day == RETITLED:
            job = self._published()[0]
            self._sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle'].strip()} (all levels)")
            self._fails, self._nights_failing = job["publicId"], FAILING_NIGHTS
        if day == RENAMED:
            self._rename = renamed("People", "People & Culture")
            self._sandbox.edit_all(self._rename)
            return "The department People is now called People & Culture."
        return ""

    def _work(self) -> None:
        """Open, close and reprice a few."""
        for _ in range(self._random.choice((0, 1, 2, 2, 3, 5))):
            self._open()
        self._close(self._random.choice((0, 1, 1, 2, 2, 4)))
        self._raise_pay(self._any()["publicId"], self._random.choice((1.03, 1.05, 1.08)))

    def _is_failing(self, request: SeenRequest) -> bool:
        return self._nights_failing > 0 and request.path.endswith(f"/{self._fails}")

    def _published(self) -> list[Job]:
        return [it.job for it in self._sandbox.organisation.published()]

    def _any(self) -> Job:
        """One of the older half, but not the first, whose detail is to fail."""
        jobs = self._published()
        return self._random.choice(jobs[1 : len(jobs) // 2])

    def _open(self) -> None:
        """Half of what is new is in two departments, which grow."""
        grows = self._random.random() < 0.5  # noqa: PLR2004
        for job in self._new:
            if job["department"] in {"Engineering", "Operations"} or not grows:
                self._sandbox.publish(job | self._rename(job))
                return

    def _close(self, number: int) -> None:
        """Close some, of which half have opened since the first night: their time is known."""
        for _ in range(number):
            opened = [it for it in self._published() if it["publicId"] not in self._at_first]
            known = opened[:-YOUNGEST]
            is_known = known and self._random.random() < 0.5  # noqa: PLR2004
            job = self._random.choice(known) if is_known else self._any()
            self._sandbox.unpublish(job["publicId"])

    def _raise_pay(self, public_id: str, factor: float) -> None:
        job = self._sandbox.organisation.postings[public_id].job
        if job["maxSalary"]:
            digits = -2 if job["salaryPeriod"] == "year" else 2
            amounts = {it: round(job[it] * factor, digits) for it in ("minSalary", "maxSalary")}
            self._sandbox.edit(public_id, **amounts)


class Plugin:
    """A plugin that Meltano has installed, run by `forks.py`.

    Args:
        kind: What `forks.py` calls it.
        folder: Where Meltano has installed it.
        variables: Its environment.
        log: Where its log goes.
    """

    def __init__(self, kind: str, folder: str, variables: dict[str, str], log: Path) -> None:
        python = REPOSITORY / ".meltano" / folder / "venv" / "bin" / "python"
        self._name, self._log = Path(folder).name, log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603  # no user input
                [python, Path(__file__).with_name("forks.py"), kind],
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def run(self, *arguments: str, given: Path = Path(os.devnull)) -> None:
        """Run it with a file as its input.

        Raises:
            click.ClickException: It failed.
        """
        question, answers = self._process.stdin, self._process.stdout
        if question and answers:
            question.write(json.dumps([str(given), *arguments]) + "\n")
            question.flush()
            if answers.readline().strip() == "0":
                return
        message = f"{self._name} failed:\n{self._log.read_text('utf-8', 'replace')[-3000:]}"
        raise click.ClickException(message)


def tap_at(moving: Clock) -> type[TapPublicJobs]:
    """Return the tap with another clock; nothing else differs."""

    class TapAtAnotherTime(TapPublicJobs):
        """Singer tap for the Public Jobs API, at another time."""

        clock: Callable[[], float] = staticmethod(moving.now)
        sleep: Callable[[float], object] = staticmethod(moving.wait)

    return TapAtAnotherTime


def sync(
    tap: type[TapPublicJobs], config: dict[str, Any], state: dict[str, Any], messages: Path
) -> str:
    """Run the tap into a file; returns what is missing, if anything is."""
    handlers = {it: signal.getsignal(it) for it in (signal.SIGINT, signal.SIGTERM)}
    try:
        with messages.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            tap(config=config, state=state, parse_env_config=False).sync_all()
    except PublicJobsError as error:
        return str(error)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return ""


def copy_transform(folder: Path) -> Path:
    """Copy the dbt project, and fill its seed of locations as a user would."""
    shutil.copytree(REPOSITORY / "pipeline" / "transform", folder)
    (folder / "seeds" / "public_jobs__locations.csv").write_text(locations(), "utf-8")
    return folder


class DemoWarehouse:
    """The DuckDB file of the demo: what loads it, and what builds in it.

    Args:
        variables: The environment.
        transform: The dbt project.
        folder: For logs and settings.
    """

    def __init__(self, variables: dict[str, str], transform: Path, folder: Path) -> None:
        shell = variables | {
            "DBT_PROJECT_DIR": str(transform),
            "DBT_PROFILES_DIR": str(transform),
            "DBT_TARGET": "duckdb",
            # Where Meltano has dbt look for what it has parsed.
            "DBT_TARGET_PATH": str(REPOSITORY / ".meltano" / "dbt" / "duckdb"),
            "DBT_LOG_PATH": str(folder),
            # Nobody reads them.
            "DBT_LOG_LEVEL_FILE": "none",
            "DBT_WRITE_JSON": "false",
        }
        self._config = folder / "target.json"
        filepath = variables["TARGET_DUCKDB_FILEPATH"]
        config = {"filepath": filepath, "default_target_schema": SCHEMA}
        self._config.write_text(json.dumps(config), "utf-8")
        self._target = Plugin("target", "loaders/target-duckdb", variables, folder / "target.txt")
        self._dbt = Plugin("dbt", "utilities/dbt-duckdb", shell, folder / "dbt.txt")
        # A first build makes the views that a snapshot reads.
        self._build = ["build", "--exclude-resource-type", "test", "unit_test"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._target.close()
        self._dbt.close()

    def load(self, messages: Path) -> None:
        """Load what a run has written, and record it."""
        self._target.run("--config", str(self._config), given=messages)
        self._dbt.run(*self._build)
        self._build = ["snapshot"]


def play(
    sandbox: Sandbox, clock: Clock, config: dict[str, Any], warehouse: DemoWarehouse, folder: Path
) -> Path:
    """Play all nights but the last, and return the file of the state after them."""
    logging.getLogger().addHandler(logging.NullHandler())  # else Python prints the tap's warnings
    organisation = Recruiters(sandbox)
    tap, messages, state = tap_at(clock), folder / "messages.jsonl", folder / "state.json"
    state.write_text("{}", "utf-8")
    for night in range(NIGHTS):
        clock.begin(night)
        said = organisation.work() if clock.follows_a_working_day(night) else ""
        if night == NIGHTS - 1:
            break
        if night % DAYS == 0:
            published = len(sandbox.organisation.published())
            click.echo(f"  week {night // DAYS + 1}: {published} open jobs")
        if said:
            click.echo(f"    {said}")
        if night == MISSED:
            click.echo("    A night without a sync.")
            continue
        missing = sync(tap, config, json.loads(state.read_text("utf-8")), messages)
        if missing:
            click.echo(f"    The tap ended with 1: {missing}")
        *_, last = messages.read_text("utf-8").splitlines()
        state.write_text(json.dumps(json.loads(last)["value"]), "utf-8")
        warehouse.load(messages)
        organisation.end_night()
    return state
