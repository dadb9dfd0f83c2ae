"""Loads the published jobs of many organisations into one PostgreSQL, each into its own schema.

The first run after 04:00 UTC loads all organisations of organisations.yaml. Every 15 minutes a run
loads those that have news in their change logs. After each load, dbt builds the final tables.

README.md says how to set it up.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from airflow.providers.slack.notifications.slack_webhook import SlackWebhookNotifier
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetAlias, BaseHook, Param, Variable, get_current_context, task
from airflow.sdk.exceptions import AirflowNotFoundException

if TYPE_CHECKING:
    from airflow.sdk import Context

PROJECT = os.environ.get("PUBLIC_JOBS_PROJECT", "/opt/public-jobs")
ORGANISATIONS = Path(__file__).with_name("organisations.yaml")
SCHEDULE = os.environ.get("PUBLIC_JOBS_SCHEDULE", "*/15 * * * *")
# When the next run loads all organisations, in UTC.
DAY_BEGINS = timedelta(hours=4)
# The variable with the last day on which a run has chosen all organisations.
DAY = "public_jobs_day"
# Stands for the asset `public_jobs_<organisation>` of every organisation.
LOADED = AssetAlias("public_jobs")
# The final tables, for DAGs that wait for them.
BUILT = Asset("public_jobs_analytics")
ALERT = SlackWebhookNotifier(
    slack_webhook_conn_id="public_jobs_alert",
    text="Public jobs: {% if ti.map_index < 0 %}{{ ti.task_id }}{% else %}"
    "{{ ti.xcom_pull(task_ids='choose')[ti.map_index] }}{% endif %} "
    "failed in try {{ ti.try_number }}. {{ ti.log_url }}",
)
RUN_ALERT = SlackWebhookNotifier(
    slack_webhook_conn_id="public_jobs_alert",
    text="Public jobs: run {{ run_id }} failed ({{ reason }}).",
)


def organisations() -> list[str]:
    """Return the names in organisations.yaml.

    Raises:
        ValueError: A name cannot be used, or is listed twice.
    """
    names: list[str] = yaml.safe_load(ORGANISATIONS.read_text(encoding="utf-8"))
    wrong = [name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]{0,50}", str(name))]
    if wrong or len(set(names)) < len(names):
        message = f"{ORGANISATIONS}: not usable as names: {wrong}, or a name is there twice"
        raise ValueError(message)
    return names


def address(connection: str) -> str:
    """Return the SQLAlchemy URL of a PostgreSQL connection, with its password."""
    _, _, rest = BaseHook.get_connection(connection).get_uri().partition("://")
    return f"postgresql+psycopg://{rest}"


def environment() -> dict[str, str]:
    """Return the variables of Meltano: the worker's without Airflow's, and the databases."""
    variables = {
        # Connections of other organisations may be among them.
        name: value
        for name, value in os.environ.items()
        if not name.lstrip("_").startswith("AIRFLOW")
    } | {
        "TARGET_POSTGRES_SQLALCHEMY_URL": address("public_jobs_warehouse"),
        "MELTANO_DATABASE_URI": address("public_jobs_meltano"),
        "PUBLIC_JOBS_SCHEMAS": ",".join(organisations()),  # what dbt unites
    }
    try:
        variables["TAP_PUBLIC_JOBS_CHANGES_URL"] = address("public_jobs_changes")
    except AirflowNotFoundException:  # without webhooks
        variables.pop("TAP_PUBLIC_JOBS_CHANGES_URL", None)
    return variables


class Meltano(BashOperator):
    """Runs one command of Meltano.

    It reads the secrets when the task runs, so they are in no template, and in no field that
    Airflow stores.

    Args:
        arguments: What follows `meltano`.
        kwargs: What every operator takes.
    """

    def __init__(self, *, arguments: str, **kwargs: Any) -> None:  # noqa: ANN401
        # The script stops the tap alone when the task is stopped. Airflow may end the task before
        # Meltano has ended, and Meltano hangs without a reader: so `cat` reads on.
        reader = ">(trap '' TERM; cat; cat > /dev/null)"
        command = f"exec ./docker-entrypoint.sh {arguments} > {reader} 2>&1"
        super().__init__(bash_command=command, cwd=PROJECT, do_xcom_push=False, **kwargs)
        self.arguments = arguments

    def get_env(self, context: Context) -> dict[str, str]:  # noqa: ARG002
        """Return the variables of the process."""
        return environment()


class Load(Meltano):
    """Loads the published jobs of one organisation into its own schema.

    Args:
        organisation: Its name, as in organisations.yaml.
        kwargs: What every operator takes.
    """

    def __init__(self, *, organisation: str, **kwargs: Any) -> None:  # noqa: ANN401
        # `el`, not `run`: each run of `el` has its own folder.
        super().__init__(
            arguments="el tap-public-jobs target-postgres --no-install "
            f"--state-id public_jobs_{organisation}",
            **kwargs,
        )
        self.organisation = organisation

    def get_env(self, context: Context) -> dict[str, str]:
        """Return the variables of the process, with the organisation's key and schema."""
        api = BaseHook.get_connection(f"public_jobs_{self.organisation}")
        variables = environment() | {
            "TAP_PUBLIC_JOBS_API_KEY": api.password or "",
            "TAP_PUBLIC_JOBS_BASE_URL": api.host or "",
            "TAP_PUBLIC_JOBS_DETAIL_REFRESH": context["params"]["detail_refresh"],
            "TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA": self.organisation,
        }
        if log := variables.get("TAP_PUBLIC_JOBS_CHANGES_URL"):
            separator = "&" if "?" in log else "?"
            variables["TAP_PUBLIC_JOBS_CHANGES_URL"] = f"{log}{separator}name={self.organisation}"
        return variables

    def execute(self, context: Context) -> None:
        """Run Meltano, and update the asset of the organisation."""
        super().execute(context)
        context["outlet_events"][LOADED].add(Asset(f"public_jobs_{self.organisation}"))


@task
def choose() -> list[str]:
    """Return the organisations of this run.

    This is a task, so a run reads the list once: an edit takes effect in the next run.

    Raises:
        ValueError: The parameter names an organisation that is not listed.
    """
    names = organisations()
    if chosen := get_current_context()["params"]["organisations"]:
        if unknown := set(chosen) - set(names):
            message = f"The parameter organisations names {sorted(unknown)}: not in {ORGANISATIONS}"
            raise ValueError(message)
        return sorted(set(chosen))
    day = str((datetime.now(UTC) - DAY_BEGINS).date())
    if Variable.get(DAY, default="") != day:
        Variable.set(DAY, day)
        return names
    return with_news(names)


def with_news(names: list[str]) -> list[str]:
    """Return the organisations that a run has work for: news, or an unfinished run.

    Raises:
        RuntimeError: The command that compares states and change logs failed.
    """
    variables = environment()
    if "TAP_PUBLIC_JOBS_CHANGES_URL" not in variables:
        return []
    exported = subprocess.check_output(
        ["meltano", "state", "export"],  # noqa: S607
        cwd=PROJECT,
        env=variables,
    )
    states = json.loads(exported)
    # One that was never loaded waits for the run that loads all.
    loaded = [name for name in names if f"public_jobs_{name}" in states]
    if not loaded:
        return []
    command = ["public-jobs-webhook", "news"]
    with tempfile.TemporaryDirectory() as folder:
        for name in loaded:
            state = states[f"public_jobs_{name}"]
            file = Path(folder, name)
            file.write_text(json.dumps(state["partial"] or state["completed"]), "utf-8")
            command.append(f"--state={name}={file}")
        news = subprocess.run(  # noqa: S603
            command, env=variables, capture_output=True, text=True, check=False
        )
    # 1 is "no news", but also how Python ends a program that it cannot start.
    if news.returncode and (news.returncode > 1 or news.stderr):
        raise RuntimeError(news.stderr)
    return news.stdout.split()


with DAG(
    "public_jobs",
    doc_md=__doc__,
    schedule=SCHEDULE,
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    # A run loads what is published now. One for a time in the past would do the same work again.
    catchup=False,
    # So no two runs load one organisation at once, and a run that is late only delays the next.
    max_active_runs=1,
    # Much more than all tries of a load and of the build.
    dagrun_timeout=timedelta(hours=23),
    on_failure_callback=RUN_ALERT,
    default_args={
        "on_failure_callback": ALERT,
        # A job that is missing for the first time fails one try only: a retry must not hide it.
        "on_retry_callback": ALERT,
        "retries": 1,
        # A Meltano that was killed holds its organisation for five minutes.
        "retry_delay": timedelta(minutes=6),
    },
    params={
        "organisations": Param(
            [], type="array", items={"type": "string"}, description="Only these, news or not."
        ),
        "detail_refresh": Param(
            "changed", enum=["changed", "all"], description="Which details to fetch again."
        ),
    },
):
    loads = Load.partial(
        task_id="load",
        map_index_template="{{ task.organisation }}",
        outlets=[LOADED],
        # Every key has its own limit, so organisations do not slow each other down. What they share
        # is the memory of the workers (see README.md) and the warehouse's connections.
        max_active_tis_per_dag=16,
        # Some 10,000 jobs at 60 requests a minute. The retry, or the next run, resumes.
        execution_timeout=timedelta(hours=3),
    ).expand(organisation=choose())
    # An organisation that failed is built as far as it was loaded, and none waits for it.
    build = Meltano(
        task_id="build",
        arguments="invoke --no-install dbt-postgres:build",
        outlets=[BUILT],
        trigger_rule="all_done_min_one_success",
        execution_timeout=timedelta(hours=1),
    )
    # The last task decides the state of a run, and the build succeeds even if a load failed.
    loads >> build >> EmptyOperator(task_id="loaded", trigger_rule="none_failed") << loads
