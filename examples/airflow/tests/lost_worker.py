"""Asks Airflow for the callbacks that its scheduler asks for when workers die or a run is too long.

Runs with Airflow's variables: `python lost_worker.py DAG MAP_INDEX`.
"""

import sys

from airflow.callbacks.callback_requests import (
    DagCallbackRequest,
    DagRunContext,
    TaskCallbackRequest,
)
from airflow.callbacks.database_callback_sink import DatabaseCallbackSink
from airflow.executors.workloads.task import TaskInstanceDTO
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select

dag_id, map_index = sys.argv[1], int(sys.argv[2])
with create_session() as session:
    query = (
        select(TaskInstance)
        .where(TaskInstance.dag_id == dag_id, TaskInstance.map_index == map_index)
        .order_by(TaskInstance.start_date)
    )
    task = session.scalars(query).first()
    assert task
    file = task.dag_model.relative_fileloc or ""
    sink = DatabaseCallbackSink()
    sink.send(
        TaskCallbackRequest(
            filepath=file,
            bundle_name=task.dag_model.bundle_name,
            bundle_version=None,
            msg="no heartbeat",
            ti=TaskInstanceDTO.model_validate(task, from_attributes=True),
            task_callback_type=TaskInstanceState.FAILED,
        ),
        session=session,
    )
    # Airflow marks as skipped what a run that timed out had not finished.
    task.state = TaskInstanceState.SKIPPED
    sink.send(
        DagCallbackRequest(
            filepath=file,
            bundle_name=task.dag_model.bundle_name,
            bundle_version=None,
            msg="timed_out",
            dag_id=dag_id,
            run_id=task.run_id,
            context_from_server=DagRunContext(dag_run=task.dag_run, last_ti=task),
        ),
        session=session,
    )
