"""Serves a sandbox on a real socket."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from public_jobs_sandbox.app import make_app
from public_jobs_sandbox.state import Sandbox

LOCALHOST = "127.0.0.1"
KEEP_ALIVE = 75
"""Seconds that an idle connection stays open, as with common proxies."""


@contextlib.contextmanager
def serving(sandbox: Sandbox, port: int = 0, *, host: str = LOCALHOST) -> Iterator[str]:
    """Serve a sandbox from a background thread until the context ends.

    Args:
        sandbox: What to serve. It may change while it is served.
        port: The port; 0 picks a free one.
        host: The address to listen on.

    Yields:
        The base address (`{base_url}` on the API page).

    Raises:
        OSError: If the port is taken.
    """
    listener = _listen(host, port)
    ready = threading.Event()
    server = _Server(sandbox, on_ready=ready.set)
    thread = threading.Thread(target=server.run, args=([listener],), name="sandbox", daemon=True)
    thread.start()
    try:
        ready.wait()
        yield _base_url(sandbox, listener, host)
    finally:
        server.stop()
        thread.join()
        sandbox.webhooks.close()


def run(sandbox: Sandbox, host: str, port: int, on_ready: Callable[[str], object]) -> None:
    """Serve a sandbox until SIGINT (Ctrl-C) or SIGTERM.

    Args:
        sandbox: What to serve.
        host: The address to listen on.
        port: The port; 0 picks a free one.
        on_ready: Called with the base address as soon as the server accepts requests.

    Raises:
        OSError: If the port is taken.
    """
    listener = _listen(host, port)
    base_url = _base_url(sandbox, listener, host)
    try:
        _Server(sandbox, on_ready=lambda: on_ready(base_url)).run([listener])
    finally:
        sandbox.webhooks.close()


def _listen(host: str, port: int) -> socket.socket:
    # asyncio turns Nagle's algorithm off only if the socket names its protocol.
    # The algorithm would delay the body of a response by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def _base_url(sandbox: Sandbox, listener: socket.socket, host: str) -> str:
    port = listener.getsockname()[1]
    return f"http://{host}:{port}{sandbox.options.path_prefix}"


class _Protocol(H11Protocol):
    """Passes the transport to the application, whose faults reset and cut connections."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # uvicorn copies this mapping into the scope of every request of the connection.
        self.app_state = {**self.app_state, "transport": transport}


class _Server(uvicorn.Server):
    """A uvicorn server that stops without waiting for its clients."""

    def __init__(self, sandbox: Sandbox, on_ready: Callable[[], object]) -> None:
        config = uvicorn.Config(
            make_app(sandbox),
            loop="asyncio",
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
        )
        super().__init__(config)
        self._on_ready = on_ready
        self._wake = asyncio.Event()
        self._running: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        """Ask the server to stop; any thread or signal handler may call this."""
        self.should_exit = True
        if self._running and not self._running.is_closed():
            self._running.call_soon_threadsafe(self._wake.set)

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again after the shutdown; here a signal is a clean exit.
        self.stop()

    @override
    async def main_loop(self) -> None:
        self._running = asyncio.get_running_loop()
        self._on_ready()
        # A tick a second refreshes the Date header, and `stop` wakes the loop at once.
        # uvicorn ticks ten times a second instead, and notices only then that it has to stop.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout=1)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn's own shutdown waits for clients to leave, and pauses even if there are none.
        for listener in self.servers:
            listener.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        # One turn of the loop closes the connections.
        # Requests in progress then end, because their clients are gone.
        await asyncio.sleep(0)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=1)
