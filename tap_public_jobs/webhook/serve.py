"""Starts the receiver with the settings of its user."""

from __future__ import annotations

import logging
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tap_public_jobs.changelog import ChangeLogError
from tap_public_jobs.webhook.app import Signature, make_app
from tap_public_jobs.webhook.server import Server, listen
from tap_public_jobs.webhook.tokens import Tokens, TokensError

if TYPE_CHECKING:
    import socket

    from tap_public_jobs.changelog import ChangeLog

logger = logging.getLogger(__name__)

PREFIX = "PUBLIC_JOBS_WEBHOOK_"


def serve(
    log: ChangeLog, host: str, port: int, signature_header: str | None, token_header: str
) -> None:
    """Receive webhooks until a signal.

    Raises:
        click.ClickException: A setting is wrong.
        ChangeLogError: The change log cannot be written.
    """
    try:
        tokens = Tokens(partial(_secret, "TOKEN"), log.name)
    except TokensError as error:
        raise click.ClickException(str(error)) from error
    signature = _signature(signature_header)
    if not _is_header(token_header):
        msg = f"{PREFIX}TOKEN_HEADER must be the name of a header: letters, digits and -"
        raise click.ClickException(msg)
    log.append_to(dict.fromkeys(tokens.names, ()))
    listener = _listen(host, port)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    # Its warnings are about malformed requests, which anyone can send.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"
    click.echo(f"Receiving at {address}/hooks/<token> until Ctrl-C.", err=True)
    app = make_app(log, tokens, signature, token_header=token_header)
    Server(app, partial(_reload, log, tokens)).run([listener])


def _reload(log: ChangeLog, tokens: Tokens) -> None:
    try:
        tokens.reload()
    except (TokensError, click.ClickException) as error:
        logger.error("Keeping the old tokens: %s", error)  # noqa: TRY400  # one line
        return
    try:
        log.append_to(dict.fromkeys(tokens.names, ()))
    except ChangeLogError as error:  # a removed token must be invalid all the same
        logger.error("%s", error)  # noqa: TRY400  # one line
    logger.info("Reloaded the tokens: %d logs.", len(tokens.names))


def _signature(header: str | None) -> Signature | None:
    key = _secret("SIGNATURE_SECRET")
    if bool(key) != bool(header):
        msg = f"set both {PREFIX}SIGNATURE_HEADER and {PREFIX}SIGNATURE_SECRET, or neither"
        raise click.ClickException(msg)
    if header and not _is_header(header):
        msg = f"{PREFIX}SIGNATURE_HEADER must be the name of a header: letters, digits and -"
        raise click.ClickException(msg)
    if not key.isprintable():  # bytes that are not UTF-8 are not, either
        msg = f"{PREFIX}SIGNATURE_SECRET must be text in UTF-8"
        raise click.ClickException(msg)
    return Signature(header, key) if header else None


def _is_header(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9-]+", name))


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not the name of a host"
        msg = f"Cannot listen on {host}:{port} ({reason}): choose another --host or --port"
        raise click.ClickException(msg) from error


def _secret(name: str) -> str:
    """Read a secret from its variable, or from the file that another variable names."""
    value, path = os.environ.get(PREFIX + name), os.environ.get(f"{PREFIX}{name}_FILE")
    if value or not path:
        return value or ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        msg = f"{PREFIX}{name}_FILE is not a file that can be read: {path}"
        raise click.ClickException(msg) from error
