"""A plugin that runs night after night in one process, which has imported it.

The plugin's own Python runs this file, which so imports nothing of this project. dbt takes some
seconds to start and to read its project, and less than one to record a night.
"""

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path


def target() -> Callable[..., object]:
    """Import target-duckdb; returns its command."""
    from target_duckdb import main as command  # noqa: PLC0415

    def run(*arguments: str) -> object:
        sys.argv = ["target-duckdb", *arguments]
        return command()

    return run


def dbt() -> Callable[..., object]:
    """Import dbt and read its project; returns its command, which reads it no more."""
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager  # noqa: PLC0415
    from dbt.cli.main import dbtRunner  # noqa: PLC0415

    manifest = dbtRunner().invoke(["--quiet", "parse"]).result

    def run(*arguments: str) -> object:
        ended = dbtRunner(manifest=manifest).invoke([*arguments])
        DuckDBConnectionManager.close_all_connections()
        return not ended.success

    return run


def main(plugin: str) -> None:
    """For each line, run the plugin with these arguments and this input; answer its status."""
    run = {"target": target, "dbt": dbt}[plugin]()
    questions, answers = sys.stdin, sys.stdout
    for line in questions:
        given, *arguments = json.loads(line)
        with (
            Path(given).open(encoding="utf-8") as sys.stdin,
            contextlib.redirect_stdout(sys.stderr),
        ):
            failed = bool(run(*arguments))
        print(int(failed), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
