"""However many connections strangers keep open, a sender with the right token is served."""

from __future__ import annotations

import contextlib
import resource
import socket
from typing import TYPE_CHECKING

import pytest
import requests
from webhook.served import TOKEN, serving

from tap_public_jobs.webhook import app
from tap_public_jobs.webhook.app import make_app
from tap_public_jobs.webhook.connections import STRANGERS, Connections
from tap_public_jobs.webhook.server import BACKLOG, Protocol, listen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tap_public_jobs.changelog import ChangeLog

CROWD = 2_000
BODY = b'{"publicId": "designer-paris-1a2b3c"}'
RIGHT = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\n".encode()
WRONG = b"POST /hooks/wrong HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def many_files() -> Iterator[None]:
    """The crowd has as many sockets as a process may usually have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * CROWD)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def answer(connection: socket.socket) -> bytes:
    """Read an answer to its end: that of its JSON, or of the connection."""
    read = b""
    while not read.endswith(b"}") and (part := connection.recv(65536)):
        read += part
    return read


@pytest.mark.parametrize(
    ("crowd", "sent"),
    [
        (CROWD, b""),
        (300, b"POST /hooks/"),
        (300, WRONG + b"Content-Length: 100\r\n\r\n"),
        (300, WRONG + b"Transfer-Encoding: chunked\r\n\r\n"),
        (300, b"GET /health HTTP/1.1\r\nHost: x\r\n"),
    ],
    ids=["nothing", "slow headers", "slow body", "slow chunks", "slow headers of health"],
)
@pytest.mark.usefixtures("many_files")
def test_a_crowd_of_strangers_leaves_a_sender_served(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch, crowd: int, sent: bytes
) -> None:
    """On a connection that it has had before, and on a new one. Nothing times out here."""
    monkeypatch.setattr(Protocol, "patience", 600)
    before = log.counts()
    with serving(make_app(log, TOKEN, patience=600)) as address, contextlib.ExitStack() as stack:
        known = stack.enter_context(socket.create_connection(address, timeout=60))
        notification = RIGHT + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
        known.sendall(notification)
        first = answer(known)
        url = f"http://{address[0]}:{address[1]}"
        for number in range(crowd):
            if number % (BACKLOG // 2) == 0:
                # It is accepted after all before it. Those that find no place to wait for that
                # would come again after a second.
                requests.get(f"{url}/health", timeout=60).raise_for_status()
            stranger = stack.enter_context(socket.create_connection(address, timeout=60))
            with contextlib.suppress(ConnectionError):  # it has made way already
                stranger.sendall(sent)

        known.sendall(notification)
        again = answer(known)
        new = requests.post(f"{url}/hooks/{TOKEN}", BODY, timeout=60)
        health = requests.get(f"{url}/health", timeout=60)

    assert [it.partition(b"\r\n")[0] for it in (first, again)] == [b"HTTP/1.1 200 OK"] * 2
    assert (new.status_code, health.text) == (200, "OK")
    assert log.counts().position == before.position + 3


@pytest.mark.usefixtures("many_files")
def test_a_sender_is_served_before_strangers_that_come_at_once_after_it(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait in the kernel together, and are accepted faster than requests are read."""
    monkeypatch.setattr(Protocol, "patience", 600)
    listener = listen("127.0.0.1", 0)
    address = listener.getsockname()
    with contextlib.ExitStack() as stack:
        sender = stack.enter_context(socket.create_connection(address, timeout=60))
        sender.sendall(RIGHT + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        for _ in range(5 * STRANGERS):
            stack.enter_context(socket.create_connection(address, timeout=60))
        with serving(make_app(log, TOKEN), listener):
            read = answer(sender)

    assert read.startswith(b"HTTP/1.1 200 OK\r\n")


def test_more_connections_wait_in_the_kernel_than_are_accepted_at_once(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that finds no place there is tried again by its kernel, a second later."""
    waiting: list[int] = []
    listening = socket.socket.listen

    def listen_and_note(listener: socket.socket, backlog: int) -> None:
        waiting.append(backlog)
        listening(listener, backlog)

    monkeypatch.setattr(socket.socket, "listen", listen_and_note)
    with serving(make_app(log, TOKEN)) as (host, port):
        assert requests.get(f"http://{host}:{port}/health", timeout=60).text == "OK"

    assert waiting[-1] == BACKLOG


@pytest.mark.usefixtures("short_linger")
@pytest.mark.parametrize("headers", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize("path", [b"/hooks/wrong", b"/hooks", b"/"])
def test_a_wrong_token_is_answered_before_the_body(
    log: ChangeLog, headers: bytes, path: bytes
) -> None:
    """Nor is the sender asked to go on, which one that waits for `100 Continue` would do."""
    with (
        serving(make_app(log, TOKEN, patience=600)) as address,
        socket.create_connection(address, timeout=60) as connection,
    ):
        connection.sendall(
            b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + headers
        )
        connection.sendall(b"\r\n\r\n")
        read = answer(connection)

    assert read.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert b"\r\nconnection: close\r\n" in read


def test_a_body_after_the_answer_does_not_reset_the_connection(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reset would take the answer from a sender that has not read it yet."""
    monkeypatch.setattr(app, "LINGER", 60)
    with (
        serving(make_app(log, TOKEN)) as address,
        socket.create_connection(address, timeout=60) as connection,
    ):
        connection.sendall(WRONG + b"Content-Length: 500000\r\n\r\n")
        start = connection.recv(5)
        connection.sendall(b"x" * 500_000)
        read = start + answer(connection)

    assert read.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert read.endswith(b"\r\n\r\nNot Found")


@pytest.mark.parametrize("path", ["/health", "/", "/hooks/wrong"])
def test_a_stranger_is_not_kept(log: ChangeLog, path: str) -> None:
    with (
        serving(make_app(log, TOKEN)) as address,
        socket.create_connection(address, timeout=60) as connection,
    ):
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 2)
        read = answer(connection)

    assert read.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in read


class Line:
    """A connection that notes whether it was cut."""

    def __init__(self, *, idle: bool = True) -> None:
        self.idle = idle
        self.is_cut = False

    def cut(self) -> None:
        self.is_cut = True


def test_the_oldest_stranger_makes_way() -> None:
    connections = Connections(strangers=2)
    lines = [Line() for _ in range(5)]
    for line in lines[:2]:
        connections.add(line)
    connections.remove(lines[0])
    for line in lines[2:]:
        connections.add(line)

    assert [line.is_cut for line in lines] == [False, True, True, False, False]


def test_a_sender_makes_way_for_no_stranger() -> None:
    connections = Connections(strangers=1, senders=1)
    sender, stranger, other = Line(), Line(), Line()
    connections.add(sender)
    assert connections.trust(sender)
    connections.add(stranger)
    connections.add(other)

    assert (sender.is_cut, stranger.is_cut, other.is_cut) == (False, True, False)


def test_of_too_many_senders_the_longest_idle_makes_way() -> None:
    connections = Connections(senders=3)
    busy, first, second, new = Line(idle=False), Line(), Line(), Line()
    for line in (busy, first, second, new):
        connections.add(line)
    for line in (busy, first, second, first):
        assert connections.trust(line)

    assert connections.trust(new)

    assert [line.is_cut for line in (busy, first, second)] == [False, False, True]


def test_senders_that_are_all_busy_make_no_way() -> None:
    connections = Connections(senders=2)
    busy, new = [Line(idle=False), Line(idle=False)], Line()
    for line in (*busy, new):
        connections.add(line)
    assert all(connections.trust(line) for line in busy)

    assert not connections.trust(new)
    assert connections.trust(busy[0])
    assert [line.is_cut for line in busy] == [False, False]


def test_a_connection_that_is_closed_takes_no_place() -> None:
    connections = Connections(senders=1)
    closed, new = Line(idle=False), Line()
    connections.add(closed)
    connections.remove(closed)
    connections.add(new)

    assert not connections.trust(closed)
    assert connections.trust(new)


def test_a_sender_without_a_place_is_asked_to_come_again(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connections, "trust", lambda *_: False)
    before = log.counts()
    with serving(make_app(log, TOKEN)) as (host, port):
        refused = requests.post(f"http://{host}:{port}/hooks/{TOKEN}", BODY, timeout=60)

    assert (refused.status_code, refused.text) == (503, "Too many requests at once")
    assert refused.headers["Connection"] == "close"
    assert log.counts() == before
