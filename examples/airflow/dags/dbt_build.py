"""One build of the final tables of all organisations, as an Airflow task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from meltano_operator import MeltanoOperator, worker_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

BUILT = Asset("public_jobs_analytics")
"""The final tables, for DAGs that wait for them."""


class DbtBuild(MeltanoOperator):
    """Records what has changed, and builds and tests all final tables.

    Args:
        organisations: Returns the names of all organisations, whose schemas are united.
        after: The task whose loads are built; if none succeeded, there is nothing to do.
        kwargs: What every operator takes, and the project.
    """

    def __init__(
        self,
        *,
        organisations: Callable[[], list[str]],
        after: str,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(**kwargs)
        self.organisations = organisations
        self.after = after

    def execute(self, context: Context) -> None:
        """Run dbt to its end; its output is in the log of the task.

        Raises:
            AirflowException: dbt failed, or a test of the tables did.
            AirflowSkipException: No organisation was loaded.
        """
        run = context["ti"]
        states = run.get_task_states(dag_id=run.dag_id, task_ids=[self.after], run_ids=[run.run_id])
        if "success" not in states.get(run.run_id, {}).values():
            message = "No organisation was loaded."
            raise AirflowSkipException(message)
        os.umask(0o077)
        schemas = {"PUBLIC_JOBS_SCHEMAS": ",".join(self.organisations())}
        arguments = ["invoke", "--no-install", "dbt-postgres:build"]
        status, _ = self._run(arguments, worker_environment() | schemas)
        if status:
            message = f"dbt ended with status {status}."
            raise AirflowException(message)
