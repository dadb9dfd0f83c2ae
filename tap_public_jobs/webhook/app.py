"""The receiver as a Starlette application."""

import asyncio
import hmac
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tap_public_jobs.changelog import ChangeLog, ChangeLogError
from tap_public_jobs.webhook.payload import public_ids
from tap_public_jobs.webhook.writer import Writer

logger = logging.getLogger(__name__)

LARGEST_BODY = 256 * 1024
"""Bytes."""


@dataclass(frozen=True)
class Signature:
    """An HMAC-SHA256 of the body, as hex or base64, in a header of the sender's choice."""

    header: str
    secret: str = field(repr=False)

    def fits(self, request: Request, body: bytes) -> bool:
        """Tell whether a request is signed with the secret."""
        given = request.headers.get(self.header, "").strip().removeprefix("sha256=")
        digest = hmac.digest(self.secret.encode(), body, "sha256")
        allowed = (digest.hex(), given.lower()), (b64encode(digest).decode(), given)
        return any(hmac.compare_digest(right.encode(), it.encode()) for right, it in allowed)


def make_app(
    log: ChangeLog, token: str, signature: Signature | None = None, *, patience: float = 10
) -> Starlette:
    """Serve `POST /hooks/{token}` and `GET /health`.

    Args:
        log: Where changes are noted.
        token: What the sender has to know.
        signature: What it has to send besides, if it signs.
        patience: Seconds for a body to arrive, and for the log to take it.
    """
    receiver = _Receiver(log, token, signature, patience)
    return Starlette(
        routes=[
            Route("/hooks/{token}", _Logged(receiver.hook)),
            Route("/health", _Logged(receiver.health)),
            Route("/{path:path}", _Logged(receiver.not_found)),
        ]
    )


@dataclass(frozen=True)
class _Logged:
    """Logs an answer without the path of its request, which has the token."""

    answer: Callable[[Request], Awaitable[Response]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self.answer(Request(scope, receive))
        except HTTPException as error:
            response = PlainTextResponse(error.detail, error.status_code, error.headers)
        except ChangeLogError as error:
            logger.error("%s", error)  # noqa: TRY400  # one line
            response = PlainTextResponse("The change log cannot be written", 503)
        body = bytes(response.body).decode()
        logger.info("%s: %d %s", scope["method"], response.status_code, body)
        await response(scope, receive, send)


class _Receiver:
    def __init__(
        self, log: ChangeLog, token: str, signature: Signature | None, patience: float
    ) -> None:
        self._token = token
        self._signature = signature
        self._patience = patience
        self._writer = Writer(log, patience)

    async def hook(self, request: Request) -> Response:
        """Note what a notification names; answer 2xx only once it is committed."""
        body = await self._body(request)
        token = request.path_params["token"]
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise HTTPException(404)
        if request.method != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        if len(body) > LARGEST_BODY:
            raise HTTPException(413, f"More than {LARGEST_BODY} bytes")
        if self._signature and not self._signature.fits(request, body):
            raise HTTPException(401, "Not signed with the secret")
        try:
            text = body.decode("utf-8-sig")
            ids = public_ids(text)
        except ValueError as error:
            raise HTTPException(400, "Not JSON that can be read") from error
        await (self._writer.append(ids) if ids else self._writer.keep(text))
        return JSONResponse({"publicIds": len(ids)}, 200 if ids else 202)

    async def not_found(self, request: Request) -> Response:
        """Answer 404, once the request has come to its end."""
        await self._body(request)
        raise HTTPException(404)

    async def health(self, request: Request) -> Response:
        """Answer 200 if the log can be written, else 503."""
        await self._body(request)
        await self._writer.append([])
        return PlainTextResponse("OK")

    async def _body(self, request: Request) -> bytes:
        """Read the body to its end, and keep little more of it than is allowed.

        To answer before the end would cut the connection of a sender that is still sending.
        """
        body = bytearray()
        try:
            async with asyncio.timeout(self._patience):
                async for chunk in request.stream():
                    if len(body) <= LARGEST_BODY:
                        body += chunk
        except TimeoutError as error:
            raise HTTPException(408, headers={"Connection": "close"}) from error
        except ClientDisconnect as error:
            raise HTTPException(400, "The sender left") from error
        return bytes(body)
