"""Alerts to a webhook: which organisations were not loaded.

Airflow calls these functions where the task ran or, if a worker died or a run timed out, in its DAG
processor. There the task was never expanded and has no organisation, so names come from the XCom
of the run.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import httpx
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom

if TYPE_CHECKING:
    from airflow.sdk import Context

NAMES_TASK, SYNC_TASK = "organisations", "sync"

log = logging.getLogger(__name__)


def alert_task(context: Context) -> None:
    """Report that the last try of a task has failed."""
    task = context["ti"]
    subject = task.task_id
    if task.map_index is not None and task.map_index >= 0:
        subject = _names(task.dag_id, task.run_id)[task.map_index]
    _send(f"Public jobs of {subject}: failed after {task.try_number} tries. {task.log_url}")


def alert_run(context: Context) -> None:
    """Report that a run has failed, with every organisation that it did not load.

    Some are reported only here: those whose task was killed silently, and those that were not done
    when the run timed out (Airflow marks them as skipped).
    """
    dag, run, reason = context["dag"].dag_id, context["run_id"], context.get("reason")
    not_loaded = {"failed", "upstream_failed"} | ({"skipped"} if reason == "timed_out" else set())
    states = RuntimeTaskInstance.get_task_states(dag_id=dag, task_ids=[SYNC_TASK], run_ids=[run])
    names = _names(dag, run)
    missing = [
        name
        for number, name in enumerate(names)
        if states.get(run, {}).get(f"{SYNC_TASK}_{number}") in not_loaded
    ]
    loaded = "All were loaded, and the tables were not built."
    what = f"Not loaded: {', '.join(missing) or 'all'}." if missing or not names else loaded
    _send(f"Run {run} of {dag} failed ({reason}). {what}")


def _names(dag_id: str, run_id: str) -> list[str]:
    """Return the names of a run's organisations, in the order of their tasks."""
    names: Any = XCom.get_one(
        key="return_value", dag_id=dag_id, task_id=NAMES_TASK, run_id=run_id, map_index=-1
    )
    return cast("list[str]", names or [])


def _send(text: str) -> None:
    """Post to the webhook, if there is one. Its address may hold a secret: never log it."""
    try:
        address = BaseHook.get_connection("public_jobs_alert").password or ""
    except AirflowNotFoundException:
        return
    try:
        response = httpx.post(address, json={"text": text}, timeout=30)
        problem = "" if response.is_success else f"status {response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        problem = type(error).__name__  # the message may quote the address
    if problem:
        log.error(
            "The alert was not sent (%s): check the address in the password of the connection "
            "public_jobs_alert. It said: %s",
            problem,
            text,
        )
