"""One run of Meltano for one organisation, as a task of Airflow."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from airflow.sdk import BaseHook, BaseOperator
from airflow.sdk.exceptions import AirflowException

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.definitions.connection import Connection

TAP, TARGET = "tap-public-jobs", "target-postgres"
SECONDS_TO_DRAIN = 300
"""After a timeout: how long the target may take to load what it has been given."""


class MeltanoRun(BaseOperator):
    """Loads the published jobs of one organisation into its own schema.

    An operator rather than `BashOperator`, for two reasons: secrets are read here, when the task
    runs, and so are in no template and no field that Airflow stores; and a task that is stopped
    stops the tap alone. A signal to all three processes, or to Meltano, ends the target before
    Meltano has heard of its state, and up to five minutes of requests are made again.

    Args:
        organisation: Its name, as in organisations.yaml.
        project: The folder of meltano.yml, with its plugins installed.
    """

    def __init__(self, *, organisation: str, project: str, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(**kwargs)
        self.organisation = organisation
        self.project = project
        self.meltano: subprocess.Popen[bytes] | None = None

    def execute(self, context: Context) -> None:  # noqa: ARG002  # Airflow's signature
        """Run Meltano to its end; what it prints is in the log of the task.

        Raises:
            AirflowException: It failed. A retry goes on where it stopped.
        """
        # `meltano el`, not `meltano run`: of the two only `el` has a folder for each run. Two
        # `meltano run` at once write their catalogs and states to the same files.
        command = ["meltano", "el", TAP, TARGET, "--no-install"]
        command += ["--state-id", f"public_jobs_{self.organisation}"]
        # A file, not a pipe: Meltano never ends once the reader of its pipe is gone, and Airflow
        # kills a task that is not done five seconds after it was asked to stop.
        with tempfile.TemporaryFile() as output:
            self.meltano = subprocess.Popen(  # noqa: S603  # no shell, and names are checked
                command,
                cwd=self.project,
                env=self._environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                # Airflow may signal the group of a task, and its signals are for the tap alone.
                start_new_session=True,
            )
            status = self._follow(self.meltano, output.fileno())
        if status:
            message = f"Meltano ended with status {status} for {self.organisation}."
            raise AirflowException(message)

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
                meltano.wait(SECONDS_TO_DRAIN)
            except subprocess.TimeoutExpired:
                os.killpg(meltano.pid, signal.SIGKILL)
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
        """Stop the tap; target and Meltano then end by themselves, with its state kept."""
        if self.meltano is None or self.meltano.poll() is not None:
            return
        meltano = psutil.Process(self.meltano.pid)
        children = meltano.children(recursive=True)
        taps = [child for child in children if _runs(child, TAP)]
        # Without any child Meltano is about to begin. With others than the tap it is about to end.
        for process in taps or ([] if children else [meltano]):
            process.terminate()

    def _environment(self) -> dict[str, str]:
        """Return the variables of the worker, without Airflow's, and those of this run."""
        api = BaseHook.get_connection(f"public_jobs_{self.organisation}")
        inherited = {
            # Connections of other organisations may be among them.
            name: value
            for name, value in os.environ.items()
            if not name.lstrip("_").startswith("AIRFLOW")
        }
        return inherited | {
            "TAP_PUBLIC_JOBS_API_KEY": api.password or "",
            "TAP_PUBLIC_JOBS_BASE_URL": api.host or "",
            "TARGET_POSTGRES_SQLALCHEMY_URL": _sqlalchemy_url("public_jobs_warehouse"),
            "TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA": self.organisation,
            # State and locks. Meltano's own default is a file of SQLite, which workers on several
            # machines cannot share.
            "MELTANO_DATABASE_URI": _sqlalchemy_url("public_jobs_meltano"),
        }


def _sqlalchemy_url(connection: str) -> str:
    """Return the address of a PostgreSQL connection, with its password."""
    database: Connection = BaseHook.get_connection(connection)
    _, _, rest = database.get_uri().partition("://")
    return f"postgresql+psycopg://{rest}"


def _runs(process: psutil.Process, name: str) -> bool:
    try:
        # The interpreter, and the script that it runs.
        return name in [Path(part).name for part in process.cmdline()[:2]]
    except psutil.Error:  # it has ended meanwhile
        return False
