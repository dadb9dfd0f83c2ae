"""Runs the project's Meltano on a sandbox, without any of the user's own settings."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple, Self

import click

from public_jobs_sandbox.server import LOCALHOST
from public_jobs_sandbox.state import Sandbox

REPOSITORY = Path(__file__).parents[2]
COMMAND = "$ meltano run tap-public-jobs target-duckdb"
SCHEMA = "public_jobs"
# The requests of a minute in a second: the throttle works, and the demo stays short.
REQUESTS, PERIOD = 60, 1


class LogLine(NamedTuple):
    """A log line of Meltano, or of uv while it installs Meltano."""

    source: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a line of Meltano's JSON log; any other line comes from uv."""
        try:
            entry: dict[str, Any] = json.loads(text)
            return cls(entry.get("name", "meltano"), entry["event"].strip())
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls("uv", text.strip())

    @property
    def is_shown(self) -> bool:
        """Whether the demo shows the line: it is about the sync, and not about Meltano itself."""
        shown = {
            "uv": ("",),
            "meltano": ("Install",),
            "tap-public-jobs": ("Fetching", "Details", "Synced", "The "),
            "target-duckdb": ("Loading",),
            "dbt-duckdb": ("public_jobs:",),
        }
        return self.text.startswith(shown.get(self.source, ("",)))

    def __str__(self) -> str:
        return f"  {self.source:<15}  {self.text}"


def uv_command() -> list[str]:
    """Return the command uv, which runs Meltano without installing it."""
    path = os.environ.get("UV") or shutil.which("uv")  # `uv run` sets UV
    if path is None:
        message = "uv was not found: install it, as https://docs.astral.sh/uv/ says."
        raise click.ClickException(message)
    return [path]


def environment(sandbox: Sandbox, base_url: str, database: Path, folder: Path) -> dict[str, str]:
    """Return variables that point Meltano at the sandbox, without any of the user's own.

    Args:
        sandbox: The API.
        base_url: Where it is served.
        database: The DuckDB file to fill.
        folder: For the state, so that the user's next sync resumes where their last one ended.
    """
    private = ("TAP_PUBLIC_JOBS_", "TARGET_DUCKDB_", "MELTANO_", "PUBLIC_JOBS_", "DBT_")
    inherited = {
        name: value for name, value in os.environ.items() if not name.upper().startswith(private)
    }
    no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    no_proxy = f"{no_proxy},{LOCALHOST}" if no_proxy else LOCALHOST
    return inherited | {
        "TAP_PUBLIC_JOBS_BASE_URL": base_url,
        "TAP_PUBLIC_JOBS_API_KEY": sandbox.key,
        "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": str(REQUESTS),
        "TAP_PUBLIC_JOBS_RATE_LIMIT_PERIOD_SECONDS": str(PERIOD),
        "TARGET_DUCKDB_FILEPATH": str(database),
        "TARGET_DUCKDB_DEFAULT_TARGET_SCHEMA": SCHEMA,
        "MELTANO_STATE_BACKEND_URI": "systemdb",
        "MELTANO_DATABASE_URI": f"sqlite:///{folder}/meltano.db",
        "no_proxy": no_proxy,
        "NO_PROXY": no_proxy,
    }


def install(variables: dict[str, str]) -> None:
    """Install the plugins of the demo that are not there."""
    plugins = ("extractors/tap-public-jobs", "loaders/target-duckdb", "utilities/dbt-duckdb")
    missing = [Path(it).name for it in plugins if not (REPOSITORY / ".meltano" / it).exists()]
    if missing:
        _meltano(variables, "install", *missing)


def run(variables: dict[str, str], *blocks: str, install: bool = True) -> None:
    """Sync into DuckDB, run more blocks, and print what matters; after a failure, the whole log.

    Args:
        variables: The environment.
        blocks: What runs after the sync.
        install: Whether to install plugins that are missing.
    """
    command = ["run", "tap-public-jobs", "target-duckdb", *blocks]
    _meltano(variables, *command, *([] if install else ["--no-install"]))


def _meltano(variables: dict[str, str], *arguments: str) -> None:
    """Run Meltano, and print what matters; after a failure, the whole log.

    Raises:
        click.ClickException: If it fails.
    """
    command = [*uv_command(), "tool", "run", "--from", "meltano~=4.4", "meltano"]
    # The user's .env is about their own API and warehouse.
    command += ["--env-file", os.devnull, "--log-format", "json"]
    command += arguments
    lines: list[LogLine] = []
    with subprocess.Popen(  # noqa: S603  # no shell, no user input
        command,
        cwd=REPOSITORY,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for text in process.stdout or ():
            line = LogLine.parse(text)
            lines.append(line)
            if line.is_shown:
                click.echo(line)
    if process.returncode == 0:
        return
    if not all(line.is_shown for line in lines):
        click.echo("\nThe whole log of Meltano:")
        for line in lines:
            click.echo(line)
    message = (
        "The run failed, and the last lines above say why. A first run needs the network, to "
        "install Meltano and its plugins."
    )
    raise click.ClickException(message)
