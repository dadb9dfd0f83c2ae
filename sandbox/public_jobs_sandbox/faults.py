"""Faults that a response can have, produced on a real connection."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from public_jobs_sandbox.options import Options

Fault = Callable[[Options, Scope, Receive, Send], Awaitable[None]]

HALF_A_BODY = b'{"data": [{"id": "5f3d'
GATEWAY_PAGE = b"<html><head><title>%d</title></head><body><h1>%d</h1></body></html>"


async def client_left(receive: Receive, within: float) -> bool:
    """Wait, and return whether the connection was closed from either side `within` seconds.

    Unlike a sleep, the wait ends when the server stops.
    """

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(leave(), within)
        return True
    return False


async def _reset(_: Options, scope: Scope, receive: Receive, _send: Send) -> None:
    transport: asyncio.Transport = scope["state"]["transport"]
    # Closing a socket with a linger time of zero sends RST instead of FIN.
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    transport.abort()
    await client_left(receive, within=1)


async def _cut(
    headers: list[tuple[bytes, bytes]], scope: Scope, receive: Receive, send: Send
) -> None:
    headers = [(b"content-type", b"application/json"), *headers]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": HALF_A_BODY, "more_body": True})
    transport: asyncio.Transport = scope["state"]["transport"]
    transport.close()
    await client_left(receive, within=1)


async def _cut_body(_: Options, scope: Scope, receive: Receive, send: Send) -> None:
    await _cut([(b"content-length", b"4096")], scope, receive, send)


async def _cut_chunked(_: Options, scope: Scope, receive: Receive, send: Send) -> None:
    # Without a length, the server sends chunks; closing early leaves out the final empty chunk.
    await _cut([], scope, receive, send)


async def _stall(options: Options, scope: Scope, receive: Receive, send: Send) -> None:
    if not await client_left(receive, within=options.stall):
        await _gateway_error(504)(options, scope, receive, send)


async def _redirect(options: Options, scope: Scope, receive: Receive, send: Send) -> None:
    response = RedirectResponse(options.redirect_to, status_code=302)
    await response(scope, receive, send)


def _answer(body: bytes, *, status: int = 200, media_type: str = "application/json") -> Fault:
    async def fault(_: Options, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(body, status, media_type=media_type)(scope, receive, send)

    return fault


def _gateway_error(status: int) -> Fault:
    return _answer(GATEWAY_PAGE % (status, status), status=status, media_type="text/html")


KINDS: dict[str, Fault] = {
    "reset": _reset,
    "cut_body": _cut_body,
    "cut_chunked": _cut_chunked,
    "stall": _stall,
    "redirect": _redirect,
    "http_400": _answer(b'{"error":"Bad request"}', status=400),
    "http_403": _answer(b'{"error":"Forbidden"}', status=403),
    "http_404": _answer(b'{"error":"Not found"}', status=404),
    "http_500": _answer(b'{"error":"Internal server error"}', status=500),
    "http_502": _gateway_error(502),
    "http_503": _gateway_error(503),
    "http_504": _gateway_error(504),
    "empty_body": _answer(b""),
    "not_json": _answer(b"upstream connect error or disconnect/reset before headers"),
    "html": _answer(b"<html><body>Down for maintenance.</body></html>", media_type="text/html"),
    "wrong_shape": _answer(b'{"data":5}'),
    "empty_list": _answer(b'{"data":[],"page":1,"pageSize":100,"total":0}'),
    "json_list": _answer(b"[1,2,3]"),
    "json_null": _answer(b"null"),
}
"""Every fault by its kind."""
