"""The command of a tap: its files, one line for an error, and its exit status."""

import io
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import click
from typing_extensions import override

from tap_public_jobs.errors import SetupError, TapError
from tap_public_jobs.lines import OneLineRecord, described
from tap_public_jobs.singer.catalog import Keys, usable_catalog
from tap_public_jobs.singer.tap import SingerTap

# What the file of an option has to hold.
_CONTENTS = {
    "config": "one JSON object in UTF-8",
    "catalog": "a catalog, as --discover writes it",
    "state": "only the object in the `value` of the last STATE line",
}


def run(tap: type[SingerTap]) -> None:
    """Run the tap's command; an expected error is one line and exit status 1."""
    try:
        command = tap.cli  # sets up the log
    except ValueError as error:  # in LOGLEVEL, or that of the tap
        sys.exit(f"Nothing was loaded. {error}: set LOGLEVEL to DEBUG, INFO, WARNING or ERROR.")
    logging.setLogRecordFactory(OneLineRecord)
    # urllib3 warns of a malformed header with a traceback.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    for handler in logging.getLogger().handlers:
        # The SDK logs every failure a second time, as unhandled.
        handler.addFilter(lambda record: not str(record.msg).startswith("An unhandled error"))
    for option in command.params:
        if option.name in {"config", "state", "catalog"}:
            option.type = JsonFile(tap.keys)
    try:
        # Without a buffer, as under PYTHONUNBUFFERED, a signal could cut a line short. Each line
        # is flushed, so that click ends the tap in silence once the reader of --discover has gone.
        sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        command()
    except (TapError, OSError) as error:
        logging.getLogger(command.name).critical("%s", " ".join(str(error).split()))
        # Exit at once: a thread may wait a minute for its response, and flushing stdout may fail.
        os._exit(1)


class JsonFile(click.File):
    """The path of a file that has to hold a JSON object, which the SDK does not check.

    Args:
        keys: The key of each stream.
    """

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        option = str(param.name) if param else ""
        if option == "config" and (value == "ENV" or Path(value).is_fifo()):
            return value  # a pipe, as in `--config <(decrypt settings.json)`, can be read only once
        try:
            content = {} | json.loads(Path(value).read_text("utf-8-sig"))  # fails unless an object
            if option == "catalog":
                content = usable_catalog(content, self._keys)
        except Exception as error:  # whatever is wrong with the file
            why = getattr(error, "strerror", None) or described(error).partition("\n")[0]
            shown = "…" if "{" in value else value or "''"  # it may be the settings themselves
            msg = (
                f"--{option} {shown} cannot be used ({why}). Pass a file with {_CONTENTS[option]}."
            )
            raise SetupError(msg) from error
        return value if option == "config" else io.StringIO(json.dumps(content))
