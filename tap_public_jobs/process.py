"""The process: one line for an error, whole lines on stdout, exit statuses, signals."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn, Self

import click
from singer_sdk.exceptions import ConfigurationError, MappingError
from singer_sdk.io_base import SingerWriter
from singer_sdk.singerlib import StateMessage
from singer_sdk.singerlib.json import serialize_json
from typing_extensions import override

from tap_public_jobs.errors import PublicJobsError

if TYPE_CHECKING:
    from singer_sdk.singerlib.encoding.simple import Message

SECONDS_TO_STOP = 1.9
"""How long after a signal a target that does not read may delay the end of the process."""


class WholeMessageWriter(SingerWriter):
    """Writes Singer messages to stdout, and lets a signal wait for the end of a line."""

    def __init__(self) -> None:
        super().__init__()
        self._writing = False
        self._status: int | None = None

    @override
    def serialize_message(self, message: Message) -> str:
        """Serialize one message.

        The SDK first copies each item of a state, which takes longer than the rest of the work.
        """
        if isinstance(message, StateMessage):
            return serialize_json({"type": message.type, "value": message.value})
        return super().serialize_message(message)

    @override
    def write_message(self, message: Message) -> None:
        """Write one message.

        Raises:
            PublicJobsError: It cannot be written, for instance because the target stopped reading.
            SystemExit: `stop` was called while the line was written.
        """
        line = self.format_message(message) + "\n"
        self._writing = True
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except OSError as error:
            # Otherwise Python fails again at exit, when it flushes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            msg = f"Messages cannot be written to stdout: {error.strerror}."
            if isinstance(error, BrokenPipeError):
                msg = "The target stopped reading: look for its own error above, and run again."
            raise PublicJobsError(msg) from error
        finally:
            self._writing = False
        if self._status is not None:
            status, self._status = self._status, None
            sys.exit(status)

    def exit_soon(self, status: int) -> None:
        """End the process within `SECONDS_TO_STOP`, even if nobody reads.

        Args:
            status: Exit status.
        """
        force = threading.Timer(SECONDS_TO_STOP, os._exit, [status])
        force.daemon = True
        force.start()

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


class Command(click.Command):
    """The tap's command: an error that a user can fix is one line and exit status 1."""

    logger: logging.Logger

    @classmethod
    def like(cls, command: click.Command, logger: logging.Logger) -> Self:
        """Build one with the name, options and action of another command."""
        for option in command.params:
            if option.name in {"state", "catalog"}:
                option.type = _JsonObjectFile()
        new = cls(
            command.name,
            callback=command.callback,
            params=command.params,
            help=command.help,
            context_settings=command.context_settings,
        )
        new.logger = logger
        return new

    @override
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command; see `click.Command.main`."""
        logging.captureWarnings(capture=True)
        # urllib3 warns of a malformed header with a traceback.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        if sys.stdout is None:  # started with its stdout closed
            self._fail("There is no stdout to write messages to.")
        _buffer_stdout()
        for handler in logging.getLogger().handlers:
            handler.addFilter(_is_news)
        try:
            return super().main(*args, **kwargs)
        except (PublicJobsError, ConfigurationError, MappingError) as error:
            self._fail(str(error))
        except RecursionError:
            self._fail("A response of the API, or a file, is nested too deeply to process.")

    def _fail(self, message: str) -> NoReturn:
        self.logger.critical("%s", " ".join(message.split()))
        sys.exit(1)


def _buffer_stdout() -> None:
    """Give stdout a buffer, so that every line is written whole.

    Without one, as under PYTHONUNBUFFERED, a signal or a non-blocking pipe can cut a line short,
    and Python reports nothing.
    """
    if not sys.stdout.isatty():
        with contextlib.suppress(AttributeError, OSError, ValueError):
            number = sys.stdout.fileno()
            os.set_blocking(number, True)
            sys.stdout = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


class _JsonObjectFile(click.File):
    """A file that has to hold a JSON object, which the SDK does not check."""

    @override
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> io.StringIO:
        try:
            text = super().convert(value, param, ctx).read()
            content = json.loads(text, parse_constant=_refuse)
        except (click.BadParameter, ValueError) as error:
            content = error
        if not isinstance(content, dict):
            name = param.name if param else "file"
            msg = f"--{name} {value} is not a file with a JSON object: {str(content)[:100]}"
            raise PublicJobsError(msg)
        return io.StringIO(text)


def _refuse(constant: str) -> NoReturn:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


def _is_news(record: logging.LogRecord) -> bool:
    # The SDK reports every failure again, as unhandled; `Command.main` has its own line.
    return not str(record.msg).startswith("An unhandled error occurred while syncing")
