"""A plugin that runs night after night, in processes that fork from one that has imported it.

The plugin's own Python runs this file, which so imports nothing of this project. dbt takes some
seconds to start and to read its project, and less than one to record a night.
"""

import gc
import json
import os
import sys
from collections.abc import Callable


def target() -> Callable[..., object]:
    """Import target-duckdb; returns its command."""
    from target_duckdb import main as command  # noqa: PLC0415

    def run(*arguments: str) -> object:
        sys.argv = ["target-duckdb", *arguments]
        return command()

    return run


def dbt() -> Callable[..., object]:
    """Import dbt and read its project; returns its command, which reads it no more."""
    from dbt.cli.main import dbtRunner  # noqa: PLC0415

    manifest = dbtRunner().invoke(["--quiet", "parse"]).result

    def run(*arguments: str) -> object:
        return not dbtRunner(manifest=manifest).invoke([*arguments]).success

    return run


def main(plugin: str) -> None:
    """For each line, run the plugin in a fork with these arguments and input; answer its status."""
    run = {"target": target, "dbt": dbt}[plugin]()
    gc.freeze()  # else the end of each fork takes long, over what was imported
    for line in sys.stdin:
        given, *arguments = json.loads(line)
        child = os.fork()
        if not child:
            with open(given, "rb") as file:  # noqa: PTH123  # in the Python of a plugin
                os.dup2(file.fileno(), 0)
            os.dup2(2, 1)  # answers alone go to stdout
            failed = bool(run(*arguments))
            sys.stdout.flush()
            os._exit(failed)  # DuckDB's threads, which a fork lacks, would end it with an abort
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
