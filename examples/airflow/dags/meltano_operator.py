"""What tasks that run Meltano share: how they start it, log its output and end it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, BaseOperator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk.definitions.connection import Connection

TIME_TO_DRAIN = timedelta(minutes=5)
"""After a timeout: how long Meltano may take to end, and a target to load what it already has."""


class MeltanoOperator(BaseOperator):
    """Runs one command of Meltano, with the secrets of Airflow's connections.

    This is not a `BashOperator`: it reads secrets when the task runs, so they are in no template
    and in no field that Airflow stores.

    Args:
        project: The folder of meltano.yml, with its plugins installed.
        kwargs: What every operator takes.
    """

    def __init__(
        self,
        *,
        project: str,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(**kwargs)
        self.project = project
        self.meltano: subprocess.Popen[bytes] | None = None

    def _run(self, arguments: list[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
        """Run Meltano to its end; returns its status and the beginning of its output."""
        # A file, not a pipe: Meltano never ends once the reader of its pipe is gone, and Airflow
        # kills a task that has not ended five seconds after it was asked to stop.
        command = ["meltano", *arguments]
        with tempfile.TemporaryFile() as output:
            self.meltano = subprocess.Popen(  # noqa: S603  # no shell, and names are checked
                command,
                cwd=self.project,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Airflow may signal the group of a task, but `on_kill` decides what to end.
                start_new_session=True,
            )
            status = self._follow(self.meltano, output.fileno())
            return status, os.pread(output.fileno(), 65_536, 0)

    def _follow(self, meltano: subprocess.Popen[bytes], output: int) -> int:
        """Log each line of the output until Meltano has ended, and return its status."""
        shown = 0
        try:
            while meltano.poll() is None:
                shown = self._show(output, shown)
                time.sleep(1)
        except BaseException:  # execution_timeout
            self.on_kill()
            try:
                meltano.wait(TIME_TO_DRAIN.total_seconds())
            except subprocess.TimeoutExpired:
                os.killpg(meltano.pid, signal.SIGKILL)
                meltano.wait()
            raise
        finally:
            self._show(output, shown)
        return meltano.returncode

    def _show(self, output: int, shown: int) -> int:
        """Log the whole lines after the first `shown` bytes; return how many are shown then."""
        new = os.pread(output, os.fstat(output).st_size - shown, shown)
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.decode(errors="replace").splitlines():
            self.log.info("%s", line)
        return shown + len(whole)

    def on_kill(self) -> None:
        """End Meltano and what it started."""
        if self.meltano is not None and self.meltano.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.meltano.pid, signal.SIGTERM)


def worker_environment() -> dict[str, str]:
    """Return the variables of the worker without Airflow's, and the addresses of both databases."""
    inherited = {
        # Connections of other organisations may be among them.
        name: value
        for name, value in os.environ.items()
        if not name.lstrip("_").startswith("AIRFLOW")
    }
    return inherited | {
        "TARGET_POSTGRES_SQLALCHEMY_URL": _sqlalchemy_url("public_jobs_warehouse"),
        # State and locks. Meltano's own default is a file of SQLite, which workers on several
        # machines cannot share.
        "MELTANO_DATABASE_URI": _sqlalchemy_url("public_jobs_meltano"),
    }


def _sqlalchemy_url(connection: str) -> str:
    """Return the address of a PostgreSQL connection, with its password."""
    database: Connection = BaseHook.get_connection(connection)
    _, _, rest = database.get_uri().partition("://")
    return f"postgresql+psycopg://{rest}"
