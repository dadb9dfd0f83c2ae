"""Loads and builds the published jobs of many organisations, each in a project of its own.

Every night at 04:00 UTC, `public_jobs` runs `./sync --scheduled` in every project below
PUBLIC_JOBS_PROJECTS, and `public_jobs_news` runs `./sync --if-news` every 15 minutes in those that
have webhooks. A project tries again and alerts by itself, so no task here does.

docs/set-up/organisations.md says how to set it up.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, get_current_context, task

PROJECTS = Path(os.environ.get("PUBLIC_JOBS_PROJECTS", "/opt/public-jobs"))

# The project that builds the tables of all organisations together; without it, none are.
ALL = os.environ.get("PUBLIC_JOBS_ALL")
# Without SHLVL, bash reads ~/.bashrc if its stdin is a socket, as it is in a worker.
VARIABLES = {"SHLVL": "1"}


@task
def projects(*, with_webhooks: bool) -> list[str]:
    """Return the folders of the projects to run.

    Raises:
        ValueError: The parameter names a project that is not there.
    """
    found = {it.parent.name: it.parent for it in sorted(PROJECTS.glob("*/sync"))}
    chosen = set(get_current_context()["params"]["projects"])
    if unknown := chosen - set(found):
        message = f"The parameter projects names {sorted(unknown)}: not in {PROJECTS}"
        raise ValueError(message)
    return [
        str(folder)
        for name, folder in found.items()
        if name in (chosen or found) and (not with_webhooks or has_webhooks(folder))
    ]


def has_webhooks(project: Path) -> bool:
    """Return whether the project has a notification log."""
    return "\nwebhooks: true\n" in (project / ".copier-answers.yml").read_text(encoding="utf-8")


def sync_all(name: str, schedule: str, option: str, *, with_webhooks: bool) -> DAG:
    """Return a DAG with a task for each project."""
    with DAG(
        name,
        doc_md=__doc__,
        schedule=schedule,
        start_date=datetime(2025, 1, 1, tzinfo=UTC),
        # A run loads what is published now. One for a time in the past would do the same again.
        catchup=False,
        max_active_runs=1,
        params={
            "projects": Param([], type="array", items={"type": "string"}, description="These.")
        },
    ) as dag:
        syncs = BashOperator.partial(
            task_id="sync",
            bash_command=f"exec ./sync {option}",
            env=VARIABLES,
            append_env=True,
            map_index_template="{{ task.cwd.rpartition('/')[2] }}",
            # Every key has its own limit, so projects do not slow each other down. What they share
            # is the memory of the workers and the warehouse's connections: see organisations.md.
            max_active_tis_per_dag=16,
            # Later than the time limit of sync, which alerts.
            execution_timeout=timedelta(hours=6),
        ).expand(cwd=projects(with_webhooks=with_webhooks))
        if ALL:
            build = BashOperator(
                task_id="build",
                # Also after a load that failed: dbt can only record the history that it sees.
                trigger_rule="all_done",
                bash_command="exec flock .lock .venv/bin/meltano invoke dbt-postgres:build",
                cwd=ALL,
                env=VARIABLES,
                append_env=True,
                execution_timeout=timedelta(hours=1),
            )
            # The last task decides the state of a run, and a build works even if a load failed.
            loaded = EmptyOperator(task_id="loaded", trigger_rule="none_failed")
            syncs >> build >> loaded << syncs
    return dag


nightly = sync_all("public_jobs", "0 4 * * *", "--scheduled", with_webhooks=False)
news = sync_all("public_jobs_news", "*/15 * * * *", "--if-news", with_webhooks=True)
