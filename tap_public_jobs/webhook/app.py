"""The receiver as an ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tap_public_jobs.webhook.payload import read_payload
from tap_public_jobs.webhook.writer import Writer

if TYPE_CHECKING:
    from tap_public_jobs.changelog import ChangeLog
    from tap_public_jobs.webhook.tokens import Tokens

logger = logging.getLogger(__name__)

# Bytes, as sent.
LARGEST_BODY = 256 * 1024

# Seconds for a body to arrive.
PATIENCE = 10


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
    tokens: Tokens,
    signature: Signature | None = None,
    token_header: str = "Authorization",  # noqa: S107  # its name
) -> Starlette:
    """Serve `POST /hooks`, `POST /hooks/{token}` and `GET /health`.

    A request without a valid token is answered before its body is read.

    Args:
        log: Where changes are noted.
        tokens: What senders have to know.
        signature: How they sign, if they do.
        token_header: Where the token is if it is not in the path.
    """
    writer = Writer(log)

    async def hook(request: Request) -> Response:
        """Note what a notification names; answer 2xx only once it is committed."""
        name = tokens.name_of(_token(request, token_header))
        if name is None:
            raise HTTPException(404)
        body = await _body(request)
        if signature and not signature.fits(request, body):
            raise HTTPException(401, "Not signed with the secret")
        public_ids, keys = read_payload(body)
        if not public_ids:
            shown = json.dumps(keys)[:300]  # a sender chooses them
            logger.warning("A notification for %s names no publicId. Its keys: %s", name, shown)
        if not await writer.append({name: public_ids or [None]}):
            raise HTTPException(503, "The change log cannot be written")
        status = 200 if public_ids else 202
        return _logged(request, JSONResponse({"publicIds": len(public_ids)}, status))

    async def health(request: Request) -> Response:
        if not await writer.check():
            raise HTTPException(503, "The change log cannot be written")
        return _logged(request, PlainTextResponse("OK"))

    app = Starlette(
        routes=[
            Route("/hooks", hook, methods=["POST"], max_body_size=LARGEST_BODY),
            Route("/hooks/{token}", hook, methods=["POST"], max_body_size=LARGEST_BODY),
            Route("/health", health),
        ],
        exception_handlers={HTTPException: _refusal},
    )
    app.router.redirect_slashes = False  # a redirect would show the token
    return app


def _token(request: Request, header: str) -> str:
    in_path = request.path_params.get("token")
    if in_path is not None:
        return str(in_path)
    value = request.headers.get(header, "")
    scheme, _, credentials = value.partition(" ")
    return credentials if scheme.lower() == "bearer" else value


async def _body(request: Request) -> bytes:
    try:
        async with asyncio.timeout(PATIENCE):
            return await request.body()
    except TimeoutError as error:
        raise HTTPException(408) from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The sender left") from error


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # for mypy
    return _logged(request, PlainTextResponse(error.detail, error.status_code, error.headers))


def _logged(request: Request, response: Response) -> Response:
    """Log an answer without the path, which may contain the token."""
    text = bytes(response.body).decode()
    logger.info("%s: %d %s", request.method[:10], response.status_code, text)
    return response
