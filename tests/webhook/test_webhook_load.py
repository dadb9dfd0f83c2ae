"""Many notifications at once, and a receiver that is killed among them."""

from __future__ import annotations

import contextlib
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from api.raw_server import unused_port
from webhook.command import served
from webhook.served import TOKEN

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook.command import Process

NOTIFICATIONS = 1_000
CONNECTIONS = 16


@pytest.fixture
def port() -> Iterator[int]:
    """A port that nobody else gets while the receiver is down."""
    with unused_port() as port:
        yield port


def test_nothing_that_was_answered_is_lost(tmp_path: Path, port: int) -> None:
    """Although the receiver is killed and started again."""
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    log = ChangeLog(url)
    answered: list[str] = []
    half, restarted = threading.Event(), threading.Event()

    def send(connection_number: int) -> None:
        """A sender that tries each notification until it is answered 2xx."""
        ids = [f"job-{n}" for n in range(connection_number, NOTIFICATIONS, CONNECTIONS)]
        while ids:
            if len(ids) == 1:
                restarted.wait()  # however late the kill comes, it comes before the end
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("POST", f"/hooks/{TOKEN}", f'{{"publicId": "{ids[-1]}"}}')
                if connection.getresponse().status == 200:
                    answered.append(ids.pop())
            connection.close()
            if len(answered) >= NOTIFICATIONS / 2:
                half.set()

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        with served(port, TOKEN=TOKEN, CHANGES_URL=url) as receiver:
            drain(receiver)
            senders = [pool.submit(send, number) for number in range(CONNECTIONS)]
            half.wait()
            before_the_kill = list(answered)
        after_the_kill = set(log.read().public_ids)
        with served(port, TOKEN=TOKEN, CHANGES_URL=url) as receiver:
            drain(receiver)
            restarted.set()
            for sender in senders:
                sender.result()

    assert len(before_the_kill) < NOTIFICATIONS
    assert after_the_kill >= set(before_the_kill)
    expected = {f"job-{number}" for number in range(NOTIFICATIONS)}
    changes = log.read()
    assert set(answered) == set(changes.public_ids) == expected
    # At the kill each connection may have sent one whose answer it did not see.
    assert NOTIFICATIONS <= changes.position <= NOTIFICATIONS + CONNECTIONS


def drain(receiver: Process) -> None:
    """Read what the receiver says: a full pipe would stop it."""
    threading.Thread(target=receiver.stderr.read, daemon=True).start()
