"""How each client is installed and run, and how to read what it has left.

Timed is extraction: from the API to records on disk. Singer taps and Airbyte sources write messages
to stdout, which goes to a file. dlt goes as far as its files of extracted rows, and is spared
normalising and loading them. No client sends telemetry.

A second run in the same folder is given what the first has left of state. The API has no field that
tells what has changed, so that the peers' incremental features have nothing to go by: they fetch
everything again.
"""

from __future__ import annotations

import functools
import gzip
import importlib.metadata
import json
import shutil
import subprocess
import sys
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from benchmarks.clients import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from benchmarks.clients import Client, Order

Json = Any

HERE = Path(__file__).parent
JOBS = "jobs"
DETAILS = "job_details"
UNLIMITED = 1_000_000
"""Requests per period that no server here could answer."""

PARALLEL_ITEMS = 20
"""What dlt has by default; fewer than workers would leave some of them idle."""


class Messenger(ABC):
    """A program that writes messages to stdout, one JSON object a line."""

    name: str

    @abstractmethod
    def command(self, order: Order) -> list[str]:
        """Write the files that a run needs, but for state, and return its command."""

    @abstractmethod
    def record(self, message: Json) -> tuple[str, str]:
        """Return the stream and the id of a RECORD message."""

    @abstractmethod
    def next_state(self, states: list[Json]) -> Json:
        """Return what a run is given for the STATE messages of the one before."""

    def sync(self, order: Order) -> list[str]:
        """Return the command of one run, with the state of the one before if there is one."""
        command = self.command(order)
        state = order.folder / "state.json"
        # A run that ended without state leaves that of the run before it in force.
        if states := [message for _, message in _messages(order, "STATE")]:
            _write(state, self.next_state(states))
        if state.exists():
            command += ["--state", str(state)]
        return ["/bin/sh", "-c", 'exec "$@" > "$0"', str(_stdout(order)), *command]

    def stored(self, order: Order) -> Stored:
        """Read the messages of the last run."""
        ids: dict[str, set[str]] = {JOBS: set(), DETAILS: set()}
        for _, message in _messages(order, "RECORD"):
            stream, key = self.record(message)
            ids[stream].add(key)
        return Stored(
            frozenset(ids[JOBS]),
            frozenset(ids[DETAILS]),
            sum(len(line) for line, _ in _messages(order, "STATE")),
        )


class SingerTap(Messenger):
    """A Singer tap in the project's own environment: the same Python, and the same SDK.

    Args:
        name: What to call it.
        distribution: The distribution whose version tells what is measured.
        program: Its command without options.
    """

    def __init__(self, name: str, distribution: str, program: list[str]) -> None:
        self.name = name
        self._distribution = distribution
        self._program = program

    @abstractmethod
    def config(self, order: Order) -> dict[str, Json]:
        """Return the settings of the tap."""

    def install(self) -> str | None:
        """Find it installed."""
        return None

    def version(self) -> str:
        """Tell name and version."""
        return f"{self._distribution} {importlib.metadata.version(self._distribution)}"

    @override
    def command(self, order: Order) -> list[str]:
        config = order.folder / "config.json"
        _write(config, self.config(order))
        return [*self._program, "--config", str(config)]

    @override
    def record(self, message: Json) -> tuple[str, str]:
        return message["stream"], message["record"]["id"]

    @override
    def next_state(self, states: list[Json]) -> Json:
        return states[-1]["value"]

    def version_command(self) -> list[str]:
        """Return the command that tells the version."""
        return [*self._program, "--version"]

    def discover_command(self, order: Order) -> list[str]:
        """Return the command that writes the catalog."""
        return [*self.command(order), "--discover"]


class Ours(SingerTap):
    """This project's tap."""

    def __init__(self) -> None:
        program = Path(sys.executable).with_name("tap-public-jobs")
        super().__init__("tap-public-jobs", "tap-public-jobs", [str(program)])

    @override
    def config(self, order: Order) -> dict[str, Json]:
        return {
            "base_url": order.base_url,
            "api_key": order.key,
            "rate_limit_requests": order.requests or UNLIMITED,
            "rate_limit_period_seconds": order.period,
            "max_concurrent_requests": order.workers,
            **{name: _value(text) for name, text in order.settings},
        }


class SdkTemplate(SingerTap):
    """The tap that the SDK's template makes, see `sdk_template.py`."""

    def __init__(self) -> None:
        program = [sys.executable, str(HERE / "sdk_template.py")]
        super().__init__("singer-sdk template", "singer-sdk", program)

    @override
    def config(self, order: Order) -> dict[str, Json]:
        return {"api_url": order.base_url, "auth_token": order.key}


class Script:
    """A script with inline metadata (PEP 723), in an environment of its own.

    Args:
        file: Its name in this folder.
    """

    def __init__(self, file: str) -> None:
        self._file = str(HERE / file)

    def install(self) -> str | None:
        """Make its environment with the Python that all clients run on, and compile it.

        What uv has to say goes to stderr: it may name the host of a registry, and the reason is
        for publication.
        """
        if not shutil.which("uv"):
            return "uv is not on the PATH"
        python = ("--compile-bytecode", "--python", sys.executable)
        status = _uv("sync", "--quiet", *python, "--script", self._file).returncode
        return f"uv cannot install it (status {status})" if status else None

    @functools.cached_property
    def program(self) -> list[str]:
        """The command without options; uv is not part of it, and so not of what is timed."""
        python = _uv("python", "find", "--script", self._file).stdout.strip()
        return [python, self._file]

    def version_command(self) -> list[str]:
        """Return the command that tells the version."""
        return [*self.program, "--version"]

    def version(self) -> str:
        """Tell name and version."""
        told = subprocess.run(  # noqa: S603 (the script of this folder)
            self.version_command(), capture_output=True, text=True, check=True
        )
        return told.stdout.strip()


class Dlt(Script):
    """The generic source `rest_api` of dlt, see `dlt_rest_api.py`.

    Args:
        limited: Whether it is given a rate limiter.
    """

    def __init__(self, *, limited: bool) -> None:
        super().__init__("dlt_rest_api.py")
        self.name = f"dlt rest_api{', rate-limited' if limited else ''}"
        self._limited = limited

    def sync(self, order: Order) -> list[str]:
        """Return the command of one run, without the packages of the one before.

        Loading them would have taken them away. The state of the pipeline stays.
        """
        shutil.rmtree(_pipeline(order) / "normalize", ignore_errors=True)
        return self._command(order)

    def stored(self, order: Order) -> Stored:
        """Read the extracted rows, and the state of the pipeline."""
        state = _pipeline(order) / "state.json"
        return Stored(
            _extracted(order, JOBS),
            _extracted(order, DETAILS),
            state.stat().st_size if state.exists() else 0,
        )

    def discover_command(self, order: Order) -> list[str]:
        """Return the command that tells the tables."""
        return [*self._command(order), "--discover"]

    def _command(self, order: Order) -> list[str]:
        variables = {
            "DLT_DATA_DIR": order.folder,
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            "EXTRACT__WORKERS": order.workers,
            "EXTRACT__MAX_PARALLEL_ITEMS": max(PARALLEL_ITEMS, order.workers),
            "PUBLIC_JOBS__BASE_URL": order.base_url,
            "PUBLIC_JOBS__API_KEY": order.key,
        }
        if self._limited and order.requests:
            variables["PUBLIC_JOBS__REQUESTS"] = order.requests
            variables["PUBLIC_JOBS__PERIOD"] = order.period
        return [
            "/usr/bin/env",
            *(f"{it}={value}" for it, value in variables.items()),
            *self.program,
        ]


class Airbyte(Script, Messenger):
    """A declarative source of Airbyte's low-code CDK, see `airbyte.py`."""

    name = "airbyte-cdk low-code"

    def __init__(self) -> None:
        super().__init__("airbyte.py")

    @override
    def command(self, order: Order) -> list[str]:
        catalog = order.folder / "catalog.json"
        _write(catalog, {"streams": [_configured(stream) for stream in (JOBS, DETAILS)]})
        return [*self._with_config("read", order), "--catalog", str(catalog)]

    @override
    def record(self, message: Json) -> tuple[str, str]:
        return message["record"]["stream"], message["record"]["data"]["id"]

    @override
    def next_state(self, states: list[Json]) -> Json:
        last = {it["state"]["stream"]["stream_descriptor"]["name"]: it["state"] for it in states}
        return list(last.values())

    def discover_command(self, order: Order) -> list[str]:
        """Return the command that writes the catalog."""
        return self._with_config("discover", order)

    def _with_config(self, command: str, order: Order) -> list[str]:
        config = order.folder / "config.json"
        budget = {"requests": order.requests, "period": order.period} if order.requests else {}
        _write(
            config,
            {
                "base_url": order.base_url,
                "api_key": order.key,
                "workers": order.workers,
                **budget,
            },
        )
        return [*self.program, command, "--config", str(config)]


CLIENTS: list[Client] = [
    Ours(),
    SdkTemplate(),
    Dlt(limited=False),
    Dlt(limited=True),
    Airbyte(),
]
"""All of them, this project's tap first."""


def _configured(stream: str) -> Json:
    return {
        "stream": {
            "name": stream,
            "json_schema": {},
            "supported_sync_modes": ["full_refresh"],
        },
        "sync_mode": "full_refresh",
        "destination_sync_mode": "overwrite",
    }


def _stdout(order: Order) -> Path:
    return order.folder / "messages.jsonl"


def _messages(order: Order, kind: str) -> Iterator[tuple[bytes, Json]]:
    """Return the lines with messages of one type, and the messages."""
    for line in _lines(_stdout(order)):
        # The kind is looked for in the text first: most lines are of another one, and long.
        if kind.encode() in line:
            try:
                message = json.loads(line)
            except ValueError:  # the last line of a run that was killed
                continue
            if message["type"] == kind:
                yield line, message


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from file


def _pipeline(order: Order) -> Path:
    return order.folder / "pipelines" / "public_jobs"


def _extracted(order: Order, table: str) -> frozenset[str]:
    files = (_pipeline(order) / "normalize").rglob(f"{table}.*.typed-jsonl*")
    return frozenset(row["id"] for file in files for row in _rows(file))


def _rows(file: Path) -> Iterator[Mapping[str, Json]]:
    """Return the rows of a file in dlt's format, each line a list of them."""
    opened: Iterable[bytes]
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        try:
            for line in opened:
                yield from json.loads(line)
        except (EOFError, ValueError, zlib.error):
            return  # the end of a run that was killed


def _uv(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        ["uv", *arguments],  # noqa: S607 (it is where the user has put it)
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def _value(text: str) -> Json:
    """Read a setting: JSON if it is that, as `50` or `false`, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _write(path: Path, document: Json) -> None:
    path.write_text(json.dumps(document))
