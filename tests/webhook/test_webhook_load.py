"""Many notifications at once, and a receiver that is killed among them."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from api.raw_server import unused_port
from webhook.served import TOKEN

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTIFICATIONS = 2_000
CONNECTIONS = 16


class Receiver:
    """The command in a process, on the same port and log after a restart."""

    def __init__(self, url: str, port: int) -> None:
        self.port = port
        self.up = threading.Event()
        self._environment = os.environ | {
            "PUBLIC_JOBS_WEBHOOK_TOKEN": TOKEN,
            "PUBLIC_JOBS_WEBHOOK_CHANGES_URL": url,
        }

    def start(self) -> None:
        code = "from tap_public_jobs.webhook.cli import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--port", str(self.port)],
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr
        line = self._process.stderr.readline()
        assert re.search(rf":{self.port}/", line), line
        # Nobody else reads its lines, and a full pipe would stop it.
        self._reader = threading.Thread(target=self._process.stderr.read)
        self._reader.start()
        self.up.set()

    def kill(self) -> None:
        self.up.clear()
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stderr
        self._process.stderr.close()


@pytest.fixture
def port() -> Iterator[int]:
    """A port that nobody else gets while the receiver is down."""
    with unused_port() as port:
        yield port


def test_nothing_that_was_answered_is_lost(tmp_path: Path, port: int) -> None:
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    receiver, log = Receiver(url, port), ChangeLog(url)
    receiver.start()
    answered: list[str] = []
    half, killed = threading.Event(), threading.Event()

    def send(connection_number: int) -> None:
        """One connection of a sender that tries each notification until it is answered 2xx."""
        ids = [f"job-{n}" for n in range(connection_number, NOTIFICATIONS, CONNECTIONS)]
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=30)
        while ids:
            if len(ids) == 1:
                killed.wait()  # however late the kill comes, it comes before the end
            receiver.up.wait()
            try:
                connection.request("POST", f"/hooks/{TOKEN}", f'{{"publicId": "{ids[-1]}"}}')
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                continue
            if response.status == 200:
                answered.append(ids.pop())
            if len(answered) >= NOTIFICATIONS / 2:
                half.set()
        connection.close()

    try:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            senders = [pool.submit(send, number) for number in range(CONNECTIONS)]
            half.wait()
            before_the_kill = list(answered)
            receiver.kill()
            killed.set()
            after_the_kill = set(log.read().public_ids)
            receiver.start()
            for sender in senders:
                sender.result()
    finally:
        receiver.kill()

    assert len(before_the_kill) < NOTIFICATIONS
    assert after_the_kill >= set(before_the_kill)
    expected = {f"job-{number}" for number in range(NOTIFICATIONS)}
    assert set(answered) == expected
    changes = log.read()
    assert set(changes.public_ids) == expected
    # At the kill each connection may have sent one whose answer it did not see.
    assert NOTIFICATIONS <= changes.position <= NOTIFICATIONS + CONNECTIONS
