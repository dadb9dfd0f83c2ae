"""A receiver that is served from a thread or by its command, and the command itself."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import pytest
import requests
import uvicorn

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.app import make_app
from tap_public_jobs.webhook.cli import main
from tap_public_jobs.webhook.senders import read_tokens

TOKEN = "3b8e61c0d1f24f7f9c43a7c1d2e5f608"  # noqa: S105
NOTIFICATION = b'{"type": "job.updated", "data": {"publicId": "designer-paris-1a2b3c"}}'
NOTED = (200, '{"publicIds":1}')
UNNAMED = (202, '{"publicIds":0}')
FAILED = (503, "The notification log cannot be written")


def post(url: str, body: Any = NOTIFICATION, **headers: str) -> tuple[int, str]:
    response = requests.post(url, data=body, headers=headers, timeout=60)
    return response.status_code, response.text


def get(url: str) -> tuple[int, str]:
    response = requests.get(url, timeout=60)
    return response.status_code, response.text


@contextlib.contextmanager
def serving(log: ChangeLog, tokens: str = TOKEN, port: int = 0, **options: Any) -> Iterator[str]:
    """Serve the receiver of a log from a thread, and yield its URL."""
    options = {"signatures": None, "token_header": "Authorization"} | options
    app = make_app(log, read_tokens(tokens, log.name), **options)
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_config=None, lifespan="off"))
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


COMMAND = [sys.executable, "-c", "from tap_public_jobs.webhook.cli import main; main()"]
PREFIX = "PUBLIC_JOBS_WEBHOOK_"


class Process(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    stderr: IO[str]


@contextlib.contextmanager
def served(port: int = 0, code: str = COMMAND[2], **settings: Any) -> Iterator[Process]:
    """Run the receiver in a process of its own; kill it at the end."""
    environment = os.environ | {PREFIX + name: str(value) for name, value in settings.items()}
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", str(port)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        lines = ""
        while not (found := re.search(r"running on http://\S+:(\d+)", lines)):
            line = process.stderr.readline()
            assert line, lines
            lines += line
        try:
            yield Process(process, int(found[1]), process.stderr)
        finally:
            process.kill()


def ended(*arguments: str, code: str = COMMAND[2], **options: Any) -> tuple[int, str, str]:
    """Run the command in a process of its own to its end: status, stdout, stderr."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return result.returncode, result.stdout, result.stderr


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int | str | None, str, str]:
    """Run the command to its end: status, stdout, stderr."""
    status: int | str | None = 0
    try:
        main([*arguments])
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()
