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
from pathlib import Path
from typing import Any, Self

import click

from public_jobs_sandbox.meltano import REPOSITORY, SCHEMA
from public_jobs_sandbox.postings import locations
from public_jobs_sandbox.recruiters import Recruiters
from public_jobs_sandbox.state import Sandbox
from tap_public_jobs.errors import TapError
from tap_public_jobs.tap import TapPublicJobs

# The last one is today.
NIGHTS = 56
DAYS, SATURDAY = 7, 5
# The night in which the scheduler does not run.
MISSED = 26


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


class Plugin:
    """A plugin that Meltano has installed, run by `plugins.py`.

    Args:
        kind: What `plugins.py` calls it.
        folder: Where Meltano has installed it.
        variables: Its environment.
        log: Where its log goes.
    """

    def __init__(self, kind: str, folder: str, variables: dict[str, str], log: Path) -> None:
        python = REPOSITORY / ".meltano" / folder / "venv" / "bin" / "python"
        self._name, self._log = Path(folder).name, log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603  # no user input
                [python, Path(__file__).with_name("plugins.py"), kind],
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
    except TapError as error:
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
        variables: The environment, with Meltano's names of the folders of dbt.
        folder: For logs and settings.
    """

    def __init__(self, variables: dict[str, str], folder: Path) -> None:
        project = variables["DBT_DUCKDB_PROJECT_DIR"]
        shell = variables | {
            "DBT_PROJECT_DIR": project,
            "DBT_PROFILES_DIR": project,
            "DBT_TARGET": "duckdb",
            "DBT_TARGET_PATH": variables["DBT_DUCKDB_TARGET_PATH"],
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
        said = "".join(organisation.work()) if clock.follows_a_working_day(night) else ""
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
