"""The receiver as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tap_public_jobs.changelog import ChangeLog, ChangeLogError
from tap_public_jobs.webhook.body import TooLargeError, storable, text_of
from tap_public_jobs.webhook.payload import public_ids
from tap_public_jobs.webhook.tokens import Tokens
from tap_public_jobs.webhook.writer import Writer

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

LARGEST_BODY = 256 * 1024
"""Bytes, as sent."""

LINGER = 1.0
"""Seconds in which a sender may still send after the response. Closing a connection while data is
on its way resets it, and the sender may not see the response."""

CLOSE = {"Connection": "close"}


@dataclass(frozen=True)
class Signature:
    """An HMAC-SHA256 of the body, as hex or base64, in a header of the sender's choice."""

    header: str
    secret: str = field(repr=False)

    def fits(self, request: Request, body: bytes) -> bool:
        """Return whether a request is signed with the secret."""
        given = request.headers.get(self.header, "").strip().removeprefix("sha256=")
        digest = hmac.digest(self.secret.encode(), body, "sha256")
        allowed = (digest.hex(), given.lower()), (b64encode(digest).decode(), given)
        return any(hmac.compare_digest(right.encode(), it.encode()) for right, it in allowed)


def make_app(
    log: ChangeLog,
    tokens: Tokens | str,
    signature: Signature | None = None,
    *,
    token_header: str = "Authorization",  # noqa: S107  # its name
    patience: float = 10,
) -> Receiver:
    """Serve `POST /hooks`, `POST /hooks/{token}` and `GET /health`.

    Args:
        log: Where changes are noted.
        tokens: What senders have to know; one token opens the log itself.
        signature: How they sign, if they do.
        token_header: Where the token is if it is not in the path.
        patience: Seconds for a body to arrive, and for the log to take it.
    """
    if isinstance(tokens, str):
        text = tokens
        tokens = Tokens(lambda: text, log.name)
    return Receiver(Writer(log, patience), tokens, signature, token_header, patience)


class Receiver:
    """Answers requests.

    A request without a valid token is answered before its body is read, and its connection closed.

    Args:
        writer: Writes to the change log.
        tokens: What senders have to know.
        signature: How they sign, if they do.
        token_header: Where the token is if it is not in the path.
        patience: Seconds for a body to arrive.
    """

    def __init__(
        self,
        writer: Writer,
        tokens: Tokens,
        signature: Signature | None,
        token_header: str,
        patience: float,
    ) -> None:
        self._writer = writer
        self._tokens = tokens
        self._signature = signature
        self._token_header = token_header
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log the answer without the path, which may contain the token."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except HTTPException as error:
            response = PlainTextResponse(error.detail, error.status_code, error.headers)
        except ChangeLogError:  # the writer has logged it
            response = PlainTextResponse("The change log cannot be written", 503)
        if not scope["state"].get("trusted"):
            response.headers.update(CLOSE)
        text = bytes(response.body).decode()
        logger.info("%s: %d %s", scope["method"], response.status_code, text)
        if response.headers.get("connection") == "close":
            await _answer_and_linger(request, response, send)
        else:
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == "/health":
            await self._writer.check(self._tokens.names[0])
            return PlainTextResponse("OK")
        name = self._name(request, path)
        if name is None:
            raise HTTPException(404)
        state = request.scope["state"]
        if not state["trust"]():
            raise HTTPException(503, "Too many requests at once")
        state["trusted"] = True
        return await self._note(request, name)

    def _name(self, request: Request, path: str) -> str | None:
        """Return the log that the request's token opens."""
        if path == "/hooks":
            token = request.headers.get(self._token_header, "")
            scheme, _, credentials = token.partition(" ")
            return self._tokens.name_of(credentials if scheme.lower() == "bearer" else token)
        prefix, _, token = path.rpartition("/")
        return self._tokens.name_of(token) if prefix == "/hooks" else None

    async def _note(self, request: Request, name: str) -> Response:
        """Note what a notification names; answer 2xx only once it is committed."""
        body = await self._body(request)
        if request.method != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        if len(body) > LARGEST_BODY:
            raise HTTPException(413, f"More than {LARGEST_BODY} bytes")
        if self._signature and not self._signature.fits(request, body):
            raise HTTPException(401, "Not signed with the secret")
        try:
            text = text_of(body)
        except TooLargeError as error:
            raise HTTPException(413, "Too large when unpacked") from error
        ids = public_ids(text)
        if ids:
            await self._writer.append(name, ids)
        else:
            await self._writer.keep(name, storable(text))
        return JSONResponse({"publicIds": len(ids)}, 200 if ids else 202)

    async def _body(self, request: Request) -> bytes:
        """Read the body to its end, and keep little more of it than is allowed."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._patience):
                async for chunk in request.stream():
                    if len(body) <= LARGEST_BODY:
                        body += chunk
        except TimeoutError as error:
            raise HTTPException(408, headers=CLOSE) from error
        except ClientDisconnect as error:
            raise HTTPException(400, "The sender left") from error
        return bytes(body)


async def _answer_and_linger(request: Request, response: Response, send: Send) -> None:
    """Send the whole response, and close once the request has arrived or `LINGER` is over."""
    end: list[Message] = []

    async def hold_back(message: Message) -> None:
        if message["type"] == "http.response.body":
            end.append({"type": "http.response.body", "body": b""})
            message = {**message, "more_body": True}
        await send(message)

    await response(request.scope, request.receive, hold_back)
    with contextlib.suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(LINGER):
            async for _ in Request(request.scope, request.receive).stream():
                pass
    for message in end:
        await send(message)
