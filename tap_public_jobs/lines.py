"""Lines of the log: text from outside can neither forge nor flood one, and none shows a secret."""

import difflib
import json
import logging
import re
from collections.abc import Iterable
from urllib.parse import quote

from typing_extensions import override

# Characters of a name, and of a whole line.
LONGEST_NAME = 100
LONGEST_LINE = 10_000

# How much alike two names are, from 0 to 1, of which one is meant by the other.
ALIKE = 0.75

# What no line shows. A process has one tap.
_secrets: list[str] = []


def hide(secrets: Iterable[str]) -> None:
    """Leave these texts out of all lines from now on, whatever code writes them.

    That includes the forms in which a URL, Python and JSON write them.
    """
    forms = {
        form for it in secrets for form in (it, quote(it, safe=""), repr(it)[1:-1], json.dumps(it))
    }
    _secrets[:] = sorted((it.strip('"') for it in forms), key=len, reverse=True)


def shortened(text: str, longest: int = LONGEST_NAME) -> str:
    """Hide secrets in a text, and cut the middle out of a long one: its end has the remedy."""
    for secret in _secrets:  # before the cut, which may leave a part of one
        text = text.replace(secret, "…")
    tail = longest // 4
    return text if len(text) <= longest else f"{text[: longest - tail]}…{text[-tail:]}"


def quoted(value: object) -> str:
    """Quote a value from outside as Python writes it, and shorten it."""
    return shortened(repr(value))


def described(error: BaseException) -> str:
    """Describe an error of a library, and what caused it, without a full stop."""
    cause = f" ({described(error.__cause__)})" if error.__cause__ else ""
    return f"{type(error).__name__}: {shortened(str(error), 200).rstrip('.')}{cause}"


def closest(name: str, names: Iterable[str]) -> str:
    """Return which of the names is probably meant, in camel or in snake case; empty if none is.

    Args:
        name: That somebody wrote.
        names: Those that exist.
    """

    def snake_case(text: str) -> str:
        return re.sub("(?<=[a-z])(?=[A-Z])|-", "_", text).strip().lower()

    known = {snake_case(each): each for each in names}
    close = difflib.get_close_matches(snake_case(name), known, n=1, cutoff=ALIKE)
    return known[close[0]] if close else ""


def one_line(text: str) -> str:
    """Make a text one line: shorten it, hide secrets, and escape what is not printable.

    Programs that show logs, such as terminals, obey line breaks, escape sequences, marks that turn
    the direction of text, and other control and format characters of Unicode.
    """
    text = shortened(text, LONGEST_LINE)
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class OneLineRecord(logging.LogRecord):
    """A record of the log whose message is one line, whether of the tap, the SDK or a library.

    `logging.setLogRecordFactory(OneLineRecord)` makes this the class of all records.
    """

    @override
    def getMessage(self) -> str:
        return one_line(super().getMessage())
