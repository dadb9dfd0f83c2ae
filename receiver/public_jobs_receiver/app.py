"""The receiver as an ASGI application."""

import asyncio
import json
import logging
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from public_jobs_receiver.payload import LARGEST_BODY, USABLE, read_payload
from public_jobs_receiver.senders import Signatures
from public_jobs_receiver.writer import Writer
from tap_public_jobs.notification_log import NotificationLog

logger = logging.getLogger(__name__)

# publicIds of one notification that are noted; more would delay other organisations.
MOST_NAMED = 1_000

# Seconds for a body to arrive.
BODY_PATIENCE = 10

# Parameters whose value a sender wants back, to check that it has reached the right receiver.
CHALLENGES = ("challenge", "hub.challenge", "validationToken")

UNWRITTEN = "The notification log cannot be written"


def make_app(
    log: NotificationLog,
    tokens: Mapping[str, str],
    signatures: Signatures,
    token_header: str,
) -> Starlette:
    """Serve `/hooks`, `/hooks/{token}` and `/health`.

    Args:
        log: Where changes are noted.
        tokens: The name of the log that each token is for.
        signatures: Verifies signatures.
        token_header: The header with the token, if it is not in the path.
    """
    writer = Writer(log)

    async def hook(request: Request) -> Response:
        """Note what a notification names; answer 2xx only once it is committed."""
        name = tokens.get(_token(request, token_header))
        body = await _body(request, LARGEST_BODY + 1 if name else 0)
        if name is None:
            raise HTTPException(404)
        if request.method != "POST":
            answer = _challenge(request.query_params) or "OK"
            return _logged(request, PlainTextResponse(answer), "OK")
        public_ids, kind, fields = read_payload(body)
        challenge = "" if public_ids else _challenge(fields if body else request.query_params)
        cause = signatures.refusal(name, request.headers, body)
        if cause and not challenge:
            shown = signatures.describe(request.headers)
            line = "Refused a webhook for %s (401): %s. Signature headers: %s"
            logger.warning(line, name, cause, shown)
            raise HTTPException(401, "Not signed with the secret")
        if not public_ids and not challenge:
            keys = json.dumps([*fields])[:300]  # a sender chooses them
            logger.warning("A notification for %s names no publicId: %s, keys %s", name, kind, keys)
        named = public_ids[:MOST_NAMED]
        is_all = 0 < len(public_ids) == len(named)
        # A challenge is news, too, because it could be a notification, unless it is not signed.
        if not (cause or await writer.append({name: named if is_all else [*named, None]})):
            raise HTTPException(503, UNWRITTEN)
        if challenge:
            return _logged(request, PlainTextResponse(challenge), "a challenge")
        return _logged(request, JSONResponse({"publicIds": len(named)}, 200 if named else 202))

    async def health(request: Request) -> Response:
        if not await writer.works():
            raise HTTPException(503, UNWRITTEN)
        return _logged(request, PlainTextResponse("OK"))

    paths = ("/hooks", "/hooks/", "/hooks/{token}", "/hooks/{token}/")
    app = Starlette(
        routes=[
            Route("/health", health),
            *(Route(path, hook, methods=["GET", "POST"]) for path in paths),
        ],
        exception_handlers={HTTPException: _refusal},
    )
    app.router.redirect_slashes = False  # a redirect would show the token
    return app


def _token(request: Request, header: str) -> str:
    """Return the token in the path, or in the header after any scheme, such as `Bearer`."""
    in_header = request.headers.get(header, "").rpartition(" ")[2]
    return str(request.path_params.get("token", in_header))


def _challenge(asked: Mapping[str, object]) -> str:
    """Return the text that a sender wants back before it sends notifications; empty if none."""
    texts = (text for name in CHALLENGES if isinstance(text := asked.get(name), str))
    return next(filter(USABLE.fullmatch, texts), "")


async def _body(request: Request, most: int) -> bytes:
    """Read a body to its end, and return its first bytes.

    If the receiver answered earlier, a proxy could answer 502 instead, and the sender would retry.

    Args:
        request: The request.
        most: Bytes to keep; a sender without a valid token must not fill the memory.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_PATIENCE):
            async for chunk in request.stream():
                body += chunk[: most - len(body)]
    except TimeoutError as error:
        raise HTTPException(408) from error
    except ClientDisconnect as error:
        raise HTTPException(400, "The sender left") from error
    if len(body) > LARGEST_BODY:
        raise HTTPException(413, "Content Too Large")
    return body


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # for mypy
    return _logged(request, PlainTextResponse(error.detail, error.status_code, error.headers))


def _logged(request: Request, response: Response, text: str = "") -> Response:
    """Log an answer without the path, which may contain the token."""
    shown = text or bytes(response.body).decode()
    logger.info("%s: %d %s", request.method[:10], response.status_code, shown)
    return response
