"""The command `public-jobs-webhook`."""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tap_public_jobs.changelog import NAME, ChangeLog
from tap_public_jobs.errors import ChangeLogError
from tap_public_jobs.sync.plan import has_work
from tap_public_jobs.webhook.news import read_state
from tap_public_jobs.webhook.tokens import Tokens, read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "PUBLIC_JOBS_WEBHOOK_"

NO_NEWS = 1
FAILED = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error is status 2, because 1 means that there is no news."""
    try:
        commands(arguments, standalone_mode=False)
    except (click.ClickException, ChangeLogError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"Error: {' '.join(message.split())}", err=True)
        sys.exit(FAILED)
    except click.Abort:
        sys.exit(130)
    except Exception:  # noqa: BLE001  # Python would exit with 1
        traceback.print_exc()
        sys.exit(FAILED)


@click.group(no_args_is_help=False, context_settings={"show_default": True})
@click.version_option(package_name="tap-public-jobs")
def commands() -> None:
    """Receive webhooks of the Public Jobs API, and note which jobs have changed."""


changes_url = click.option(
    "--changes-url",
    "log",
    envvar=[f"{PREFIX}CHANGES_URL", "TAP_PUBLIC_JOBS_CHANGES_URL"],
    default="sqlite:///changes.db",
    callback=lambda _, __, url: ChangeLog(url),
    help="The change log, as in the tap's setting changes_url.",
)


@commands.command()
@click.option("--host", envvar=f"{PREFIX}HOST", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    envvar=f"{PREFIX}PORT",
    default=8080,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--signature-header",
    envvar=f"{PREFIX}SIGNATURE_HEADER",
    help="The header with an HMAC-SHA256 of the body, if the sender signs.",
)
@click.option(
    "--token-header",
    envvar=f"{PREFIX}TOKEN_HEADER",
    default="Authorization",
    help="The header with the token, for a sender that posts to /hooks.",
)
@changes_url
def serve(
    log: ChangeLog, host: str, port: int, signature_header: str | None, token_header: str
) -> None:
    """Receive webhooks at /hooks until Ctrl-C or SIGTERM.

    The token is in the header, or in the path: /hooks/<token>. It is read from
    PUBLIC_JOBS_WEBHOOK_TOKEN, the key of signatures from PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET.
    Either may be in a file instead: set the variable of that name with _FILE at the end to its
    path. Several tokens or keys are lines of a name and a secret; a new one needs a restart.
    """
    try:
        import uvicorn  # noqa: PLC0415  # slow, only here

        from tap_public_jobs.webhook.app import make_app  # noqa: PLC0415
        from tap_public_jobs.webhook.signatures import Signatures  # noqa: PLC0415
    except ModuleNotFoundError as error:
        msg = f"The receiver needs {error.name}: install tap-public-jobs[webhook]."
        raise click.ClickException(msg) from error

    tokens = Tokens(_secret("TOKEN"), log.name)
    secrets: dict[str, list[str]] = {}
    for name, secret in read_lines(_secret("SIGNATURE_SECRET"), log.name):
        secrets.setdefault(name, []).append(secret)
    if bool(secrets) != bool(signature_header):
        msg = f"set both {PREFIX}SIGNATURE_HEADER and {PREFIX}SIGNATURE_SECRET, or neither"
        raise click.ClickException(msg)
    if secrets and secrets.keys() != tokens.names:
        msg = f"{PREFIX}SIGNATURE_SECRET must name the same organisations as {PREFIX}TOKEN"
        raise click.ClickException(msg)
    signatures = Signatures(signature_header, secrets) if signature_header else None
    log.append_to(dict.fromkeys(tokens.names, ()))
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    uvicorn.run(
        make_app(log, tokens, signatures, token_header),
        host=host,
        port=port,
        # A proxy never reuses a connection whose body was not read to its end.
        headers=[("Connection", "close")],
        access_log=False,  # it would show the token
        log_config=None,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=25,  # longer than any request takes
    )


def _secret(name: str) -> str:
    """Read a secret from its variable, or from the file that another variable names."""
    path = os.environ.get(f"{PREFIX}{name}_FILE")
    if not path:
        return os.environ.get(PREFIX + name, "")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        msg = f"{PREFIX}{name}_FILE is not a file that can be read: {path}"
        raise click.ClickException(msg) from error


@commands.command()
@click.option(
    "--state",
    "states",
    metavar="[NAME=]FILE",
    multiple=True,
    required=True,
    help="A state of the tap, as `meltano state get` prints it, and the name of its log; - for "
    "stdin. May be repeated.",
)
@changes_url
def news(log: ChangeLog, states: Sequence[str]) -> None:
    """Exit with 0 if a run of the tap has work to do, with 1 if not, with 2 on an error.

    Prints the names of the logs that have news, as given. A log that is not there is an error, but
    does not hide the news of others.
    """
    positions = log.positions()
    status = NO_NEWS
    for state in states:
        prefix, separator, path = state.partition("=")
        is_named = bool(separator and NAME.fullmatch(prefix))
        name = prefix if is_named else log.name
        if name not in positions:
            msg = f"Error: There is no change log with the name {name}: give the receiver its token"
            click.echo(msg, err=True)
            status = status and FAILED
        elif has_work(read_state(path if is_named else state), positions[name], time.time()):
            status = 0
            if is_named:
                click.echo(name)
    sys.exit(status)
