"""Loads the published jobs, and builds the tables for analysts of what was loaded."""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from public_jobs_pipeline import alerts, env, meltano, state
from public_jobs_pipeline.meltano import Line
from public_jobs_pipeline.project import TAP, Flaw, Project
from public_jobs_pipeline.warehouse import COPY

WAREHOUSE = Path("output/warehouse.duckdb")
# The mode of frequent runs.
NOTIFIED = "notified"
# How the tap says that it has no state, or none that it can read.
NO_STATE = ("First run (no state)", "The saved state is damaged")
# A schedule alerts if a list was last read whole longer ago than this.
OLD = timedelta(hours=72)


class Load(NamedTuple):
    """What became of a load.

    Attributes:
        failure: Why it failed or is incomplete; empty if it is complete.
        jobs: How many jobs were loaded.
        written: Whether there is something to build; a load that wrote nothing changed nothing,
            and there may be no table yet.
        warning: What somebody should look at, although it worked; or nothing.
    """

    failure: str
    jobs: int = 0
    written: bool = True
    warning: str = ""


class Result(NamedTuple):
    """What became of the load and the build.

    Attributes:
        loaded: What became of the load.
        failure: What failed, and why; empty if nothing did.
        says: The last lines that the run prints.
    """

    loaded: Load
    failure: str
    says: str


def sync(
    project: Project, refresh: str = "", earlier: Load | None = None, *, is_scheduled: bool = False
) -> Result:
    """Load, and build what was loaded.

    Args:
        project: The project.
        refresh: The tap's detail_refresh; if empty, that of meltano.yml.
        earlier: The first load of this run; if it was complete, nothing is loaded again.
        is_scheduled: Whether nobody looks: a lost state is an alert, not only a warning.
    """
    if earlier and not earlier.failure:
        loaded = earlier
    else:
        loaded = load_jobs(project, refresh, is_scheduled=is_scheduled)
    failure, warnings = loaded.failure, [*env.replaced(project), loaded.warning]
    if loaded.written:
        status, lines = meltano.dbt(project.warehouse, "build")
        if status:
            failure = failure or f"The build failed: {meltano.reason_of_dbt(lines)}"
        elif project.warehouse == "duckdb" and (flaw := copy_warehouse()):
            failure = failure or f"{COPY} could not be written: {flaw}"
        warnings += jobs_without_detail(lines)
    # A frequent run has seen the list or had no news. While no job is published, a complete load
    # writes no row, so the tables only look old.
    if is_scheduled and refresh != NOTIFIED and not failure and loaded.jobs:
        failure = old_list(lines)
    if failure:
        says = [failure, remedy(loaded, failure)]
    else:
        says = [f"{loaded.jobs:,} jobs loaded, tables built.", f"Ask them: {project.ask}"]
    return Result(loaded, failure, "\n".join([*(f"Warning: {it}" for it in warnings if it), *says]))


def load_jobs(project: Project, refresh: str, *, is_scheduled: bool) -> Load:
    """Run the tap and the target."""
    is_first = project.warehouse == "duckdb" and not WAREHOUSE.exists()
    if is_first:
        check_that_no_file_is_lost(project)
        WAREHOUSE.parent.mkdir(exist_ok=True)
    status, lines = meltano.load(project.target, refresh)
    if project.webhooks:
        state.keep(project)
    summary = next(
        (line for line in lines if line.source == TAP and "records" in line.fields), None
    )
    records = summary.fields["records"] if summary else {}
    jobs, lost = records.get("jobs", 0), "" if is_first else lost_state(project, lines)
    if lost:
        print(f"Warning: {lost}", flush=True)
        if is_scheduled:
            alerts.alert(project, lost)
    if not status:
        return Load("", jobs, warning=lost)
    broken = meltano.target_broke(lines, project.target)
    failure = f"The load failed: {meltano.reason(lines, project.target if broken else TAP)}"
    failure = failure.partition(", or ignore this check")[0]  # by an option of Meltano's
    return Load(failure, jobs, written=bool(records) and not broken, warning=lost)


def check_that_no_file_is_lost(project: Project) -> None:
    """Refuse to begin a file anew while its copy, or the state of its runs, is there.

    Raises:
        Flaw: It has to be restored first, or the others removed.
    """
    if COPY.exists() or meltano.get_state(project.state_id):
        backup = COPY if COPY.exists() else "BACKUP"
        message = (
            f"{WAREHOUSE} is missing, with all history. To restore it: cp {backup} {WAREHOUSE}. "
            f"To begin anew: rm -f {COPY}; .venv/bin/meltano state clear --force {project.state_id}"
        )
        raise Flaw(message)


def lost_state(project: Project, lines: list[Line]) -> str:
    """Return what it means if the tap has no state of a warehouse that has history; or nothing."""
    begins = any(line.source == TAP and line.text.startswith(NO_STATE) for line in lines)
    if not begins or not meltano.has_history(project.warehouse):
        return ""
    return (
        "The state of the runs before is lost, so dates in the raw tables begin anew; the "
        "analytics tables keep theirs. To keep both, restore a copy of it before the next run."
    )


def jobs_without_detail(lines: list[Line]) -> Iterator[str]:
    """Yield how many open jobs have no detail, if dbt's test of this has found some."""
    for line in lines:
        if found := re.search(r"WARN (\d+) open_jobs_have_details", line.text):
            yield (
                f"{int(found[1]):,} open jobs have no detail. If it stays so, the state is not "
                "that of this warehouse: fetch all details once, with "
                "TAP_PUBLIC_JOBS_DETAIL_REFRESH=all ./sync"
            )


def old_list(lines: list[Line]) -> str:
    """Return whose list is old, if dbt has built from one; with several, the oldest."""
    for line in lines:
        if found := re.search(r"; (.+ was last listed at (.+))", line.text):
            listed_at = datetime.fromisoformat(found[2]).replace(tzinfo=UTC)
            if datetime.now(UTC) - listed_at > OLD:
                return f"The tables are old: {found[1]} UTC."
    return ""


def remedy(loaded: Load, failure: str) -> str:
    """Return what the tables hold after a failure, and what to do."""
    not_built = "Nothing was built: the analytics tables are as the last build left them."
    held = "The tables have what was loaded." if loaded.written else not_built
    if "No action is needed" in failure:
        return held
    if "Cannot start plugin" in failure:  # it is not installed, or no longer
        return f"{held} Run ./setup, and then ./sync again."
    if "already running" in failure:
        return (
            f"{held} If it was killed, run ./sync again after that time; else, once it has ended."
        )
    return f"{held} Correct it, and run ./sync again."


def copy_warehouse() -> str:
    """Copy the database for readers.

    Returns:
        What went wrong; empty if nothing did.
    """
    new = COPY.with_suffix(".new")
    try:
        shutil.copyfile(WAREHOUSE, new)
        new.replace(COPY)
    except OSError as error:
        new.unlink(missing_ok=True)
        return error.strerror or str(error)
    return ""
