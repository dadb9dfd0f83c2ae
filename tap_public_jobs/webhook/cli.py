"""The command `public-jobs-webhook`."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import traceback
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click
from click.core import ParameterSource

from tap_public_jobs.changelog import ChangeLog, ChangeLogError
from tap_public_jobs.changelog.database import NAME
from tap_public_jobs.webhook.news import bookmark_of, has_news, read_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tap_public_jobs.changelog import Place

PREFIX = "PUBLIC_JOBS_WEBHOOK_"

NO_NEWS = 1
FAILED_TO_LOOK = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an error that its user can fix is one line and status 1 (2 for `news`)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        commands(arguments, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _fail(" ".join(error.format_message().split()), arguments)
    except ChangeLogError as error:
        _fail(str(error), arguments)
    except OSError as error:  # of stdout; errors of other files are handled where they are read
        with contextlib.suppress(OSError):
            sys.stdout.close()  # Python would try again at exit
        _fail(f"The output cannot be written ({error.strerror})", arguments)
    except click.Abort:
        sys.exit(130)
    except Exception:
        if arguments[0] != "news":
            raise
        traceback.print_exc()  # Python would exit with 1, which means that there is no news
        sys.exit(FAILED_TO_LOOK)


def _fail(message: str, arguments: Sequence[str]) -> NoReturn:
    if arguments[0] == "news":
        click.echo(f"Error: {message}", err=True)
        sys.exit(FAILED_TO_LOOK)
    sys.exit(f"Error: {message}")


@click.group()
@click.version_option(package_name="tap-public-jobs")
def commands() -> None:
    """Receive webhooks of the Public Jobs API, and note which jobs have changed."""


def _open(_: click.Context, parameter: click.Parameter, url: str) -> ChangeLog:
    given = click.get_current_context().get_parameter_source(parameter.name or "")
    if given is ParameterSource.COMMANDLINE and re.search(r"//[^/]*:[^/]*@|password=", url):
        msg = f"other users can see a password on a command line: set {PREFIX}CHANGES_URL instead"
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


class State(NamedTuple):
    """A file with a state of the tap."""

    name: str | None
    path: str


def _states(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> list[State]:
    found = []
    for value in values:
        name, separator, path = value.partition("=")
        named = separator and NAME.fullmatch(name)
        found.append(State(name, path) if named else State(None, value))
    return found


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
@click.option(
    "--token-header",
    envvar=f"{PREFIX}TOKEN_HEADER",
    default="Authorization",
    show_default=True,
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
    path. Several tokens are lines of a name and a token; SIGHUP reads the file again.
    """
    try:
        from tap_public_jobs.webhook import serve as receiver  # noqa: PLC0415  # slow, only here
    except ModuleNotFoundError as error:
        msg = f"The receiver needs {error.name}: install tap-public-jobs[webhook]."
        raise click.ClickException(msg) from error

    receiver.serve(log, host, port, signature_header, token_header)


@commands.command("log")
@click.option("--unrecognised", is_flag=True, help="Show payloads without a publicId.")
@click.option(
    "--last",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="How many to show.",
)
@changes_url
def show_log(log: ChangeLog, *, unrecognised: bool, last: int) -> None:
    """Show the latest entries."""
    if unrecognised:
        for received_at, payload in log.unrecognised(last):
            click.echo(f"{received_at} {_printable(payload)}")
        return
    counts = log.counts()
    for public_id in log.read().public_ids[-last:]:
        click.echo(_printable(public_id))
    click.echo(
        f"Jobs: {counts.rows}, the last at position {counts.position}. "
        f"Payloads not recognised: {counts.unrecognised}. Log: {counts.log}.",
        err=True,
    )


def _printable(text: str) -> str:
    """Escape what could act on a terminal, as JSON does."""
    return "".join(it if it.isprintable() else json.dumps(it)[1:-1] for it in text)


@commands.command()
@click.option(
    "--state",
    "states",
    metavar="[NAME=]FILE",
    multiple=True,
    required=True,
    callback=_states,
    help="A state of the tap, as `meltano state get` prints it, and the name of its log; - for "
    "stdin. May be repeated.",
)
@changes_url
def news(log: ChangeLog, states: list[State]) -> None:
    """Exit with 0 if a run of the tap has work to do, with 1 if not, with 2 on an error.

    Prints the names of the logs that have news, as given.
    """
    places = log.places()
    found = [
        state
        for state in states
        if has_news(bookmark_of(read_state(state.path)), _place(places, state.name or log.name))
    ]
    for state in found:
        if state.name:
            click.echo(state.name)
    if not found:
        sys.exit(NO_NEWS)


def _place(places: dict[str, Place], name: str) -> Place:
    if name in places:
        return places[name]
    msg = f"There is no change log with the name {name}: give the receiver a token with that name"
    raise click.ClickException(msg)


@commands.command()
@click.option(
    "--state",
    "states",
    metavar="[NAME=]FILE",
    multiple=True,
    callback=_states,
    help="A state of the tap, as `meltano state get` prints it, and the name of its log; - for "
    "stdin. Rows that all of them have read are removed, so give one for each pipeline.",
)
@click.option(
    "--older-than",
    type=click.IntRange(0, 36_500),
    metavar="DAYS",
    help="Remove rows and payloads older than this from all logs, read or not.",
)
@click.option(
    "--keep",
    type=click.IntRange(0),
    metavar="NUMBER",
    help="Remove all but the last NUMBER rows and payloads of each log, read or not.",
)
@changes_url
def prune(log: ChangeLog, states: list[State], older_than: int | None, keep: int | None) -> None:
    """Remove rows that the tap has read, and old rows and payloads."""
    if not states and older_than is None and keep is None:
        msg = "Nothing was removed: give --state, --older-than or --keep"
        raise click.ClickException(msg)
    places = log.places()
    read: dict[str, int] = {}
    for state in states:
        name = state.name or log.name
        position = _position(state.path, _place(places, name))
        read[name] = min(position, read.get(name, position))
    for name, position in read.items():
        click.echo(f"Rows removed: {log.forget(position, name)}, to position {position}.")
    if older_than is not None or keep is not None:
        before = None if older_than is None else datetime.now(UTC) - timedelta(days=older_than)
        rows, payloads = log.prune(before=before, most=keep)
        click.echo(f"Rows removed: {rows}. Payloads removed: {payloads}.")


def _position(path: str, place: Place) -> int:
    """Return the position to which a state has read the log.

    Raises:
        click.ClickException: It has not read the log, or is not a state.
    """
    bookmark = bookmark_of(read_state(path))
    if bookmark and bookmark.log == place.log and bookmark.position <= place.position:
        return bookmark.position
    msg = (
        f"Nothing was removed: --state {path} has no position in this change log. Give a state "
        "that a run with this changes_url has written."
    )
    raise click.ClickException(msg)
