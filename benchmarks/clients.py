"""The programs that are measured: this project's tap, and dlt.

The time measured is that of extraction: from the API to records on disk.
The tap writes messages to stdout, which goes to a file.
dlt writes its files of extracted rows; it does not normalise or load them, and sends no telemetry.

A second run in the same folder starts with the state that the first one left, where there is one.
The API has no field that says when a job changed, so dlt can only fetch everything again.
"""

import functools
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from public_jobs_sandbox.state import Sandbox

Json = Any
PEERS = Path(__file__).with_name("peers")
JOBS = "jobs"
DETAILS = "job_details"
UNLIMITED = 1_000_000  # requests per period that no server here could answer
WORKERS = 16  # requests that may be in flight at once, in clients that have several


class World(NamedTuple):
    """A sandbox, and its address."""

    sandbox: Sandbox
    url: str


class Order(NamedTuple):
    """What a client is asked to do: sync the summaries and details of one organisation.

    Attributes:
        world: Where they are, and the limit there.
        folder: The client's own: empty before its first run, kept for its next ones.
        settings: Settings of this project's tap.
    """

    world: World
    folder: Path
    settings: Mapping[str, str | float] = MappingProxyType({})

    @property
    def stdout(self) -> Path:
        """The file for what the client writes to stdout."""
        return self.folder / "messages.jsonl"

    def messages(self, kind: str) -> Iterator[tuple[bytes, Json]]:
        """Yield the lines with messages of one type, and the messages."""
        # Most lines are of another type, and long.
        for line, message in _documents(self.stdout, containing=kind.encode()):
            if message["type"] == kind:
                yield line, message

    def write(self, name: str, document: Json) -> str:
        """Write a JSON file into the folder, and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)


class LeftOutError(Exception):
    """Why something cannot be measured, in one line."""


@dataclass(frozen=True)
class Client:
    """A program that extracts both streams.

    Attributes:
        name: What the tables call it.
        distribution: Whose version is reported.
        config: Returns the content of its `--config` for an order.
        script: Its file in `peers/`, with an environment of its own (PEP 723); by default it is
            the command of the same name.
    """

    name: str
    distribution: str
    config: Callable[[Order], Json]
    script: str = ""

    def version(self) -> str:
        """Return name and version, such as `dlt 1.31.0`, or raise `LeftOutError`."""
        code = f"from importlib.metadata import version; print(version({self.distribution!r}))"
        return f"{self.distribution} {_output(self._python, '-c', code)}"

    def command(self, order: Order) -> list[str]:
        """Write the files that a run needs, and return its command."""
        # dlt's rows of the previous run: a load would have removed them. The state stays.
        for folder in order.folder.glob("pipelines/*/normalize"):
            shutil.rmtree(folder)
        program = [str(Path(sys.executable).with_name(self.name))]
        if self.script:
            program = [self._python, str(PEERS / self.script)]
        command = [*program, "--config", order.write("config.json", self.config(order))]
        # If a run wrote no state, the state of the previous run still counts.
        for _, message in order.messages("STATE"):
            order.write("state.json", message["value"])
        state = order.folder / "state.json"
        return [*command, "--state", str(state)] if state.exists() else command

    @functools.cached_property
    def _python(self) -> str:
        if not self.script:
            return sys.executable
        script = ("--script", str(PEERS / self.script))
        # All clients run on the same Python.
        install("sync", "--compile-bytecode", "--python", sys.executable, *script)
        return _output("uv", "python", "find", *script)


def install(*arguments: str) -> str:
    """Install something with uv, and return what it prints; raise `LeftOutError` if that fails."""
    try:
        return _output("uv", "--quiet", *arguments)
    except FileNotFoundError:
        reason = "uv is not on the PATH"
    except subprocess.CalledProcessError as error:
        # What uv prints goes to stderr. It may name the host of a registry, and this is published.
        reason = f"uv cannot install it (status {error.returncode})"
    raise LeftOutError(reason)


def extracted(order: Order) -> Mapping[str, set[str]]:
    """Return the ids that the last run of a client has written, by stream."""
    ids = defaultdict[str, set[str]](set)
    for _, message in order.messages("RECORD"):
        ids[message["stream"]].add(message["record"]["id"])
    # What dlt writes; each line is a list of rows.
    for file in order.folder.glob("pipelines/*/normalize/**/*.typed-jsonl"):
        rows = (row for _, several in _documents(file) for row in several)
        ids[file.name.partition(".")[0]].update(row["id"] for row in rows if "id" in row)
    return ids


def _documents(file: Path, containing: bytes = b"") -> Iterator[tuple[bytes, Json]]:
    if file.exists():
        with file.open("rb") as lines:
            for line in lines:
                if containing in line and line.endswith(b"\n"):  # otherwise the run was killed
                    yield line, json.loads(line)


def _output(*command: str) -> str:
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return ended.stdout.strip()


def _ours(order: Order) -> Json:
    options = order.world.sandbox.options
    return {
        "base_url": order.world.url,
        "api_key": order.world.sandbox.key,
        "max_concurrent_requests": WORKERS,
        "rate_limit_requests": options.limit_requests if options.limited else UNLIMITED,
        "rate_limit_period_seconds": options.limit_period,
        **order.settings,
    }


def _dlt(order: Order) -> Json:
    return {
        "DLT_DATA_DIR": str(order.folder),
        "DATA_WRITER__DISABLE_COMPRESSION": "true",
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "EXTRACT__WORKERS": str(WORKERS),
        "PUBLIC_JOBS__BASE_URL": order.world.url,
        "PUBLIC_JOBS__API_KEY": order.world.sandbox.key,
    }


def _dlt_with_limit(order: Order) -> Json:
    options = order.world.sandbox.options
    limit = {
        "PUBLIC_JOBS__REQUESTS": str(options.limit_requests),
        "PUBLIC_JOBS__PERIOD": str(options.limit_period),
    }
    return _dlt(order) | limit


# This project's tap first.
CLIENTS = [
    Client("tap-public-jobs", "tap-public-jobs", _ours),
    Client("dlt rest_api", "dlt", _dlt, "dlt_rest_api.py"),
]

# One more, which keeps a limit.
DLT_WITH_LIMIT = Client(
    "dlt rest_api + requests-ratelimiter",
    "requests-ratelimiter",
    _dlt_with_limit,
    "dlt_rest_api.py",
)
