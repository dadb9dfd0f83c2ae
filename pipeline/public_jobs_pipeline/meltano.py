"""Runs commands of Meltano to their end, and reads their log."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from public_jobs_pipeline.project import TAP, Flaw

MELTANO = (".venv/bin/meltano", "--log-format=json")
# After a signal, the target has this long to load what it has.
TIME_TO_STOP = 100


class Interrupted(BaseException):
    """A signal, or the time limit, which is SIGALRM."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number
        self.is_time_limit = number == signal.SIGALRM


class Line(NamedTuple):
    """A line of the log: from Meltano or the plugin `source`, or plain text of another program."""

    source: str
    text: str
    fields: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a line of JSON; any other line is text."""
        try:
            fields = json.loads(text)
            return cls(fields.get("name", "meltano"), str(fields["event"]).strip(), fields)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls("", re.sub(r"\x1b\[\d*m", "", text).strip(), {})

    def show(self) -> None:
        """Print the line; as JSON if Meltano is set to log JSON."""
        if os.environ.get("MELTANO_CLI_LOG_FORMAT") == "json" and self.fields:
            print(json.dumps(self.fields), flush=True)
        elif self.text != "METRIC":
            print(
                f"{time.strftime('%H:%M:%S')}  {self.source:<15}  {self.text}".rstrip(), flush=True
            )


def run(*command: str | Path, **variables: str) -> tuple[int, list[Line]]:
    """Run a command to its end, and show what it writes.

    Returns:
        Its status, and its lines.
    """
    lines = []
    with subprocess.Popen(  # noqa: S603  # no user input
        command,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # a signal to the group of this process must not reach it
        close_fds=command[0] != MELTANO[0],  # Meltano keeps the lock if this process is killed
    ) as process:
        assert process.stdout  # noqa: S101  # it is a pipe
        try:
            for text in process.stdout:
                lines.append(Line.parse(text))
                lines[-1].show()
        except Interrupted:
            killer = threading.Timer(TIME_TO_STOP, os.killpg, [process.pid, signal.SIGKILL])
            killer.start()
            stop(process.pid)
            for text in process.stdout:
                Line.parse(text).show()
            killer.cancel()
            raise
    return process.returncode, lines


def stop(group: int) -> None:
    """End what Meltano runs; if the tap is running, only that, so that the target can finish."""
    import psutil  # noqa: PLC0415  # only a signal needs it

    with suppress(psutil.Error, ProcessLookupError):  # it has just ended
        for process in psutil.Process(group).children(recursive=True):
            if any(word.endswith(f"/{TAP}") for word in process.cmdline()[:2]):
                process.terminate()
                return
        os.killpg(group, signal.SIGTERM)


def load(target: str, detail_refresh: str = "") -> tuple[int, list[Line]]:
    """Run the tap and the target; an empty `detail_refresh` is that of meltano.yml."""
    mode = {"TAP_PUBLIC_JOBS_DETAIL_REFRESH": detail_refresh} if detail_refresh else {}
    return run(*MELTANO, "run", "--no-install", TAP, target, **mode)


def dbt(warehouse: str, command: str) -> tuple[int, list[Line]]:
    """Run a command of dbt, as plugins.yml defines it."""
    return run(*MELTANO, "invoke", "--no-install", f"dbt-{warehouse}:{command}")


def quietly(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command of Meltano whose output is an answer, and no log."""
    return subprocess.run([*MELTANO, *arguments], capture_output=True, check=False)  # noqa: S603


def has_history(warehouse: str) -> bool:
    """Return whether an earlier build has recorded history in the warehouse."""
    macro = "public_jobs.print_whether_history_is_there"
    ended = quietly("invoke", "--no-install", f"dbt-{warehouse}", "run-operation", macro)
    return b"history is there" in ended.stdout


def get_state(state_id: str) -> bytes:
    """Return a state as `meltano state get` prints it; empty if there is none.

    Raises:
        Flaw: It cannot be read.
    """
    got = quietly("state", "get", state_id)
    if got.returncode:
        lines = [Line.parse(text) for text in got.stderr.decode(errors="replace").splitlines()]
        message = f"The state {state_id} cannot be read: {reason(lines, TAP)}"
        raise Flaw(message)
    return got.stdout if json.loads(got.stdout or "{}") else b""


def set_state(state_id: str, state: dict[str, Any]) -> None:
    """Keep a state under this name.

    Raises:
        Flaw: It cannot be kept.
    """
    text = json.dumps({"singer_state": state})
    ended = quietly("state", "set", "--force", state_id, text)
    if ended.returncode:
        lines = [Line.parse(it) for it in ended.stderr.decode(errors="replace").splitlines()]
        message = f"The state {state_id} cannot be kept: {reason(lines, TAP)}"
        raise Flaw(message)


def reason(lines: list[Line], plugin: str) -> str:
    """Return the last line of the plugin that failed, or else of Meltano."""
    by_plugin = [line for line in lines if line.source == plugin and line.text]
    others = [line for line in lines if line.text and "exit_codes" not in line.fields]
    # `meltano invoke` does not say whose a line is, and writes no critical one itself.
    critical = [
        line
        for line in others
        if line.fields.get("level") == "critical" and line.source in {plugin, "meltano"}
    ]
    errors = [line for line in others if line.fields.get("level") == "error"]
    found = critical or (by_plugin if plugin != TAP else []) or errors or others
    # A database may write several lines, and quote all rows of its statement.
    return " ".join(found[-1].text.split())[:1000] if found else "it wrote nothing"


def reason_of_dbt(lines: list[Line]) -> str:
    """Return the first error of dbt, which may begin on the line after the name of a model."""
    texts = [line.text for line in lines]
    for number, text in enumerate(texts):
        if re.search(r"Error in|ERROR STALE|Error: ", text):
            found = [text, *texts[number + 1 : number + 2]]
            return " ".join(re.sub(r"^\d\d:\d\d:\d\d\s+", "", text) for text in found)
    return reason(lines, TAP)  # Meltano could not start it


def target_broke(lines: list[Line], target: str) -> bool:
    """Return whether the target failed, in a run that failed."""
    for line in lines:
        if "exit_codes" in line.fields:
            return "loaders" in line.fields["exit_codes"]
    # Meltano fails without such a line if the target ends while Meltano writes to it.
    return any(line.source == target for line in lines)
