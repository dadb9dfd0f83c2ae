"""One run of Meltano for one organisation, as an Airflow task."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from airflow.sdk import Asset, AssetAlias, BaseHook, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context
    from airflow.sdk.definitions.connection import Connection

TAP, TARGET = "tap-public-jobs", "target-postgres"
LOADED = AssetAlias("public_jobs")
"""Stands for the asset `public_jobs_<organisation>` of every organisation."""
TIME_TO_DRAIN = timedelta(minutes=5)
"""After a timeout: how long the target may take to load what it already has."""
NO_NEWS = 1
"""Exit status of `public-jobs-webhook news` when the change log has nothing new."""
REFUSED = b"pipeline is already running"
"""What Meltano says when another run has the lock of the organisation's state."""


class MeltanoRun(BaseOperator):
    """Loads the published jobs of one organisation into its own schema.

    This is an operator of its own, rather than a `BashOperator`, for two reasons. It reads secrets
    when the task runs, so they are in no template and in no field that Airflow stores. And it stops
    the tap alone when the task is stopped: a signal to Meltano, or to all three processes, ends the
    target before Meltano has received its state, which repeats up to five minutes of requests.

    Args:
        organisation: Its name, as in organisations.yaml.
        project: The folder of meltano.yml, with its plugins installed.
        detail_refresh: The tap's setting. Under `notified`, Meltano starts only if the
            organisation's change log has news.
        kwargs: What every operator takes; `outlets` must hold `LOADED`.
    """

    template_fields = ("detail_refresh",)

    def __init__(
        self,
        *,
        organisation: str,
        project: str,
        detail_refresh: str,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(**kwargs)
        self.organisation = organisation
        self.project = project
        self.detail_refresh = detail_refresh
        self.meltano: subprocess.Popen[bytes] | None = None

    @property
    def state_id(self) -> str:
        """The name of the organisation's state, lock and run folder in Meltano."""
        return f"public_jobs_{self.organisation}"

    def execute(self, context: Context) -> None:
        """Run Meltano to its end; its output is in the log of the task.

        Raises:
            AirflowException: Meltano failed. A retry resumes where it stopped.
        """
        # Meltano writes the key to a file while it runs. Nobody else on the worker may read it.
        os.umask(0o077)
        self._clean()
        environment = self._environment()
        if self.detail_refresh == "notified":
            self._skip_without_news(environment)
        # `meltano el`, not `meltano run`: only `el` has a folder for each run. Two `meltano run` at
        # once write their catalogs and states to the same files.
        command = ["meltano", "el", TAP, TARGET, "--no-install", "--state-id", self.state_id]
        # A file, not a pipe: Meltano never ends once the reader of its pipe is gone, and Airflow
        # kills a task that has not ended five seconds after it was asked to stop.
        with tempfile.TemporaryFile() as output:
            self.meltano = subprocess.Popen(  # noqa: S603  # no shell, and names are checked
                command,
                cwd=self.project,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Airflow may signal the group of a task, and its signals are for the tap alone.
                start_new_session=True,
            )
            try:
                status = self._follow(self.meltano, output.fileno())
            finally:
                self._clean()
            refused = REFUSED in os.pread(output.fileno(), 65_536, 0)
        if refused and self.detail_refresh == "notified":
            # The news stays in the change log.
            message = f"Another run is loading {self.organisation}. The next one reads its news."
            raise AirflowSkipException(message)
        if status:
            message = f"Meltano ended with status {status} for {self.organisation}."
            raise AirflowException(message)
        context["outlet_events"][LOADED].add(Asset(name=self.state_id))

    def _skip_without_news(self, environment: Mapping[str, str]) -> None:
        """Compare the organisation's change log with its state.

        Raises:
            AirflowException: They cannot be compared.
            AirflowSkipException: There is nothing to load.
        """
        if "TAP_PUBLIC_JOBS_CHANGES_URL" not in environment:
            message = f"{self.organisation} has no change log: its connection has no changes_url."
            raise AirflowSkipException(message)
        state = self._call(["meltano", "state", "get", self.state_id], environment)
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(state.stdout)
            command = ["public-jobs-webhook", "news", "--state", file.name]
            news = self._call(command, environment, accepted=(0, NO_NEWS))
        if news.returncode == NO_NEWS:
            if news.stderr:  # Python ends a program that crashes with the same status
                message = f"The check for news of {self.organisation} failed: see the log above."
                raise AirflowException(message)
            message = f"No news of {self.organisation}."
            raise AirflowSkipException(message)

    def _call(
        self, command: list[str], environment: Mapping[str, str], accepted: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a short command in the project.

        Raises:
            AirflowException: It ended with a status that is not accepted.
        """
        done = subprocess.run(  # noqa: S603  # no shell, and names are checked
            command, cwd=self.project, env=environment, capture_output=True, check=False
        )
        for line in done.stderr.decode(errors="replace").splitlines():
            self.log.info("%s", line)
        if done.returncode not in accepted:
            name = " ".join(command[:2])
            message = f"{name} ended with status {done.returncode} for {self.organisation}."
            raise AirflowException(message)
        return done

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
        """Stop the tap; target and Meltano then end by themselves, with its state kept."""
        if self.meltano is None or self.meltano.poll() is not None:
            return
        meltano = psutil.Process(self.meltano.pid)
        children = meltano.children(recursive=True)
        taps = [child for child in children if _runs(child, TAP)]
        # Without any child Meltano is about to begin. With others than the tap it is about to end.
        for process in taps or ([] if children else [meltano]):
            process.terminate()

    def _clean(self) -> None:
        """Remove what ended runs left: Meltano, when it is killed, leaves the key in a file.

        A Meltano outlives a task that was killed. It is left alone until it must be hung, because
        no run may take that long; then it is killed, so that it cannot block all later runs.
        """
        for meltano in psutil.process_iter():
            if _command_line(meltano)[-2:] == ["--state-id", self.state_id]:
                if not self._is_hung(meltano):
                    return
                self.log.warning("Killing Meltano %s of an earlier run: it hangs.", meltano.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(meltano.pid, signal.SIGKILL)
        folder = Path(self.project) / ".meltano" / "run" / "elt" / self.state_id
        shutil.rmtree(folder, ignore_errors=True)

    def _is_hung(self, meltano: psutil.Process) -> bool:
        if self.execution_timeout is None:
            return False
        longest = self.execution_timeout + TIME_TO_DRAIN
        return bool(time.time() - meltano.create_time() > longest.total_seconds())

    def _environment(self) -> dict[str, str]:
        """Return the variables of the worker, without Airflow's, and those of this run."""
        api = BaseHook.get_connection(f"public_jobs_{self.organisation}")
        inherited = {
            # Connections of other organisations may be among them.
            name: value
            for name, value in os.environ.items()
            if not name.lstrip("_").startswith("AIRFLOW")
        }
        environment = inherited | {
            "TAP_PUBLIC_JOBS_API_KEY": api.password or "",
            "TAP_PUBLIC_JOBS_BASE_URL": api.host or "",
            "TAP_PUBLIC_JOBS_DETAIL_REFRESH": self.detail_refresh,
            "TARGET_POSTGRES_SQLALCHEMY_URL": _sqlalchemy_url("public_jobs_warehouse"),
            "TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA": self.organisation,
            # State and locks. Meltano's own default is a file of SQLite, which workers on several
            # machines cannot share.
            "MELTANO_DATABASE_URI": _sqlalchemy_url("public_jobs_meltano"),
        }
        if changes_url := api.extra_dejson.get("changes_url"):
            environment["TAP_PUBLIC_JOBS_CHANGES_URL"] = changes_url
        return environment


def _sqlalchemy_url(connection: str) -> str:
    """Return the address of a PostgreSQL connection, with its password."""
    database: Connection = BaseHook.get_connection(connection)
    _, _, rest = database.get_uri().partition("://")
    return f"postgresql+psycopg://{rest}"


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:  # it has ended since it was listed
        return []


def _runs(process: psutil.Process, name: str) -> bool:
    # The interpreter, and the script that it runs.
    return name in [Path(part).name for part in _command_line(process)[:2]]
