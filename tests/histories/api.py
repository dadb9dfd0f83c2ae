"""The API of an organisation, with faults and changes at certain requests."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from api.raw_server import raw_server, response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from histories.organisation import Organisation

FAULTS = ("500", "503", "429", "429 at once", "cut", "closed", "no JSON", "stall", "404")
"""What can happen instead of an answer."""


@dataclass
class Request:
    """A request and its outcome."""

    time: float
    target: str
    is_awaited: bool
    """Whether the client still waited for an answer at that time."""
    is_answered: bool = False
    """Whether a whole 200 was sent."""

    @property
    def public_id(self) -> str | None:
        """Of the detail; None for a page of the list."""
        path = urlsplit(self.target).path.removeprefix("/api/public/v1/jobs")
        return unquote(path[1:]) if path else None


class Api:
    """Answers requests.

    Attributes:
        requests: Those of the last run.
        incidents: What happens at the request with a number: a function that may return a fault.
    """

    def __init__(self, organisation: Organisation, *, newest_first: bool) -> None:
        self.requests: list[Request] = []
        self.incidents: dict[int, Callable[[], str | None]] = {}
        self._organisation = organisation
        self._newest_first = newest_first
        self._counting = threading.Lock()

    @contextlib.contextmanager
    def served(self, incidents: dict[int, Callable[[], str | None]]) -> Iterator[str]:
        """Serve one run, and handle all its requests, also those of a tap that was killed.

        Yields:
            The base_url.
        """
        self.requests, self.incidents = [], incidents
        with raw_server(self._answer) as server:
            yield server.url

    def _answer(self, connection: socket.socket, head: str) -> None:
        now = time.monotonic()
        has_left, _, _ = select.select([connection], [], [], 0)
        request = Request(now, head.split(" ")[1], is_awaited=not has_left)
        with self._counting:
            self.requests.append(request)
            incident = self.incidents.pop(len(self.requests), lambda: None)
        fault = incident()
        with self._organisation.lock:
            document = self._page(request) if request.public_id is None else self._detail(request)
        if fault is None or (fault == "404" and request.public_id is None):
            request.is_answered = document is not None
            connection.sendall(response(document or {}, "200 OK" if document else "404 Not Found"))
        else:
            _fail(connection, fault, response(document or {}))

    def _page(self, request: Request) -> dict[str, Any]:
        query = parse_qs(urlsplit(request.target).query)
        number, size = int(query["page"][0]), int(query["pageSize"][0])
        jobs = [job.summary for job in self._organisation.published]
        if self._newest_first:
            jobs.reverse()
        shown = jobs[(number - 1) * size : number * size]
        return {"data": shown, "page": number, "pageSize": size, "total": len(jobs)}

    def _detail(self, request: Request) -> dict[str, Any] | None:
        jobs = self._organisation.published
        return next((job.document for job in jobs if job.public_id == request.public_id), None)


def _fail(connection: socket.socket, fault: str, answer: bytes) -> None:
    match fault:
        case "cut":
            connection.sendall(answer[:-2])
        case "stall":
            connection.recv(1)  # until the client leaves
        case "no JSON":
            connection.sendall(response(b"upstream error"))
            return
        case "429 at once":
            connection.sendall(response({}, "429 Too Many Requests", "Retry-After: 0"))
            return
        case "closed":
            pass
        case _:
            connection.sendall(response(json.dumps({"error": fault}).encode(), f"{fault} Fault"))
            return
    connection.shutdown(socket.SHUT_RDWR)
