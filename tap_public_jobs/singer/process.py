"""Whole lines on stdout, and an end soon after a signal."""

import json
import os
import sys
import threading

from singer_sdk.io_base import SingerWriter
from singer_sdk.singerlib import StateMessage
from singer_sdk.singerlib.encoding.simple import Message
from typing_extensions import override

from tap_public_jobs.errors import TapError

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
            TapError: The target stopped reading.
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
            raise TapError(msg) from error
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
