"""The command `public-jobs-webhook`."""

import json
import logging
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click
from click.core import ParameterSource

from tap_public_jobs.changelog import ChangeLog, ChangeLogError, Counts
from tap_public_jobs.webhook.app import Signature, make_app
from tap_public_jobs.webhook.server import Server, listen

PREFIX = "PUBLIC_JOBS_WEBHOOK_"
TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,}")
"""What stands in a path as it is (RFC 3986, section 2.3)."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; what its user can mend is one line, and status 1."""
    try:
        commands(arguments, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        sys.exit(f"Error: {' '.join(error.format_message().split())}")
    except ChangeLogError as error:
        sys.exit(f"Error: {error}")
    except click.Abort:
        sys.exit(130)


@click.group()
@click.version_option(package_name="tap-public-jobs")
def commands() -> None:
    """Receive webhooks of the Public Jobs API, and note which jobs have changed."""


def _open(_: click.Context, parameter: click.Parameter, url: str) -> ChangeLog:
    given = click.get_current_context().get_parameter_source(parameter.name or "")
    if given is ParameterSource.COMMANDLINE and re.search(r"//[^/]*:[^/]*@|password=", url):
        msg = f"a password on a command line is seen by all: set {PREFIX}CHANGES_URL instead"
        raise click.BadParameter(msg)
    return ChangeLog(url)


changes_url = click.option(
    "--changes-url",
    "log",
    envvar=[f"{PREFIX}CHANGES_URL", "TAP_PUBLIC_JOBS_CHANGES_URL"],
    default="sqlite:///changes.db",
    callback=_open,
    help="The change log, as in the tap's setting changes_url.  [default: sqlite:///changes.db]",
)


@commands.command()
@click.option(
    "--host",
    envvar=f"{PREFIX}HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    envvar=f"{PREFIX}PORT",
    default=8080,
    type=click.IntRange(0, 65_535),
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--signature-header",
    envvar=f"{PREFIX}SIGNATURE_HEADER",
    help="The header with an HMAC-SHA256 of the body, if the sender signs.",
)
@changes_url
def serve(log: ChangeLog, host: str, port: int, signature_header: str | None) -> None:
    """Receive webhooks at /hooks/<token> until Ctrl-C or SIGTERM.

    The token is read from PUBLIC_JOBS_WEBHOOK_TOKEN, the key of signatures from
    PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET. Either may be in a file instead: then its path is in the
    variable of that name with _FILE at the end.
    """
    token = _secret("TOKEN") or ""
    if not TOKEN.fullmatch(token):
        msg = (
            f"{PREFIX}TOKEN must be 32 or more letters, digits or any of -._~, known to nobody: "
            "make one with `openssl rand -hex 32`"
        )
        raise click.ClickException(msg)
    key = _secret("SIGNATURE_SECRET")
    if bool(key) != bool(signature_header):
        msg = f"set both {PREFIX}SIGNATURE_HEADER and {PREFIX}SIGNATURE_SECRET, or none of them"
        raise click.ClickException(msg)
    if signature_header and not re.fullmatch(r"[A-Za-z0-9-]+", signature_header):
        msg = f"{PREFIX}SIGNATURE_HEADER must be the name of a header: letters, digits and -"
        raise click.ClickException(msg)
    if key and not key.isprintable():  # bytes that are not UTF-8 are not, either
        msg = f"{PREFIX}SIGNATURE_SECRET must be text in UTF-8"
        raise click.ClickException(msg)
    signature = Signature(signature_header, key) if signature_header and key else None
    log.append([])
    try:
        listener = listen(host, port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not the name of a host"
        msg = f"Cannot listen on {host}:{port} ({reason}): choose another --host or --port"
        raise click.ClickException(msg) from error
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    address = f"http://{host}:{listener.getsockname()[1]}"
    click.echo(f"Receiving at {address}/hooks/<token> until Ctrl-C.", err=True)
    Server(make_app(log, token, signature)).run([listener])


@commands.command("log")
@click.option("--unrecognised", is_flag=True, help="Payloads in which no publicId was found.")
@click.option(
    "--last",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="How many to show.",
)
@changes_url
def show_log(log: ChangeLog, *, unrecognised: bool, last: int) -> None:
    """Show what has come last."""
    if unrecognised:
        for received_at, payload in log.unrecognised(last):
            click.echo(f"{received_at} {payload}")
        return
    counts = log.counts()
    for public_id in log.read(counts.position - last).public_ids:
        click.echo(public_id)
    click.echo(
        f"{counts.rows} notifications, the last at position {counts.position}; "
        f"{counts.unrecognised} payloads not recognised. Log {counts.log}.",
        err=True,
    )


@commands.command()
@click.option(
    "--state",
    "states",
    type=click.File(encoding="utf-8"),
    multiple=True,
    required=True,
    help="A state of the tap, as `meltano state get` prints it; - for stdin. One for each that "
    "reads the log.",
)
@changes_url
def prune(log: ChangeLog, states: tuple[TextIO, ...]) -> None:
    """Remove what every one of the given states has read."""
    counts = log.counts()
    position = min(_position(state, counts) for state in states)
    click.echo(f"{log.forget(position)} rows removed, up to position {position}.")


def _position(file: TextIO, counts: Counts) -> int:
    """Return up to where a state has read the log.

    Raises:
        click.ClickException: It has not read it, or it is no state.
    """
    try:
        state = json.load(file)
        place = state.get("singer_state", state)["bookmarks"]["job_details"]["changes"]
        log, position = place["log"], place["position"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        log, position = None, None
    if log == counts.log and type(position) is int and 0 <= position <= counts.position:
        return position
    msg = (
        f"Nothing was removed: --state {file.name} has no place in this change log. Give the state "
        "of a run with this changes_url, and first run those that have not read it."
    )
    raise click.ClickException(msg)


def _secret(name: str) -> str | None:
    """Read a secret from its variable, or from the file that another variable names."""
    value, path = os.environ.get(PREFIX + name), os.environ.get(f"{PREFIX}{name}_FILE")
    if value or not path:
        return value
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        msg = f"{PREFIX}{name}_FILE is not a file that can be read: {path}"
        raise click.ClickException(msg) from error
