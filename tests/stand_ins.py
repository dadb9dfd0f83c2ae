"""A project of the template whose programs are stand-ins, so that nothing is installed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from public_jobs_pipeline import cli

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("stand_ins.yml").read_text("utf-8"))
DRIVER = "postgresql+psycopg://"
# What became of a command: the status, what was called, and the last two lines.
Ended = tuple[int, list[str], str]

# The nth run of Meltano writes the log of the nth name in LOADS, and fails if its last line is an
# error. The command of dbt that FAILS names fails; or, if that is `first build`, the first build.
# STATES has a file for each state.
PROGRAMS = {
    ".venv/bin/meltano": """#!/bin/sh
flock --nonblock .lock true
[ "$?$(umask)" = 10077 ] || echo "not locked" >> calls
case "$2" in
run) echo "$TAP_PUBLIC_JOBS_DETAIL_REFRESH run" >> calls ;;
invoke) echo "invoke $4" >> calls ;;
esac
[ "$FAILS $(grep -c build calls)" != "first build 1" ] || FAILS=build
log="bin/$(echo $LOADS | cut -d' ' -f"$(grep -c run calls)").log"
case "$2 $4" in
run*) [ "$LOADS" != hangs ] || bin/tap-public-jobs | bin/target-duckdb
    cat "$log"; ! tail -n 1 "$log" | grep -q '"level": "error"' ;;
*:$FAILS) echo "04:00:00    Database Error in model open_jobs"; echo "  no space"; exit 2 ;;
*:build) cat built 2> /dev/null || true ;;
"invoke dbt-"*) cat history 2> /dev/null || true ;;
"state "*) [ "$FAILS" != state ] || { echo "no connection" >&2; exit 1; } ;;
esac || exit
case "$2 $3" in
"state get") cat "states/$4" 2> /dev/null || echo '{}' ;;
"state copy") cp "states/$5" "states/$6" ;;
"state set") mkdir -p states && echo "$6" > "states/$5" ;;
esac
""",
    "bin/tap-public-jobs": """#!/bin/sh
# It takes its time, so that a signal to the target would come before its end.
trap 'echo the tap stops; /bin/sleep 0.2; exit 143' TERM
mkfifo .pipe || exit
echo hanging
while read -r word < .pipe; do [ "$word" != end ] || exit 0; done
""",
    "bin/target-duckdb": """#!/bin/sh
trap 'echo the target is stopped; exit 143' TERM
while read -r line; do echo "$line"; done
echo the target loads what it has
""",
    "bin/sleep": """#!/bin/sh
echo "sleep $*" >> calls
[ -z "$WAITS" ] || { echo waiting; exec /bin/sleep 600; }
""",
    ".meltano/extractors/tap-public-jobs/venv/bin/tap-public-jobs-news": """#!/bin/sh
[ "$1" = .meltano/state.json ] && exit $NEWS
exit 9
""",
} | {
    f"bin/{load}.log": "".join(f"{json.dumps({'level': 'info'} | it)}\n" for it in lines)
    for load, lines in CASES["logs"].items()
}


class ProjectAtWork:
    """A project in its folder, and what it tells people and services."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder, self.patch, self.capture = folder, patch, capture
        self.heard: list[tuple[str, str]] = []  # by whom, and what
        self.refuses = False  # whether the service of messages does
        self.address = self.body_format = ""  # of the last message
        self.output = self.errors = ""  # of the last command
        for name, text in PROGRAMS.items():
            self.write(name, text).chmod(0o755)
        self.write("meltano.yml", MELTANO_YML)
        self.write("plugins.yml", "plugins: {}")
        self.write("output/warehouse.duckdb", "rows")
        self.write(".env.example", "TAP_PUBLIC_JOBS_API_KEY=\n")
        self.write(".env", "TAP_PUBLIC_JOBS_API_KEY=key\n")
        self.write("calls", "")
        self.answer()
        self.variables = {
            "PATH": f"{folder}/bin:/usr/bin:/bin",
            "ALERT_URL": "json://secret",
            "PING_URL": "https://secret",
            "FAILS": "none",
            "WAITS": "",
            "NEWS": "0",
        }

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def answer(self, **answers: Any) -> None:
        """Answer the questions of the template."""
        default = {"warehouse": "duckdb", "name": "acme_jobs", "schedule": "none"}
        self.write(".copier-answers.yml", yaml.safe_dump(default | answers))

    def run(self, *arguments: str, **variables: str) -> Ended:
        """Run a command of the program in this process."""
        self.write("calls", "")
        self.heard.clear()
        with self.patch.context() as patch:
            for name, it in (self.variables | variables).items():
                patch.setenv(name, it)
            status = cli.main([*arguments])
        self.output, self.errors = self.capture.readouterr()
        assert "secret" not in self.output + self.errors
        return status, self.calls(), "\n".join(self.output.rstrip().splitlines()[-2:])

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command of the program in a process of its own."""
        self.write("calls", "")
        return subprocess.Popen(
            [sys.executable, "-m", "public_jobs_pipeline", *arguments],
            env=os.environ | {"ALERT_URL": ""} | self.variables | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def calls(self) -> list[str]:
        lines = (self.folder / "calls").read_text("utf-8").splitlines()
        return [" ".join(it.split()) for it in lines]

    def states(self) -> dict[str, str]:
        return {it.name: it.read_text("utf-8") for it in (self.folder / "states").iterdir()}


MELTANO_YML = """
include_paths: [plugins.yml]
environments:
  - name: prod
    state_id_suffix: acme_jobs
    env: {PUBLIC_JOBS_ANALYTICS: acme_jobs_analytics}
"""


def lines_until(process: subprocess.Popen[str], text: str) -> Iterator[str]:
    """Yield what a process writes until a line has this text."""
    assert process.stdout
    for line in process.stdout:
        yield line
        if text in line:
            return
    pytest.fail(f"no line with {text}")
