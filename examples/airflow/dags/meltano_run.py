"""One run of Meltano for one organisation, as an Airflow task."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from airflow.sdk import Asset, AssetAlias, BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from meltano_operator import TIME_TO_DRAIN, MeltanoOperator, worker_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

TAP, TARGET = "tap-public-jobs", "target-postgres"
LOADED = AssetAlias("public_jobs")
"""Stands for the asset `public_jobs_<organisation>` of every organisation."""
NO_NEWS = 1
"""Exit status of `public-jobs-webhook news` when the change log has nothing new."""
REFUSED = b"pipeline is already running"
"""What Meltano says when another run has the lock of the organisation's state."""


class MeltanoRun(MeltanoOperator):
    """Loads the published jobs of one organisation into its own schema.

    It stops the tap alone when the task is stopped: a signal to Meltano, or to all three processes,
    ends the target before Meltano has received its state, which repeats up to five minutes of
    requests.

    Args:
        organisation: Its name, as in organisations.yaml.
        detail_refresh: The tap's setting. Under `notified`, Meltano starts only if the
            organisation's change log has news.
        kwargs: What every operator takes, and the project; `outlets` must hold `LOADED`.
    """

    template_fields = ("detail_refresh",)

    def __init__(
        self,
        *,
        organisation: str,
        detail_refresh: str,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(**kwargs)
        self.organisation = organisation
        self.detail_refresh = detail_refresh

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
        arguments = ["el", TAP, TARGET, "--no-install", "--state-id", self.state_id]
        try:
            status, output = self._run(arguments, environment)
        finally:
            self._clean()
        refused = REFUSED in output
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

    def on_kill(self) -> None:
        """Stop the tap; the target and Meltano then end on their own, and keep its state."""
        if self.meltano is None or self.meltano.poll() is not None:
            return
        meltano = psutil.Process(self.meltano.pid)
        children = meltano.children(recursive=True)
        taps = [child for child in children if _runs(child, TAP)]
        # Without a child, Meltano is about to begin. With children but no tap, it is about to end.
        for process in taps or ([] if children else [meltano]):
            process.terminate()

    def _clean(self) -> None:
        """Remove what ended runs left: Meltano, when it is killed, leaves the key in a file.

        Meltano outlives a task that was killed. It is left alone for as long as a run may take, and
        then killed, so that it cannot block all later runs.
        """
        for meltano in psutil.process_iter():
            if _command_line(meltano)[-2:] == ["--state-id", self.state_id] and (
                _runs_in(meltano, self.project)
            ):
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
        """Return the variables of the worker and those of this run."""
        api = BaseHook.get_connection(f"public_jobs_{self.organisation}")
        environment = worker_environment() | {
            "TAP_PUBLIC_JOBS_API_KEY": api.password or "",
            "TAP_PUBLIC_JOBS_BASE_URL": api.host or "",
            "TAP_PUBLIC_JOBS_DETAIL_REFRESH": self.detail_refresh,
            "TARGET_POSTGRES_DEFAULT_TARGET_SCHEMA": self.organisation,
        }
        if changes_url := api.extra_dejson.get("changes_url"):
            environment["TAP_PUBLIC_JOBS_CHANGES_URL"] = changes_url
        return environment


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:  # it has ended since it was listed
        return []


def _runs_in(process: psutil.Process, folder: str) -> bool:
    # Another project on the same computer may have an organisation with the same name.
    try:
        return Path(process.cwd()) == Path(folder).resolve()
    except psutil.Error:
        return False


def _runs(process: psutil.Process, name: str) -> bool:
    # The interpreter, and the script that it runs.
    return name in [Path(part).name for part in _command_line(process)[:2]]
