"""Faults that a response can have, produced on a real connection."""

import asyncio
import contextlib
import socket
import struct

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

HALF_A_BODY = b'{"data": [{"id": "5f3d'
GATEWAY_PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>"
AN_HOUR = 3600


async def client_left(receive: Receive, within: float) -> bool:
    """Wait `within` seconds at most, and return whether either side closed the connection.

    Unlike a sleep, the wait ends when the server stops.
    """

    async def leave() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(leave(), within)
        return True
    return False


async def _reset(scope: Scope, receive: Receive, _: Send) -> None:
    transport: asyncio.Transport = scope["state"]["transport"]
    # Closing a socket with a linger time of zero sends RST instead of FIN.
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    transport.abort()
    await client_left(receive, within=1)


def _cut(**headers: str) -> ASGIApp:
    async def fault(scope: Scope, receive: Receive, send: Send) -> None:
        sent = {"content-type": "application/json", **headers}
        encoded = [(name.encode(), value.encode()) for name, value in sent.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        await send({"type": "http.response.body", "body": HALF_A_BODY, "more_body": True})
        transport: asyncio.Transport = scope["state"]["transport"]
        transport.close()
        await client_left(receive, within=1)

    return fault


async def _stall(_: Scope, receive: Receive, __: Send) -> None:
    await client_left(receive, within=AN_HOUR)


def _answer(body: str, *, status: int = 200, media_type: str = "application/json") -> ASGIApp:
    return Response(body, status, media_type=media_type)


def _gateway_error(status: int) -> ASGIApp:
    return _answer(GATEWAY_PAGE.format(status), status=status, media_type="text/html")


# Every fault by its kind.
KINDS: dict[str, ASGIApp] = {
    "reset": _reset,
    "cut_body": _cut(**{"content-length": "4096"}),
    # Without a length, the server sends chunks; closing early leaves out the final empty chunk.
    "cut_chunked": _cut(),
    "stall": _stall,
    "redirect": RedirectResponse("/elsewhere", status_code=302),
    "http_400": _answer('{"error":"Bad request"}', status=400),
    "http_403": _answer('{"error":"Forbidden"}', status=403),
    "http_404": _answer('{"error":"Not found"}', status=404),
    "http_500": _answer('{"error":"Internal server error"}', status=500),
    "http_502": _gateway_error(502),
    "http_503": _gateway_error(503),
    "http_504": _gateway_error(504),
    "empty_body": _answer(""),
    "not_json": _answer("upstream connect error or disconnect/reset before headers"),
    "html": _answer("<html><body>Down for maintenance.</body></html>", media_type="text/html"),
    "wrong_shape": _answer('{"data":5}'),
    "json_list": _answer("[1,2,3]"),
    "json_null": _answer("null"),
}
