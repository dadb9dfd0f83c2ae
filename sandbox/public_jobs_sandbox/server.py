"""Serves a sandbox on a real socket."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from public_jobs_sandbox.app import make_app
from public_jobs_sandbox.state import Sandbox

LOCALHOST = "127.0.0.1"
# Seconds that an idle connection stays open, as with common proxies.
KEEP_ALIVE = 75


@contextlib.contextmanager
def serving(sandbox: Sandbox, port: int = 0) -> Iterator[str]:
    """Serve a sandbox from a background thread until the context ends.

    Args:
        sandbox: What to serve. It may change while it is served.
        port: The port; 0 picks a free one.

    Yields:
        The base address (`{base_url}` on the API page).

    Raises:
        OSError: If the port is taken.
    """
    config = uvicorn.Config(
        make_app(sandbox),
        log_config=None,
        log_level="error",
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE,
    )
    config.load()
    state = ServerState()
    stopping = asyncio.Event()

    async def listen() -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Protocol(config, state, {}), LOCALHOST, port)

    async def serve(listener: asyncio.Server) -> None:
        await stopping.wait()
        # A connection whose acceptance has begun needs some turns of the loop. If the listener
        # closed before, asyncio would never close that connection.
        for _ in range(3):
            await asyncio.sleep(0)
        listener.close()
        # uvicorn's own server would wait for its clients to leave.
        for connection in list(state.connections):
            connection.transport.abort()
        # Requests in progress end, because their clients are gone.
        await asyncio.sleep(0)
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=1)

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        listener = runner.run(listen())
        thread = threading.Thread(target=runner.run, args=(serve(listener),), daemon=True)
        thread.start()
        try:
            port = listener.sockets[0].getsockname()[1]
            yield f"http://{LOCALHOST}:{port}{sandbox.options.path_prefix}"
        finally:
            runner.get_loop().call_soon_threadsafe(stopping.set)
            thread.join()


class _Protocol(H11Protocol):
    """Passes the transport to the application, whose faults reset and cut connections."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # uvicorn copies this mapping into the scope of every request of the connection.
        self.app_state = {"transport": transport}
