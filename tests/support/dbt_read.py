"""Runs dbt in forks of a process that has read the package, which takes longer than a short build.

A build of the package as it is, without variables, takes what was read; all other runs read anew.
This file belongs to the Python of dbt.
"""

import gc
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.factory import cleanup_connections
from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest
from dbt_common.clients.jinja import template_cache

PACKAGE = Path(__file__).parents[2] / "pipeline" / "transform"
ADAPTER = "duckdb" if importlib.util.find_spec("dbt.adapters.duckdb") else "postgres"
# A parser that starts threads, of which a fork has none.
WITHOUT_THREADS = {"DBT_STATIC_PARSER": "false"}
# Of variables that change what is read.
PREFIXES = ("PUBLIC_JOBS_", "TAP_PUBLIC_JOBS_")
# The database that the profile has without a variable, and where another one's name is.
DATABASE, ADDRESS = "postgres", "TARGET_POSTGRES_SQLALCHEMY_URL"


def read() -> Manifest:
    """Read the package."""
    # DuckDB takes its time zone when it is imported: that of all runs.
    os.environ |= WITHOUT_THREADS | {"TZ": "America/New_York"}
    with tempfile.TemporaryDirectory() as folder:
        places = ["--project-dir", str(PACKAGE), "--profiles-dir", str(PACKAGE)]
        written = ["--target-path", folder, "--log-path", folder, "--no-write-json"]
        options = ["--quiet", "--target", ADAPTER]
        manifest = dbtRunner().invoke(["parse", *places, *written, *options]).result
    for macro in manifest.macros.values():  # else each fork compiles those that it calls
        template_cache.get_node_template(macro)
    return manifest


def in_database(manifest: Manifest, database: str) -> Manifest:
    """Say that what was read is in another database."""
    for node in (*manifest.nodes.values(), *manifest.sources.values()):
        if node.database == DATABASE:
            node.database = database
            if name := getattr(node, "relation_name", None):
                node.relation_name = name.replace(f'"{DATABASE}"', f'"{database}"', 1)
    return manifest


def run(arguments: Sequence[str]) -> int:
    """Run dbt, and return its status."""
    os.environ |= WITHOUT_THREADS
    is_as_read = "build" in arguments and "--vars" not in arguments and Path.cwd() == PACKAGE
    manifest = None
    if is_as_read and not any(name.startswith(PREFIXES) for name in os.environ):
        database = os.environ.get(ADDRESS, "").partition("?")[0].rpartition("/")[2]
        manifest = in_database(READ, database) if database else READ
    ended = dbtRunner(manifest=manifest).invoke([*arguments])
    if ADAPTER == "duckdb":  # whose file is whole once the last connection is closed
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager  # noqa: PLC0415

        cleanup_connections()
        DuckDBConnectionManager.close_all_connections()
        gc.collect()
    return 0 if ended.success else 2 if ended.exception else 1


if __name__ == "__main__":
    from support import dbt_read

    status = dbt_read.run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a fork lacks the threads of DuckDB, for which another end would wait
else:
    READ = read()
