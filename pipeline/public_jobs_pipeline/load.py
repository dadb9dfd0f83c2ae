"""Loads the published jobs, and builds the tables for analysts of what was loaded."""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from public_jobs_pipeline import alerts, env, meltano, state
from public_jobs_pipeline.meltano import Line
from public_jobs_pipeline.project import TAP, Project
from public_jobs_pipeline.warehouse import COPY

WAREHOUSE = Path("output/warehouse.duckdb")
# The mode of frequent runs.
NOTIFIED = "notified"
# How the tap says that it has no state, or none that it can read.
NO_STATE = ("First run (no state)", "The saved state is damaged")
# A schedule alerts if a list was last read whole longer ago than this.
OLD = timedelta(hours=72)
# Exists from a load that found no DuckDB file until a load is complete.
IS_NEW = Path("output/warehouse.is-new")
# Folders of a project in which other programs write.
OF_OTHERS = {".git", ".meltano", ".venv", "output"}


class Load(NamedTuple):
    """What became of a load.

    Attributes:
        failure: Why it failed or is incomplete; empty if it is complete.
        jobs: How many jobs were loaded.
        written: Whether there is something to build; a load that wrote nothing changed nothing,
            and there may be no table yet.
        warnings: What somebody should look at, although it worked.
    """

    failure: str
    jobs: int = 0
    written: bool = True
    warnings: tuple[str, ...] = ()


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
    failure, warnings = loaded.failure, [*env.replaced(project), *loaded.warnings]
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
    left = [*left_by_an_update()]
    warnings += [to_merge(file) for file in left]
    if failure:
        failure = " ".join(
            [failure, *(f"{file} is not merged, which may be why." for file in left)]
        )
        says = [failure, remedy(loaded, failure)]
    else:
        says = [f"{loaded.jobs:,} jobs loaded, tables built.", f"Ask them: {project.ask}"]
    return Result(loaded, failure, "\n".join([*(f"Warning: {it}" for it in warnings), *says]))


def load_jobs(project: Project, refresh: str, *, is_scheduled: bool) -> Load:
    """Run the tap and the target."""
    if project.warehouse == "duckdb" and not WAREHOUSE.exists():
        WAREHOUSE.parent.mkdir(exist_ok=True)
        IS_NEW.touch()
    if IS_NEW.exists():
        # The state may know details that only an earlier file had: all are fetched again.
        refresh = "all"
    status, lines = meltano.load(project.target, refresh)
    if project.webhooks:
        state.keep(project)
    summary = next(
        (line for line in lines if line.source == TAP and "records" in line.fields), None
    )
    records = summary.fields["records"] if summary else {}
    jobs, warnings = records.get("jobs", 0), tuple(without_effect(lines))
    if lost := lost_state(project, lines):
        print(f"Warning: {lost}", flush=True)
        if is_scheduled:
            alerts.alert(project, lost)
        warnings += (lost,)
    if not status:
        IS_NEW.unlink(missing_ok=True)
        return Load("", jobs, warnings=warnings)
    broken = meltano.target_broke(lines, project.target)
    failure = f"The load failed: {meltano.reason(lines, project.target if broken else TAP)}"
    failure = failure.partition(", or ignore this check")[0]  # by an option of Meltano's
    return Load(failure, jobs, written=bool(records) and not broken, warnings=warnings)


def without_effect(lines: list[Line]) -> Iterator[str]:
    """Yield the warnings of the tap that a setting has no effect."""
    for line in lines:
        is_warning = line.source == TAP and line.fields.get("level") == "warning"
        if is_warning and "no effect" in line.text:
            yield line.text


def lost_state(project: Project, lines: list[Line]) -> str:
    """Return what it means if the tap has no state of a warehouse that has history; or nothing."""
    begins = any(line.source == TAP and line.text.startswith(NO_STATE) for line in lines)
    if not begins or IS_NEW.exists() or not meltano.has_history(project.warehouse):
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


def left_by_an_update() -> Iterator[Path]:
    """Yield the files that an update has left to be merged."""
    for entry in Path().iterdir():
        if entry.name not in OF_OTHERS:
            for file in entry.rglob("*.new") if entry.is_dir() else [entry]:
                if file.suffix == ".new":
                    yield file


def to_merge(file: Path) -> str:
    """Say what to do with a file that an update has left."""
    return (
        f"{file} has the lines of an update that differ from yours: merge them into "
        f"{file.with_suffix('')}, and delete it."
    )


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
