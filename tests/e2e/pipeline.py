"""The tap and a real target, run by real Meltano or joined by a pipe, and servers for both."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Self

import yaml
from forked import Program
from public_jobs_sandbox.meltano import uv_command

REPOSITORY = Path(__file__).parents[2]
Settings = dict[str, Any]


@dataclass
class Finished:
    """What came of one command."""

    status: int
    output: str

    def succeeded(self) -> Self:
        """Fail the test if the command failed."""
        assert self.status == 0, self.output
        return self


def environment(**variables: str) -> dict[str, str]:
    """Variables without any that this shell may have for the tap, a target or Meltano.

    Images forbid Python to keep what it has compiled, and each process would compile it again.
    """
    private = ("TAP_", "TARGET_", "MELTANO_", "PYTHONDONTWRITEBYTECODE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return inherited | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"} | variables


def variables(plugin: str, settings: Settings) -> dict[str, str]:
    """The variables from which Meltano takes the settings of a plugin."""
    texts = {name: it if isinstance(it, str) else json.dumps(it) for name, it in settings.items()}
    return {f"{plugin}_{name}".replace("-", "_").upper(): it for name, it in texts.items()}


def run(*command: str | Path, folder: Path, given: str = "", **variables: str) -> Finished:
    """Run a command to its end, with this text on its stdin, and with more variables."""
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment(**variables),
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Finished(result.returncode, result.stdout)


@contextmanager
def listening(
    command: Sequence[str | Path], port: int, folder: Path, variables: dict[str, str]
) -> Iterator[None]:
    """Run a server in a folder, with all that it says in a file, from when its port is open."""
    output = folder / "output"
    with (
        output.open("ab") as file,
        subprocess.Popen(command, cwd=folder, env=variables, stdout=file, stderr=file) as server,
    ):
        try:
            while True:
                assert server.poll() is None, output.read_text("utf-8")
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield
        finally:
            server.terminate()


@contextmanager
def hearing(take: Callable[[str, bytes], tuple[int, bytes] | None]) -> Iterator[str]:
    """Hand over the path and the body of each request; yields the address, without its scheme.

    Answers with the status and the body that come back, or else as Slack does.
    """

    class HookHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = take(self.path, body) or (200, b"ok")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST  # noqa: N815  # the base class calls it

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), HookHandler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@dataclass
class MeltanoProject:
    """A copy of the project, in which Meltano runs."""

    folder: Path

    @classmethod
    def copied(cls, folder: Path) -> Self:
        """Copy it, so that the user's own warehouse and state are left alone."""
        for name in ("meltano.yml", ".python-version", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(REPOSITORY / name, folder)
        ignored = shutil.ignore_patterns("__pycache__", "*.duckdb")
        for package in ("tap_public_jobs", "sandbox", "pipeline", "receiver"):
            shutil.copytree(REPOSITORY / package, folder / package, ignore=ignored)
        (folder / "output").mkdir()
        return cls(folder)

    def meltano(self, target: str, *others: str, **variables: str) -> Finished:
        """Run the tap into a target; Meltano installs what is not there yet."""
        command = [*uv_command(), "tool", "run", "--from", "meltano~=4.4", "meltano", "run"]
        if (self.folder / ".meltano" / "loaders" / target).exists():
            command.append("--no-install")
        command += ["tap-public-jobs", target, *others]
        return run(*command, folder=self.folder, **variables)


@cache
def meltano_yml() -> dict[str, Any]:
    """The project's plugins."""
    return dict(yaml.safe_load((REPOSITORY / "meltano.yml").read_text("utf-8")))


def plugin(kind: str, name: str) -> dict[str, Any]:
    """A plugin as this project has it, in meltano.yml."""
    return next(dict(it) for it in meltano_yml()["plugins"][kind] if it["name"] == name)


def definition(kind: str, name: str) -> dict[str, Any]:
    """A plugin as `meltano add --from-ref` puts it into a project of one's own."""
    path = REPOSITORY / "pipeline" / "meltano" / kind / f"{name}.yml"
    return dict(yaml.safe_load(path.read_text("utf-8")))


@cache
def installed(requirements: str) -> Path:
    """Install a target in an environment of its own, once; returns the folder of its commands."""
    # Some targets need drivers that have no wheels for newer Pythons.
    package, *others = requirements.split()
    tool = [*uv_command(), "tool", "run", "--python", "3.11", "--from", package]
    tool += ["--overrides", str(REPOSITORY / "pipeline" / "transform" / "overrides.txt")]
    for other in others:
        tool += ["--with", other]
    script = "import sys; print(sys.prefix)"
    prefix = subprocess.check_output([*tool, "python", "-c", script], text=True)
    return Path(prefix.strip()) / "bin"


# What makes and updates projects of the template.
COPIER = "copier>=9.15.2,<10"


def copier(*arguments: str | Path, where: Path, **answers: str) -> Finished:
    """Run copier in a folder."""
    data = [f"--data={name}={answer}" for name, answer in answers.items()]
    command = [installed(COPIER) / "copier", *arguments, "--trust", "--defaults", *data]
    return run(*command, folder=where)


def commit(folder: Path, version: str) -> None:
    """Commit all files of a folder, and name the commit."""
    me = "git -c user.name=me -c user.email=me@example.com"
    script = f"git add --all && {me} commit --quiet --allow-empty -m All && git tag {version}"
    run("sh", "-c", script, folder=folder).succeeded()


# A script that imports its modules once for all tests; it ends with the process that asks it.
program = cache(Program)


def written(file: Path, value: Any) -> Path:
    """Write a value to a file of JSON."""
    file.write_text(json.dumps(value), "utf-8")
    return file


def options(folder: Path, **values: Settings | None) -> list[str | Path]:
    """Options of the tap, each with a file in this folder; none for what is empty."""
    found: list[str | Path] = []
    for name, value in values.items():
        if value:
            found += [f"--{name}", written(folder / f"{name}.json", value)]
    return found
