"""The command `public-jobs-webhook`."""

import json
import logging
import os
import sys
import time
import traceback
from pathlib import Path

import click

from tap_public_jobs.errors import DamagedStateError, NotificationLogError
from tap_public_jobs.lines import OneLineRecord, closest, one_line

# Only what is quick to import, because a scheduler runs `news` every minute, before Meltano.
from tap_public_jobs.notification_log import NotificationLog
from tap_public_jobs.sync.state import SyncState
from tap_public_jobs.sync.state_json import load
from tap_public_jobs.sync.work import has_work

PREFIX = "PUBLIC_JOBS_WEBHOOK"

NO_NEWS = 1
FAILED = 2


def main(arguments: list[str] | None = None) -> None:
    """Run the command; an error is status 2, because 1 means that there is no news."""
    try:
        commands(arguments, standalone_mode=False)
    except (click.ClickException, NotificationLogError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"Error: {one_line(' '.join(message.split()))}", err=True)
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


changes_url_option = click.option(
    "--changes-url",
    envvar=[f"{PREFIX}_CHANGES_URL", "TAP_PUBLIC_JOBS_CHANGES_URL"],
    default="sqlite:///changes.db",
    help="The notification log, as in the tap's setting changes_url.",
)


@commands.command(context_settings={"auto_envvar_prefix": PREFIX})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    default=8080,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--signature-header", help="The header with an HMAC-SHA256 of the body, if the sender signs."
)
@click.option(
    "--token-header",
    default="Authorization",
    help="The header with the token, for a sender that posts to /hooks.",
)
@changes_url_option
def serve(
    host: str, port: int, signature_header: str | None, token_header: str, changes_url: str
) -> None:
    """Receive webhooks at /hooks until Ctrl-C or SIGTERM.

    The token is in the header, or in the path: /hooks/<token>. It is read from
    PUBLIC_JOBS_WEBHOOK_TOKEN, the key of signatures from PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET.
    Either may be in a file instead: set the variable of that name with _FILE at the end to its
    path. Several tokens or keys are lines of a name and a secret; a new one needs a restart.
    """
    try:
        import uvicorn  # noqa: PLC0415  # slow, only here

        from tap_public_jobs.webhook import senders  # noqa: PLC0415
        from tap_public_jobs.webhook.app import make_app  # noqa: PLC0415
    except ModuleNotFoundError as error:
        msg = f"The receiver needs {error.name}: install tap-public-jobs[webhook]."
        raise click.ClickException(msg) from error

    _refuse_misspelt_variables()
    log = NotificationLog(changes_url)
    tokens = senders.read_tokens(_secret("TOKEN"), log.name)
    secrets = senders.read_lines(_secret("SIGNATURE_SECRET"), log.name)
    signed = {*tokens.values()} if signature_header else set()
    if signed != {name for name, _ in secrets}:
        msg = (
            f"set both {PREFIX}_SIGNATURE_HEADER and {PREFIX}_SIGNATURE_SECRET, with the same "
            f"organisations as {PREFIX}_TOKEN, or neither"
        )
        raise click.ClickException(msg)
    signatures = senders.Signatures(signature_header, secrets) if signature_header else None
    log.append(dict.fromkeys(tokens.values(), ()))
    logging.setLogRecordFactory(OneLineRecord)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    uvicorn.run(
        make_app(log, tokens, signatures, token_header),
        host=host,
        port=port,
        http="h11",  # httptools, which uvicorn prefers, sets no bound to the headers of a request
        # A proxy never reuses a connection whose body was not read to its end.
        headers=[("Connection", "close")],
        access_log=False,  # it would show the token
        log_config=None,
    )


def _refuse_misspelt_variables() -> None:
    """Refuse a variable that is probably one of these: without CHANGES_URL, a new log is made."""
    names = [
        it
        for option in serve.params
        if (it := str(option.name).upper()) not in {"HOST", "PORT"}  # Kubernetes sets some such
    ]
    names += ["TOKEN", "TOKEN_FILE", "SIGNATURE_SECRET", "SIGNATURE_SECRET_FILE"]
    for variable in os.environ:
        name = variable.removeprefix(f"{PREFIX}_")
        if name not in {variable, *names} and (meant := closest(name, names, 0.85)):
            msg = f"{variable} has no effect: did you mean {PREFIX}_{meant}?"
            raise click.ClickException(msg)


def _secret(name: str) -> str:
    """Read a secret from its variable, or from the file that another variable names."""
    path = os.environ.get(f"{PREFIX}_{name}_FILE")
    try:
        return Path(path).read_text("utf-8") if path else os.environ.get(f"{PREFIX}_{name}", "")
    except (OSError, ValueError) as error:
        msg = f"{PREFIX}_{name}_FILE is not a file that can be read: {path}"
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
@changes_url_option
def news(states: tuple[str, ...], changes_url: str) -> None:
    """Exit with 0 if a run of the tap has work to do, with 1 if not, with 2 on an error.

    Prints the names of the logs that have news, as they were given. A log that does not exist is an
    error, but does not hide the news of others.
    """
    log = NotificationLog(changes_url)
    positions = log.positions()
    status = NO_NEWS
    for state in states:
        *given, path = state.split("=", maxsplit=1)
        name = given[0] if given else log.name
        if name not in positions:
            msg = f"There is no notification log with the name {name}: add a line `{name} <token>`"
            click.echo(f"Error: {msg} to the receiver's tokens, and restart it.", err=True)
            status = status and FAILED
        elif has_work(read_state(path), positions[name], int(time.time())):
            status = 0
            if given:
                click.echo(name)
    sys.exit(status)


def read_state(path: str) -> SyncState:
    """Read a state, as the tap writes it or as `meltano state get` prints it.

    Args:
        path: Of a file, or `-` for stdin.

    Returns:
        An empty state if none can be read: then a run has work to do.
    """
    try:
        state = json.loads(sys.stdin.read() if path == "-" else Path(path).read_text("utf-8"))
        return load(state.get("singer_state", state))
    except (OSError, ValueError, AttributeError, RecursionError, DamagedStateError):
        return SyncState()  # AttributeError: no JSON object, or no stdin
