"""The command `public-jobs-webhook`."""

import logging
import os
from pathlib import Path

import click
import uvicorn

from public_jobs_receiver.app import make_app
from public_jobs_receiver.senders import Signatures, read_lines, read_tokens
from tap_public_jobs.notification_log import NotificationLog, NotificationLogError

PREFIX = "PUBLIC_JOBS_WEBHOOK_"
SECRETS = ("TOKEN", "SIGNATURE_SECRET")
SETTINGS = ("CHANGES_URL", "TOKEN_HEADER", "SIGNATURE_HEADER")
VARIABLES = {PREFIX + it for it in (*SETTINGS, *SECRETS, *(f"{it}_FILE" for it in SECRETS))}

logger = logging.getLogger(__name__)


@click.group(no_args_is_help=False, context_settings={"show_default": True})
@click.version_option(package_name="public-jobs-receiver")
def commands() -> None:
    """Receive webhooks of the Public Jobs API, and note which jobs have changed."""


# No variable says where to listen, because Kubernetes sets PUBLIC_JOBS_WEBHOOK_PORT to the address
# of a Service of that name.
@commands.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    default=8080,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--signature-header",
    envvar=f"{PREFIX}SIGNATURE_HEADER",
    default="",
    help="The header with the signature, if the sender signs.",
)
@click.option(
    "--token-header",
    envvar=f"{PREFIX}TOKEN_HEADER",
    default="Authorization",
    help="The header with the token, for a sender that posts to /hooks.",
)
@click.option(
    "--changes-url",
    envvar=[f"{PREFIX}CHANGES_URL", "TAP_PUBLIC_JOBS_CHANGES_URL"],
    default="sqlite:///changes.db",
    help="The notification log, as in the tap's setting changes_url.",
)
def serve(host: str, port: int, signature_header: str, token_header: str, changes_url: str) -> None:
    """Receive webhooks at /hooks until Ctrl-C or SIGTERM.

    The token is in the header, or in the path: /hooks/<token>. It is read from
    PUBLIC_JOBS_WEBHOOK_TOKEN, the key of signatures from PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET.
    Either may be in a file instead: set the variable of that name with _FILE at the end to its
    path. Several tokens or keys are lines of a name and a secret; a new one needs a restart.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    _warn_of_unknown_variables()
    try:
        log = NotificationLog(changes_url)
        tokens = read_tokens(_secret("TOKEN"), log.name)
        secrets = read_lines(_secret("SIGNATURE_SECRET"), log.name)
        signed = {*tokens.values()} if signature_header else set()
        if signed != {name for name, _ in secrets}:
            msg = (
                f"set both {PREFIX}SIGNATURE_HEADER and {PREFIX}SIGNATURE_SECRET, with the same "
                f"organisations as {PREFIX}TOKEN, or neither"
            )
            raise click.ClickException(msg)
        log.append(dict.fromkeys(tokens.values(), ()))
    except NotificationLogError as error:
        raise click.ClickException(str(error)) from error
    uvicorn.run(
        make_app(log, tokens, Signatures(signature_header, secrets), token_header),
        host=host,
        port=port,
        http="h11",  # httptools, which uvicorn prefers, sets no bound to the headers of a request
        # A proxy never reuses a connection whose body was not read to its end.
        headers=[("Connection", "close")],
        access_log=False,  # it would show the token
        log_config=None,
    )


def _warn_of_unknown_variables() -> None:
    """Name variables that nothing reads: without CHANGES_URL, another log is written."""
    unknown = [it for it in sorted(os.environ) if it.startswith(PREFIX) and it not in VARIABLES]
    if unknown:
        logger.warning("These variables have no effect: %s", ", ".join(unknown))


def _secret(name: str) -> str:
    """Read a secret from its variable, or from the file that another variable names."""
    path = os.environ.get(f"{PREFIX}{name}_FILE")
    try:
        return Path(path).read_text("utf-8") if path else os.environ.get(f"{PREFIX}{name}", "")
    except (OSError, ValueError) as error:
        msg = f"{PREFIX}{name}_FILE is not a file that can be read: {path}"
        raise click.ClickException(msg) from error
