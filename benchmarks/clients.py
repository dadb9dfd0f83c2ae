"""The programs that are measured: this project's tap, and what a user could pick instead.

Timed is extraction: from the API to records on disk.
Singer taps and Airbyte sources write messages to stdout, which goes to a file.
dlt writes its files of extracted rows; it does not normalise or load them.
No client sends telemetry.

A second run in the same folder starts with the state that the first one left, where there is one.
The API has no field that says when a job changed, so the peers can only fetch everything again.
"""

from __future__ import annotations

import functools
import gzip
import json
import shutil
import subprocess
import sys
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.fields import schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Json = Any
Ids = defaultdict[str, set[str]]
"""Ids of records, by stream."""

PEERS = Path(__file__).with_name("peers")
JOBS = "jobs"
DETAILS = "job_details"
UNLIMITED = 1_000_000
"""Requests per period that no server here could answer."""

WORKERS = 16
"""Requests that may be in flight at once, in clients that have several."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a client is asked to do: sync the summaries and details of one organisation.

    Attributes:
        base_url: Where the sandbox is.
        key: A key that it accepts.
        folder: The client's own: empty before its first run, kept for its next ones.
        requests: The budget: requests per `period` seconds; None if the server has no limit.
        period: Seconds.
        settings: Settings of this project's tap.
    """

    base_url: str
    key: str
    folder: Path
    requests: int | None = None
    period: float = 60.0
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def stdout(self) -> Path:
        """The file for what the client writes to stdout."""
        return self.folder / "messages.jsonl"

    def messages(self, kind: str) -> Iterator[tuple[bytes, Json]]:
        """Yield the lines with messages of one type, and the messages."""
        if not self.stdout.exists():
            return
        with self.stdout.open("rb") as lines:
            for line in lines:
                if kind.encode() in line:  # most lines are of another type, and long
                    try:
                        message = json.loads(line)
                    except ValueError:  # the last line of a run that was killed
                        continue
                    if message["type"] == kind:
                        yield line, message

    def write(self, name: str, document: Json) -> str:
        """Write a JSON file into the folder, and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)


@dataclass(frozen=True)
class Client:
    """A program that extracts both streams.

    Attributes:
        name: What the tables call it.
        distribution: Whose version is reported.
        config: Returns the content of its `--config` for an order.
        script: Its file in `peers/`; by default it is the command of the same name.
        isolated: Whether the script has inline metadata (PEP 723) and an environment of its own;
            by default it runs in the project's.
    """

    name: str
    distribution: str
    config: Callable[[Order], Json]
    script: str = ""
    isolated: bool = False

    def install(self) -> str | None:
        """Make it ready to run; return the reason in one line if that is not possible."""
        if not self.isolated:
            return None
        if not shutil.which("uv"):
            return "uv is not on the PATH"
        # All clients run on the same Python. What uv prints goes to stderr, not into the reason:
        # it may name the host of a registry, and the reason is published.
        options = ("--quiet", "--compile-bytecode", "--python", sys.executable)
        status = _output("uv", "sync", *options, "--script", str(PEERS / self.script)).returncode
        return f"uv cannot install it (status {status})" if status else None

    def version(self) -> str:
        """Return name and version, such as `dlt 1.31.0`."""
        code = f"from importlib.metadata import version; print(version({self.distribution!r}))"
        return f"{self.distribution} {_output(self._python, '-c', code).stdout.strip()}"

    def command(self, order: Order) -> list[str]:
        """Write the files that a run needs, and return its command."""
        # dlt's rows of the run before: a load would have removed them. The state stays.
        for folder in order.folder.glob("pipelines/*/normalize"):
            shutil.rmtree(folder)
        program = [str(Path(sys.executable).with_name(self.name))]
        if self.script:
            program = [self._python, str(PEERS / self.script)]
        command = [*program, "--config", order.write("config.json", self.config(order))]
        # A run that wrote no state leaves the state of the run before in force.
        for _, message in order.messages("STATE"):
            if "value" in message:  # Singer's; nothing passes on the state of a full refresh
                order.write("state.json", message["value"])
        state = order.folder / "state.json"
        return [*command, "--state", str(state)] if state.exists() else command

    @functools.cached_property
    def _python(self) -> str:
        if not self.isolated:
            return sys.executable
        return _output("uv", "python", "find", "--script", str(PEERS / self.script)).stdout.strip()


def extracted(order: Order) -> Ids:
    """Read what the last run of any client has left: messages, or dlt's files."""
    ids: Ids = defaultdict(set)
    for _, message in order.messages("RECORD"):
        record = message["record"]  # Airbyte's holds stream and data, Singer's is the data
        stream = message.get("stream") or record["stream"]
        ids[stream].add(record.get("data", record)["id"])
    for file in order.folder.glob("pipelines/*/normalize/**/*.typed-jsonl*"):
        table = file.name.partition(".")[0]
        ids[table].update(row["id"] for row in _rows(file) if "id" in row)
    return ids


def _rows(file: Path) -> Iterator[Mapping[str, Json]]:
    """Yield the rows of a file in dlt's format, each line a list of them."""
    opened: Iterable[bytes]
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        try:
            for line in opened:
                yield from json.loads(line)
        except (EOFError, ValueError, zlib.error):
            return  # the end of a run that was killed


def _output(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603


def _ours(order: Order) -> Json:
    return {
        "base_url": order.base_url,
        "api_key": order.key,
        "rate_limit_requests": order.requests or UNLIMITED,
        "rate_limit_period_seconds": order.period,
        "max_concurrent_requests": WORKERS,
        **order.settings,
    }


def _sdk_template(order: Order) -> Json:
    return {"api_url": order.base_url, "auth_token": order.key, "schemas": schemas()}


def _airbyte(order: Order) -> Json:
    return {
        "base_url": order.base_url,
        "api_key": order.key,
        "workers": WORKERS,
        "requests": order.requests,
        "period": order.period,
        "schemas": schemas(),
    }


def _dlt(order: Order) -> Json:
    return {
        "DLT_DATA_DIR": str(order.folder),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "EXTRACT__WORKERS": str(WORKERS),
        "PUBLIC_JOBS__BASE_URL": order.base_url,
        "PUBLIC_JOBS__API_KEY": order.key,
        "PUBLIC_JOBS__REQUESTS": str(order.requests or 0),
        "PUBLIC_JOBS__PERIOD": str(order.period),
    }


CLIENTS = [
    Client("tap-public-jobs", "tap-public-jobs", _ours),
    Client("singer-sdk template", "singer-sdk", _sdk_template, "sdk_template.py"),
    Client("dlt rest_api", "dlt", _dlt, "dlt_rest_api.py", isolated=True),
    Client("airbyte-cdk low-code", "airbyte-cdk", _airbyte, "airbyte.py", isolated=True),
]
"""All of them, this project's tap first."""
