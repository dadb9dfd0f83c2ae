"""Lines of the log: what an API or a file puts into one can neither forge nor flood it.

Nor does any show a secret.
"""

import logging
from collections.abc import Iterable

from typing_extensions import override

# Characters of a name, and of a whole line.
LONGEST_NAME = 100
LONGEST_LINE = 10_000

# What no line shows. A process has one tap.
_secrets: list[str] = []


def hide(secrets: Iterable[str]) -> None:
    """Show these texts in no line from now on, whatever puts them there: a mistake, or a server."""
    _secrets[:] = secrets


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """Hide secrets in a text, and cut the middle out of a long one: its end has the remedy."""
    for secret in _secrets:  # before the cut, which may leave a part of one
        text = text.replace(secret, "…")
    tail = longest // 4
    return text if len(text) <= longest else f"{text[: longest - tail]}…{text[-tail:]}"


def quoted(value: object) -> str:
    """Quote a value from outside as Python writes it, and shorten it."""
    return shortened(repr(value))


def described(error: Exception) -> str:
    """Name an error that others raised, in a short sentence without its full stop."""
    return f"{type(error).__name__}: {shortened(str(error), 200).rstrip('.')}"


def one_line(text: str) -> str:
    """Make one line of a text: shortened, without secrets, and without what a log reader obeys.

    Terminals and mails obey too: line breaks, escape sequences, marks that turn the direction of
    text, and all else that Unicode calls control or format characters.
    """
    text = shortened(text, LONGEST_LINE)
    return "".join(it if it.isprintable() else repr(it)[1:-1] for it in text)


class OneLineRecord(logging.LogRecord):
    """A record of the log whose message is one line, whoever wrote it: the tap, the SDK, a library.

    `logging.setLogRecordFactory(OneLineRecord)` makes all records so.
    """

    @override
    def getMessage(self) -> str:
        return one_line(super().getMessage())
