"""A receiver that is served from a thread, and the notification log behind it."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import uvicorn
from public_jobs_receiver.app import make_app
from public_jobs_receiver.senders import Signatures, read_tokens

from tap_public_jobs.notification_log import NotificationLog

TOKEN = "3b8e61c0d1f24f7f9c43a7c1d2e5f608"  # noqa: S105
NOTIFICATION = b'{"type": "job.updated", "data": {"publicId": "designer-paris-1a2b3c"}}'
NOTED = (200, '{"publicIds":1}')
UNNAMED = (202, '{"publicIds":0}')
FAILED = (503, "The notification log cannot be written")
UNSIGNED = Signatures("", [])


def post(url: str, body: Any = NOTIFICATION, **headers: str) -> tuple[int, str]:
    response = requests.post(url, data=body, headers=headers, timeout=60)
    return response.status_code, response.text


def connect(url: str) -> socket.socket:
    """Open a connection, for what no HTTP client would send."""
    return socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=60)


@contextlib.contextmanager
def serving(
    log: NotificationLog,
    tokens: str = TOKEN,
    port: int = 0,
    signatures: Signatures = UNSIGNED,
    token_header: str = "Authorization",  # noqa: S107
) -> Iterator[str]:
    """Serve the receiver of a log from a thread, and yield its URL."""
    app = make_app(log, read_tokens(tokens, log.name), signatures, token_header)
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_config=None, lifespan="off"))
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> NotificationLog:
    log = NotificationLog(f"sqlite:///{tmp_path_factory.mktemp('log') / 'changes.db'}")
    log.append({log.name: []})
    return log


@pytest.fixture(scope="module")
def base_url(log: NotificationLog) -> Iterator[str]:
    with serving(log) as url:
        yield url


@pytest.fixture
def hook(base_url: str) -> str:
    return f"{base_url}/hooks/{TOKEN}"


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
