"""Loads the published jobs of many organisations into one PostgreSQL, each into its own schema.

Every 15 minutes a run loads the organisations of organisations.yaml that have news in their change
logs, and those that were not loaded since 04:00 UTC. After the loads, dbt builds the final tables.

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
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context

PROJECT = os.environ.get("PUBLIC_JOBS_PROJECT", "/opt/public-jobs")
ORGANISATIONS = Path(__file__).with_name("organisations.yaml")
SCHEDULE = os.environ.get("PUBLIC_JOBS_SCHEDULE", "*/15 * * * *")
# Every organisation is loaded once after this time of day, in UTC.
DAY_BEGINS = timedelta(hours=4)
# If its load fails, the run an hour later tries again, even if that begins some seconds early.
TRY_AGAIN = timedelta(minutes=55)
# The variable with the time from which an organisation is loaded without news, too.
DUE = "public_jobs_due_{}"
# Stands for the asset `public_jobs_<organisation>` of every organisation.
LOADED = AssetAlias("public_jobs")
# The final tables, for DAGs that wait for them.
BUILT = Asset("public_jobs_analytics")


def alert(text: str, context: Context) -> None:
    """Send one line to the webhook of the connection."""
    SlackWebhookNotifier(slack_webhook_conn_id="public_jobs_alert", text=text)(context)


def alert_of_retry(context: Context) -> None:
    """Report, when a task begins, that its last try failed.

    Airflow calls `on_retry_callback` twice if a worker died. A task begins once.
    """
    ti = context["ti"]
    if ti.try_number > 1:
        loads = ti.task_id == "load"
        name = ti.xcom_pull(task_ids="choose")[ti.map_index] if loads else ti.task_id
        failed = f"{name} failed in try {ti.try_number - 1} and is tried again"
        alert(f"Public jobs: {failed}. {ti.log_url}", context)


def alert_of_run(context: Context) -> None:
    """Report that a run failed, with the organisations that failed in all tries."""
    ti, run = context["ti"], context["run_id"]
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[run])[run]
    names = ti.xcom_pull(task_ids="choose") or []
    failed = [name for i, name in enumerate(names) if states.get(f"load_{i}") == "failed"]
    text = f"run {run} failed ({context['reason']})"
    alert(f"Public jobs: {text}: {', '.join(failed) or 'see its log'}.", context)


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
        # Below it, bash reads ~/.bashrc if stdin is a socket, which it is in a task.
        "SHLVL": "1",
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
        command = f"exec ./run-meltano {arguments} > {reader} 2>&1"
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
        """Run Meltano, note when the organisation is due again, and update its asset."""
        day = (datetime.now(UTC) - DAY_BEGINS).replace(hour=0, minute=0, second=0, microsecond=0)
        super().execute(context)
        Variable.set(DUE.format(self.organisation), str(day + timedelta(days=1) + DAY_BEGINS))
        context["outlet_events"][LOADED].add(Asset(f"public_jobs_{self.organisation}"))


@task
def choose() -> list[str]:
    """Return the organisations of this run.

    This is a task, so a run reads the list once: an edit takes effect in the next run.

    Raises:
        ValueError: The parameter names an organisation that is not listed.
        AirflowSkipException: There is nothing to load.
    """
    names = organisations()
    if chosen := get_current_context()["params"]["organisations"]:
        if unknown := set(chosen) - set(names):
            message = f"The parameter organisations names {sorted(unknown)}: not in {ORGANISATIONS}"
            raise ValueError(message)
        return sorted(set(chosen))
    now = datetime.now(UTC)
    due = [name for name in names if Variable.get(DUE.format(name), default="") <= str(now)]
    for name in due:
        Variable.set(DUE.format(name), str(now + TRY_AGAIN))  # its load sets another time
    if work := due + with_news([name for name in names if name not in due]):
        return work
    message = "Nothing to load: no organisation is due or has news, and the last loads finished."
    raise AirflowSkipException(message)


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
    on_failure_callback=alert_of_run,
    default_args={
        "on_execute_callback": alert_of_retry,
        # A new gap fails both tries, and every run of its first hour.
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
    # An incomplete load is built too, as far as it came, and no organisation waits for another.
    build = Meltano(
        task_id="build",
        arguments="invoke --no-install dbt-postgres:build",
        outlets=[BUILT],
        trigger_rule="none_skipped",
        execution_timeout=timedelta(hours=1),
    )
    # The last task decides the state of a run, and the build succeeds even if a load failed.
    loads >> build >> EmptyOperator(task_id="loaded", trigger_rule="none_failed") << loads
