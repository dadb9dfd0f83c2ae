"""Serves a receiver from a thread."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import requests

from tap_public_jobs.webhook.server import Server, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from starlette.types import ASGIApp

TOKEN = "3b8e61c0d1f24f7f9c43a7c1d2e5f608"  # noqa: S105
NOTIFICATION = b'{"type": "job.updated", "data": {"publicId": "designer-paris-1a2b3c"}}'


def post(url: str, body: Any = NOTIFICATION, **headers: str) -> tuple[int, str]:
    response = requests.post(url, data=body, headers=headers, timeout=30)
    return response.status_code, response.text


@contextlib.contextmanager
def serving(app: ASGIApp, listener: socket.socket | None = None) -> Iterator[tuple[str, int]]:
    """Serve an application from a thread, and yield its host and port."""
    listener = listener or listen("127.0.0.1", 0)
    address: tuple[str, int] = listener.getsockname()
    server = Server(app)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join()
