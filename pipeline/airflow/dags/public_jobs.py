"""Loads the published jobs of many organisations into one PostgreSQL, each into its own schema.

Every 15 minutes a run loads the organisations of organisations.yaml that have news in their change
logs, and those that were not loaded since 04:00 UTC. After the loads, dbt builds the final tables.

README.md says how to set it up.
"""

import json
import logging
import os
import re
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from airflow.providers.slack.notifications.slack_webhook import SlackWebhookNotifier
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    BaseHook,
    Context,
    Param,
    Variable,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowNotFoundException,
    AirflowSkipException,
)

logger = logging.getLogger(__name__)

PROJECT = os.environ.get("PUBLIC_JOBS_PROJECT", "/opt/public-jobs")
ORGANISATIONS = Path(__file__).with_name("organisations.yaml")
RUN_MELTANO = Path(__file__).with_name("run-meltano")
SCHEDULE = os.environ.get("PUBLIC_JOBS_SCHEDULE", "*/15 * * * *")
# Every organisation is loaded once after this time of day, in UTC.
DAY_BEGINS = timedelta(hours=4)
# If its load fails, the run an hour later tries again, even if that begins some seconds early.
TRY_AGAIN = timedelta(minutes=55)
# The variable with the time from which an organisation is loaded without news, too.
DUE = "public_jobs_due_{}"
# The variable that is there from the beginning of a load to the end of the next successful build.
TO_BUILD = "public_jobs_to_build"
# The variable with the time until which a failure of an organisation or a task is known.
ALERTED = "public_jobs_alerted_{}"
# The XCom with the reason of a failed build.
WHY = "why"
# Stands for the asset `public_jobs_<organisation>` of every organisation.
LOADED = AssetAlias("public_jobs")
# The final tables, for DAGs that wait for them.
BUILT = Asset("public_jobs_analytics")


def alert_of_run(context: Context) -> None:
    """Send one line if a run failed, unless all that failed is known for less than a day.

    An API that is down fails many loads, hour after hour: that is one alert.
    """
    ti, run, now = context["ti"], context["run_id"], datetime.now(UTC)
    names = ti.xcom_pull(task_ids="choose") or []
    label = {f"load_{i}": name for i, name in enumerate(names)}
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[run])[run]
    failed = {label.get(task, task) for task, state in states.items() if state == "failed"}
    alerted = {name for name in failed if Variable.get(ALERTED.format(name), default="") > str(now)}
    if failed and failed == alerted:
        return
    problems = []
    if incomplete := sorted(failed & {*names}):
        problems.append(f"not loaded completely: {', '.join(incomplete)}")
    if "build" in failed:
        why = ti.xcom_pull(task_ids="build", key=WHY) or "see its log"
        problems.append(f"the final tables are still those of the last build ({why})")
    if "choose" in failed:
        problems.append("nothing is loaded, because the task choose failed")
    problem = "; ".join(problems) or "the run did not end in time"
    text = (
        f"Public jobs: {problem}. Later runs try again, and report the same failure once a day. "
        f"Run {run} ({context['reason']}): {ti.log_url}"
    )
    SlackWebhookNotifier(slack_webhook_conn_id="public_jobs_alert", text=text)(context)
    for name in failed:
        Variable.set(ALERTED.format(name), str(now + timedelta(days=1)))


def forget_alert(context: Context) -> None:
    """Note that a task succeeded: if it fails again, that is news."""
    ti = context["ti"]
    Variable.delete(ALERTED.format(getattr(context["task"], "organisation", ti.task_id)))


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
        command = f"exec '{RUN_MELTANO}' {arguments} > {reader} 2>&1"
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
        # Also a load that fails, or is killed, may have loaded something.
        Variable.set(TO_BUILD, str(datetime.now(UTC)))
        super().execute(context)
        Variable.set(DUE.format(self.organisation), str(day + timedelta(days=1) + DAY_BEGINS))
        context["outlet_events"][LOADED].add(Asset(f"public_jobs_{self.organisation}"))


class Build(Meltano):
    """Builds the final tables, if anything was loaded since the last successful build."""

    # dbt writes it at the end of each build.
    results = Path(PROJECT, ".meltano/dbt/postgres/run_results.json")

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(
            arguments="invoke --no-install dbt-postgres:build",
            outlets=[BUILT],
            execution_timeout=timedelta(hours=1),
            **kwargs,
        )

    def execute(self, context: Context) -> None:
        """Run dbt; keep its first error for the alert.

        Raises:
            AirflowSkipException: There is nothing to build.
        """
        loaded = Variable.get(TO_BUILD, default=None)
        if loaded is None:
            message = "Nothing to build: nothing was loaded since the last build."
            raise AirflowSkipException(message)
        self.results.unlink(missing_ok=True)
        try:
            super().execute(context)
        except AirflowException:
            context["ti"].xcom_push(WHY, self.first_error())
            raise
        if Variable.get(TO_BUILD, default=None) == loaded:  # no load has begun since
            Variable.delete(TO_BUILD)

    def first_error(self) -> str:
        """Return dbt's first error, which names a table, and so the schema of an organisation."""
        if not self.results.exists():
            return "dbt did not begin: see the log"
        results = json.loads(self.results.read_text(encoding="utf-8"))["results"]
        failed = [it for it in results if it["status"] in {"error", "fail"}]
        errors = [f"{it['unique_id']}: {it['message']}" for it in failed]
        return " ".join("".join(errors[:1]).split())[:500]


@task
def choose() -> list[str]:
    """Return the organisations of this run; none if there is nothing to load.

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
    now = datetime.now(UTC)
    due = [name for name in names if Variable.get(DUE.format(name), default="") <= str(now)]
    for name in due:
        Variable.set(DUE.format(name), str(now + TRY_AGAIN))  # its load sets another time
    work = due + with_news([name for name in names if name not in due])
    if not work:
        logger.info("Nothing to load: no organisation is due or has news.")
    return work


def with_news(names: list[str]) -> list[str]:
    """Return the organisations that a run has work for: news, or an unfinished run.

    Raises:
        RuntimeError: The command that compares states and notification logs failed.
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
        "on_success_callback": forget_alert,
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
        # is the memory of the workers (see SIZING.md) and the warehouse's connections.
        max_active_tis_per_dag=16,
        # Some 10,000 jobs at 60 requests a minute. The retry, or the next run, resumes.
        execution_timeout=timedelta(hours=3),
    ).expand(organisation=choose())
    # An incomplete load is built too, as far as it came, and no organisation waits for another.
    # What an earlier run has loaded and could not build is built even if nothing is loaded.
    build = Build(task_id="build", trigger_rule="all_done")
    # The last task decides the state of a run, and the build succeeds even if a load failed.
    loads >> build >> EmptyOperator(task_id="loaded", trigger_rule="none_failed") << loads
