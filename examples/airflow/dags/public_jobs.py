"""Every organisation of organisations.yaml into one PostgreSQL, once a night.

Once for all workers: `meltano install` in the project, with MELTANO_DATABASE_URI set, because it
makes the tables there and runs in parallel cannot; PUBLIC_JOBS_PROJECT in their environment; and
the connections, in a secrets backend or in Airflow:

    public_jobs_<organisation>   host: the API's address, password: the key
    public_jobs_warehouse        PostgreSQL, a schema an organisation
    public_jobs_meltano          PostgreSQL, where Meltano keeps state; may be the same
    public_jobs_alert            optional, password: address of a webhook that takes {"text": …}
"""

from __future__ import annotations

import os
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import httpx
import yaml
from airflow.sdk import DAG, BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from meltano_run import MeltanoRun

if TYPE_CHECKING:
    from airflow.sdk import Context

PROJECT = os.environ.get("PUBLIC_JOBS_PROJECT", "/opt/public-jobs")
ORGANISATIONS = Path(
    os.environ.get("PUBLIC_JOBS_ORGANISATIONS", Path(__file__).with_name("organisations.yaml"))
)


def organisations() -> list[str]:
    """Read the names of all organisations.

    Raises:
        ValueError: A name is no name of a schema, or it is there twice.
    """
    names: list[str] = yaml.safe_load(ORGANISATIONS.read_text(encoding="utf-8")) or []
    wrong = [name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]{0,50}", str(name))]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if wrong or twice:
        message = f"{ORGANISATIONS}: not a name: {wrong}; there twice: {twice}"
        raise ValueError(message)
    return names


def alert(context: Context) -> None:
    """Tell the webhook, if there is one, that the last try of an organisation has failed."""
    task = context["ti"]
    organisation = cast("MeltanoRun", context["task"]).organisation
    text = f"Public jobs of {organisation}: failed after {task.try_number} tries. {task.log_url}"
    try:
        webhook = BaseHook.get_connection("public_jobs_alert").password or ""
    except AirflowNotFoundException:
        return
    httpx.post(webhook, json={"text": text}, timeout=30).raise_for_status()


with DAG(
    "public_jobs",
    schedule="0 4 * * *",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    # A run loads what is published now. One for a day in the past would do the same work again.
    catchup=False,
    # Two runs would have two clients for every key, and a key has one limit.
    max_active_runs=1,
):
    MeltanoRun.partial(
        task_id="sync",
        project=PROJECT,
        map_index_template="{{ task.organisation }}",
        # Every key has a limit of its own, so organisations do not slow each other down. What they
        # share is the memory of the workers (see README.md) and the connections of the warehouse.
        # If other DAGs share them too, give this task a pool in place of this line.
        max_active_tis_per_dag=16,
        # A retry goes on where the last try stopped, if it begins within 24 hours: after 5, 10, 20
        # and 40 minutes. The first wait is Airflow's [core] default_task_retry_delay.
        retries=4,
        retry_exponential_backoff=2.0,
        max_retry_delay=timedelta(hours=1),
        # 6 hours are some 21,000 jobs at 60 requests a minute; a longer backfill goes on in a
        # retry. The tap ends by itself when the API does not answer, a warehouse may never.
        execution_timeout=timedelta(hours=6),
        on_failure_callback=alert,
    ).expand(organisation=organisations())
