"""Loads every organisation of organisations.yaml into one PostgreSQL.

- `public_jobs` runs once a night.
- `public_jobs_news` runs every 15 minutes and loads the organisations that webhooks named.

After the organisations, both build the final tables with dbt.

README.md says how to set them up. The connections:

- `public_jobs_<organisation>`: host is the API's address, password is the key. With webhooks, extra
  is `{"changes_url": "…"}`, the organisation's change log.
- `public_jobs_warehouse`: PostgreSQL, with a schema for each organisation.
- `public_jobs_meltano`: PostgreSQL, where Meltano keeps state; may be the same.
- `public_jobs_alert`: optional; password is the address of a webhook that takes `{"text": "…"}`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, task
from dbt_build import BUILT, DbtBuild
from meltano_run import LOADED, MeltanoRun
from public_jobs_alert import NAMES_TASK, SYNC_TASK, alert_run, alert_task

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT = os.environ.get("PUBLIC_JOBS_PROJECT", "/opt/public-jobs")
ORGANISATIONS = Path(
    os.environ.get("PUBLIC_JOBS_ORGANISATIONS", Path(__file__).with_name("organisations.yaml"))
)
BUILD_TASK = "public_jobs_build"
TAKEN = {"warehouse", "meltano", "alert", "analytics", "analytics_staging", "analytics_history"}
"""Names of other connections, and of the schemas that dbt builds."""


def organisations(params: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the organisations that this run is to load.

    Raises:
        ValueError: A name cannot be used, is listed twice, or is requested but not listed.
    """
    names: list[str] = yaml.safe_load(ORGANISATIONS.read_text(encoding="utf-8")) or []
    wrong = [
        name
        for name in names
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,50}", str(name)) or name in TAKEN
    ]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if wrong or twice:
        message = f"{ORGANISATIONS}: cannot be used as names: {wrong}; listed twice: {twice}"
        raise ValueError(message)
    chosen = (params or {}).get("organisations") or names
    if unknown := sorted(set(chosen) - set(names)):
        message = f"The parameter organisations names {unknown}: not in {ORGANISATIONS}"
        raise ValueError(message)
    return [name for name in names if name in chosen]


def make_dag(  # noqa: PLR0913  # what the two DAGs differ in
    dag_id: str,
    *,
    schedule: str,
    detail_refresh: str,
    retries: int,
    execution_timeout: timedelta,
    dagrun_timeout: timedelta,
) -> DAG:
    """Return a DAG with one task for each organisation, and one that builds the tables of all.

    Args:
        dag_id: Its name.
        schedule: When it runs, as cron writes it.
        detail_refresh: Which details it fetches again, unless a run's parameter says otherwise.
        retries: How often an organisation is tried again.
        execution_timeout: How long one try of one organisation may take.
        dagrun_timeout: How long a run may take: more than all tries of one organisation and of the
            build, so that one whose warehouse hangs fails alone, and short enough for the next run
            to start on time.
    """
    with DAG(
        dag_id,
        doc_md=__doc__,
        schedule=schedule,
        start_date=datetime(2025, 1, 1, tzinfo=UTC),
        # A run loads what is published now. One for a day in the past would do the same work again.
        catchup=False,
        # Two runs would have two clients for every key, and a key has one limit.
        max_active_runs=1,
        dagrun_timeout=dagrun_timeout,
        on_failure_callback=alert_run,
        default_args={"on_failure_callback": alert_task},
        params={
            "organisations": Param(
                [], type="array", items={"type": "string"}, description="Only these; empty: all."
            ),
            "detail_refresh": Param(
                detail_refresh,
                enum=["changed", "all", "notified"],
                description="The tap's setting: which details to fetch again.",
            ),
        },
    ) as dag:
        # A task, so that the names of a run are read once. Airflow runs this file again before each
        # try: with names read here, an edit during a run would give tasks the names of others.
        names = task(task_id=NAMES_TASK)(organisations)()
        syncs = MeltanoRun.partial(
            task_id=SYNC_TASK,
            project=PROJECT,
            detail_refresh="{{ params.detail_refresh }}",
            map_index_template="{{ task.organisation }}",
            outlets=[LOADED],
            # Every key has its own limit, so organisations do not slow each other down. What they
            # share is the memory of the workers (see README.md) and the warehouse's connections.
            # If other DAGs share them too, give this task a pool in place of this line.
            max_active_tis_per_dag=16,
            # A retry resumes where the last try stopped, if it begins within 24 hours. The first
            # wait is Airflow's [core] default_task_retry_delay (5 minutes), and it doubles.
            retries=retries,
            retry_exponential_backoff=2.0,
            max_retry_delay=timedelta(hours=1),
            # The tap ends on its own when the API does not answer. A warehouse may hang forever.
            execution_timeout=execution_timeout,
        ).expand(organisation=names)
        build = DbtBuild(
            task_id=BUILD_TASK,
            project=PROJECT,
            organisations=organisations,
            after=SYNC_TASK,
            outlets=[BUILT],
            # An organisation that failed is built as far as it was loaded, and none waits for it.
            trigger_rule="all_done",
            # Both DAGs build the same tables: a pool of one slot.
            pool=BUILD_TASK,
            retries=1,
            max_retry_delay=timedelta(minutes=5),
            execution_timeout=timedelta(minutes=15),
        )
        # The last tasks decide the state of a run, and the build succeeds even if some tasks fail.
        syncs >> build >> EmptyOperator(task_id="loaded", trigger_rule="none_failed") << syncs
    return dag


NIGHTLY = make_dag(
    "public_jobs",
    schedule="0 4 * * *",
    detail_refresh="changed",
    retries=4,
    # Some 10,000 jobs at 60 requests a minute. A longer backfill resumes in a retry.
    execution_timeout=timedelta(hours=3),
    dagrun_timeout=timedelta(hours=23),
)
NEWS = make_dag(
    "public_jobs_news",
    schedule="*/15 * * * *",
    detail_refresh="notified",
    retries=1,
    execution_timeout=timedelta(minutes=30),
    dagrun_timeout=timedelta(hours=3),
)
