"""The process: one line for an error, whole lines on stdout, exit statuses, signals."""

import io
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import click
from singer_sdk import Tap
from singer_sdk.io_base import SingerWriter
from singer_sdk.singerlib import StateMessage
from singer_sdk.singerlib.encoding.simple import Message
from typing_extensions import override

from tap_public_jobs.errors import PublicJobsError, RequestError, SetupError
from tap_public_jobs.lines import OneLineRecord, described
from tap_public_jobs.singer.catalog import usable_catalog

# Seconds after a signal in which responses may still arrive. The rest of two seconds is for writing
# the state, which is slow on a busy machine.
SECONDS_TO_ANSWER = 0.8

# Seconds after a signal before the process exits even if stdout is blocked.
SECONDS_TO_STOP = 1.8


class WholeMessageWriter(SingerWriter):
    """Writes whole lines to stdout; a signal takes effect after the current line."""

    _writing = False
    _status: int | None = None

    @override
    def serialize_message(self, message: Message) -> str:
        if isinstance(message, StateMessage):
            # The SDK would copy the state first, job by job, and take twice as long for the rest.
            return json.dumps({"type": message.type, "value": message.value}, separators=(",", ":"))
        return super().serialize_message(message)

    @override
    def write_message(self, message: Message) -> None:
        """Write one message.

        Raises:
            PublicJobsError: The target stopped reading.
            SystemExit: `stop` was called while the line was written.
        """
        self._writing = True
        try:
            super().write_message(message)
        except OSError as error:
            msg = (
                "The tables have what the target acknowledged, and the next run resumes. The "
                f"target stopped reading ({error.strerror}): its own error is above this line."
            )
            raise PublicJobsError(msg) from error
        finally:
            self._writing = False
        if self._status is not None:
            sys.exit(self._status)

    def stop(self, status: int) -> None:
        """End the process from a signal handler.

        Args:
            status: Exit status.

        Raises:
            SystemExit: At once, or after the line that is being written.
        """
        if not self._writing:
            sys.exit(status)
        self._status = status


def exit_soon(status: int) -> None:
    """End the process after `SECONDS_TO_STOP`, even if stdout is blocked."""
    force = threading.Timer(SECONDS_TO_STOP, os._exit, [status])
    force.daemon = True
    force.start()


def run(tap: type[Tap]) -> None:
    """Run the tap's command; an expected error is one line and exit status 1."""
    try:
        command = tap.cli  # sets up the log
    except ValueError as error:  # in TAP_PUBLIC_JOBS_LOGLEVEL or LOGLEVEL
        sys.exit(f"Nothing was loaded. {error}: set LOGLEVEL to DEBUG, INFO, WARNING or ERROR.")
    logging.setLogRecordFactory(OneLineRecord)
    # urllib3 warns of a malformed header with a traceback.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    for handler in logging.getLogger().handlers:
        # The SDK logs every failure a second time, as unhandled.
        handler.addFilter(lambda record: not str(record.msg).startswith("An unhandled error"))
    for option in command.params:
        if option.name in {"config", "state", "catalog"}:
            option.type = JsonFile()
    try:
        # Without a buffer, as under PYTHONUNBUFFERED, a signal could cut a line short. Each line
        # is flushed, so that click ends the tap in silence once the reader of --discover has gone.
        sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        command()
    except (PublicJobsError, RequestError, OSError) as error:
        logging.getLogger(command.name).critical("%s", " ".join(str(error).split()))
        # Exit at once: a thread may wait a minute for its response, and flushing stdout may fail.
        os._exit(1)


class JsonFile(click.File):
    """The path of a file that has to hold a JSON object, which the SDK does not check."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        option = str(param.name) if param else ""
        if option == "config" and (value == "ENV" or Path(value).is_fifo()):
            return value  # a pipe, as in `--config <(decrypt settings.json)`, can be read only once
        try:
            content = {} | json.loads(Path(value).read_text("utf-8-sig"))  # fails unless an object
            if option == "catalog":
                content = usable_catalog(content)
        except Exception as error:  # whatever is wrong with the file
            why = getattr(error, "strerror", None) or described(error).partition("\n")[0]
            shown = "…" if "{" in value else value or "''"  # it may be the settings themselves
            msg = (
                f"--{option} {shown} cannot be used ({why}). Pass a file with {_CONTENTS[option]}."
            )
            raise SetupError(msg) from error
        return value if option == "config" else io.StringIO(json.dumps(content))


# What the file of an option has to hold.
_CONTENTS = {
    "config": "one JSON object in UTF-8",
    "catalog": "a catalog, as --discover writes it",
    "state": "only the object in the `value` of the last STATE line",
}
