"""Runs of a schedule: the lock, the retry, the time limit, and what becomes of a failure."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from public_jobs_pipeline import alerts, digest, env, meltano, state
from public_jobs_pipeline.load import NOTIFIED, Result, sync
from public_jobs_pipeline.meltano import Interrupted
from public_jobs_pipeline.project import TAP, Project

# Schedulers end a run after six hours, without an alert. So this comes before that.
TIME_LIMIT = 345 * 60
NEWS = Path(".meltano/extractors", TAP, "venv/bin/tap-public-jobs-news")


def by_hand(project: Project) -> int:
    """Sync once, after a run that is still going, and return the status."""
    with stoppable(), locked(wait=True):
        return ended(with_digest(project, sync(project)))


def nightly(project: Project) -> int:
    """Sync, and once more after a failure; alert if that fails too, and report a success."""
    with stoppable(alarm=True), locked(wait=True):
        refresh = "changed" if project.webhooks else ""
        result = sync(project, refresh, is_scheduled=True)
        if result.failure:
            minutes = alerts.RETRY_AFTER // 60
            print(f"{result.failure}\nTrying again in {minutes} minutes.", flush=True)
            meltano.run("sleep", str(alerts.RETRY_AFTER))
            result = sync(project, refresh, result.loaded, is_scheduled=True)
        if result.failure:
            alerts.alert(project, result.failure)
        else:
            alerts.forget_failures()
            alerts.ping()
        return ended(with_digest(project, result))


def every_few_minutes(project: Project) -> int:
    """Sync if there is work, and no other run is going."""
    with stoppable(alarm=True), locked(wait=False) as ours:
        # A run that has the lock reads what is new, or the next one does.
        if not ours or not has_news():
            return 0
        result = sync(project, NOTIFIED, is_scheduled=True)
        if result.failure:
            alerts.alert_once_an_hour(project, result.failure)
        else:
            alerts.forget_failures()
        return ended(result)


def with_digest(project: Project, result: Result) -> Result:
    """Post a digest after a success; what went wrong with it is a warning of the run.

    Frequent runs post none: theirs would come at midnight, with what happened since the evening.
    """
    if not result.failure and (warning := digest.post(project)):
        return result._replace(says=f"Warning: {warning}\n{result.says}")
    return result


def ended(result: Result) -> int:
    """Print the last lines of a run, and return its status."""
    print(result.says, flush=True)
    return 1 if result.failure else 0


def has_news() -> bool:
    """Return whether there is work; on an error too, because a run then reports it."""
    if not NEWS.exists():  # the load then fails, and says that the plugin is not installed
        return True
    url = env.setting("TAP_PUBLIC_JOBS_CHANGES_URL")
    status, said = meltano.run(NEWS, state.STATE, TAP_PUBLIC_JOBS_CHANGES_URL=url)
    # Without news it says nothing. A Python that cannot load it ends with 1, too.
    return status != 1 or bool(said) or alerts.FAILING.exists()


@contextmanager
def locked(*, wait: bool) -> Iterator[bool]:
    """Hold the lock of the project, whose runs must not overlap; false if another run has it."""
    with Path(".lock").open("a", encoding="utf-8") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003  # takes no keyword
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                yield False
                return
            print("Waiting for the run that is still going.", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield True


@contextmanager
def stoppable(*, alarm: bool = False) -> Iterator[None]:
    """Raise Interrupted at a signal, or at the time limit."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, interrupt)
    if alarm:
        signal.alarm(TIME_LIMIT)
    yield
    signal.alarm(0)


def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """End the run; a further signal changes nothing.

    Raises:
        Interrupted: Always.
    """
    signal.alarm(0)
    for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)
