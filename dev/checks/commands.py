"""The command `uv run dev/checks/commands.py`: run every command on the pages.

Every fenced `bash` block of the pages for users runs, in order, in an empty home folder, with the
sandbox as the API and a temporary PostgreSQL.
Each section runs in a shell of its own, as in a terminal that a reader opens for it.
Blocks for a file, cron or systemd are handled as such: see `Block`.
It needs the network and 2 GB.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postgresql import postgresql
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
JOBS = 40
"""Few enough for the requests of each run to go out at once."""

MINE = ("TAP_", "TARGET_", "MELTANO_", "UV_", "VIRTUAL_ENV", "PYTHON", "PYENV")

ORDER = {
    "README.md": "origin/tap-public-jobs",
    "docs/set-up/start.md": ".",
    "docs/query/sql.md": "tap-public-jobs",
    "pipeline/transform/README.md": "tap-public-jobs",
    "docs/query/bi.md": "tap-public-jobs",
    "docs/query/columns.md": "tap-public-jobs",
    "docs/change/sandbox.md": "tap-public-jobs",
    "docs/set-up/deploy.md": ".",
    "docs/set-up/webhooks.md": ".",
}
"""The pages, and the folder below the home in which each of their sections begins.

`docs/set-up/start.md` makes the clone `tap-public-jobs`, and from its template the project
`my-pipeline`.
"""

AS_ONE_USER = {
    r"useradd .*--home-dir (\S+).*": r"mkdir \1",
    r"sudo -iu public-jobs\n": "",
    r"sudo -u public-jobs ": "",
    r"sudo ": "",
    r"-o public-jobs ": "",
    r"(/opt|/etc|/var/lib)/(tap-)?public-jobs": r"{home}\1/\2public-jobs",
    r"https://hooks\.example\.com": "http://127.0.0.1:8080",
}
"""Commands that need root, systemd or a domain, and what runs instead."""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str

    @property
    def command(self) -> str:
        """The shell commands that follow this block; empty if it is only shown."""
        first, _, rest = self.text.partition("\n")
        if self.language == "bash":
            return self.text
        if self.language == "crontab":
            return _cron(self.text)
        if "\nExecStart=" in self.text:
            return _service(self.text)
        if found := re.match(r"# (\.env|meltano\.yml|transform/\w+\.yml)(.*)", first):
            arrow = ">>" if found[2] else ">"
            return f"cat {arrow} {found[1]} <<'END'\n{rest}END\n"
        return ""


def _cron(crontab: str) -> str:
    """Run each line once, as cron does: with `sh`, and with the variables of the file."""
    commands = re.findall(r"^(?:\S+ +){5}(.+)$", crontab, re.MULTILINE)
    variables = re.findall(r"^\w+=.*$", crontab, re.MULTILINE)
    assignments = [f"export {variable}" for variable in variables]
    return "\n".join([*assignments, *(f"sh -c {shlex.quote(it)}" for it in commands), ""])


def _service(unit: str) -> str:
    """Run a unit as systemd does: once to its end, or in the background."""
    variables = re.findall(r"^Environment=(.+)$", unit, re.MULTILINE)
    folder = re.search(r"^WorkingDirectory=(.+)$", unit, re.MULTILINE)
    start = re.search(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    command = (
        f"cd {folder[1] if folder else '.'} && exec env {' '.join(variables)} {start and start[1]}"
    )
    if "Type=oneshot" in unit:
        return f"({command})\n"
    return f"({command}) & trap 'kill $!' EXIT; sleep 3\n"


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order, without their indentation."""
    found = re.findall(r"^( *)```(\w+)\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    return [
        Block(language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE))
        for indent, language, text in found
    ]


@click.command()
@click.option("--all-tests", is_flag=True, help="Run the tests too, and not only collect them.")
@click.argument("pages", nargs=-1, type=click.Choice([*ORDER]))
def main(*, all_tests: bool, pages: tuple[str, ...]) -> None:
    """Run the commands of these pages, or of all; the status is that of the first that fails."""
    sandbox = Sandbox.demo(jobs=JOBS, options=Options(limited=False))
    with (
        tempfile.TemporaryDirectory(prefix="pages") as folder,
        serving(sandbox) as base_url,
        postgresql() as address,
    ):
        home = Path(folder, "home")
        clone = home / "origin" / "tap-public-jobs"
        _copy_repository(clone)
        database = address.replace("postgresql:", "postgresql+psycopg:")
        given = {
            "copier copy --trust": f"copier copy --trust --defaults --data base_url={base_url} "
            f"--data api_key={sandbox.key} --data warehouse=postgres "
            f"--data credentials={shlex.quote(database)}",
            "your-key": sandbox.key,
            "https://jobs.example.com": base_url,
            "postgresql+psycopg://user:password@host/database": database,
            PROJECT["urls"]["Repository"]: str(clone),
        }
        if not all_tests:
            given["uv run pytest"] = "uv run pytest --collect-only --quiet"
        _run(_scripts(given, home, pages or tuple(ORDER)), home)


def _copy_repository(destination: Path) -> None:
    """Make a repository of the current files, committed or not."""
    git = ["git", "-c", "user.name=pages", "-c", "user.email=pages@example.com"]
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=REPOSITORY, text=True).splitlines()  # noqa: S603
    for name in names:
        if (REPOSITORY / name).is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, destination / name)  # with its mode
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *arguments], cwd=destination, check=True)  # noqa: S603


def _scripts(given: dict[str, str], home: Path, pages: tuple[str, ...]) -> Iterator[str]:
    """Yield the commands of each section of the pages."""
    for page in pages:
        folder = ORDER[page]
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        for section in re.split("^## ", text, flags=re.MULTILINE):
            commands = [it.command for it in blocks(section) if it.command]
            title = f"=== {page}: {section.splitlines()[0]}"
            script = "\n".join([f'cd "$HOME/{folder}"; set -x', *commands])
            for shown, real in given.items():
                script = script.replace(shown, real)
            for pattern, replacement in AS_ONE_USER.items():
                script = re.sub(pattern, replacement.replace("{home}", str(home)), script)
            if commands:
                yield f"echo {shlex.quote(title)}; {script}"


def _run(scripts: Iterable[str], home: Path) -> None:
    # `pip install uv` installs into a separate environment, whatever the computer has.
    subprocess.run([sys.executable, "-m", "venv", home / "python"], check=True)  # noqa: S603
    for name in ("opt", "etc", "var/lib"):
        (home / name).mkdir(parents=True)
    inherited = {name: it for name, it in os.environ.items() if not name.startswith(MINE)}
    path = [it for it in os.environ["PATH"].split(":") if not it.startswith(sys.prefix)]
    environment = (
        inherited
        | {name: os.environ[name] for name in ("UV_CACHE_DIR",) if name in os.environ}
        | {"HOME": str(home), "PATH": ":".join([f"{home}/.local/bin", f"{home}/python/bin", *path])}
        | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
    )
    for script in scripts:
        started = time.monotonic()
        command = ["/bin/bash", "-euo", "pipefail", "-c", script]
        finished = subprocess.run(command, cwd=home, env=environment, check=False)  # noqa: S603
        click.echo(f"Status {finished.returncode} after {time.monotonic() - started:.0f} s.")
        if finished.returncode:
            sys.exit(finished.returncode)


if __name__ == "__main__":
    main()
