"""Which tokens are valid, and for which log."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from tap_public_jobs.changelog.database import NAME

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,}")
"""What a path can hold unescaped (RFC 3986, section 2.3)."""


class TokensError(Exception):
    """The tokens cannot be used; the message names the line, and no token.

    Args:
        reason: In a few words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more letters, digits or any of "
            "-._~, or lines of a name and a secret; make one with `openssl rand -hex 32` "
            f"({reason})"
        )


class Tokens:
    """Tokens and the logs that they open.

    Args:
        read: Returns a token, or lines of a name and a token. If two lines have the same name, both
            tokens are valid, so that a new one can replace an old one without a gap.
        name: Of the log for a token without a name.

    Raises:
        TokensError: There is no token, or one that cannot be used.
    """

    def __init__(self, read: Callable[[], str], name: str) -> None:
        self._read = read
        self._name = name
        self.reload()

    def reload(self) -> None:
        """Read the tokens again; if they cannot be used, keep the old ones.

        Raises:
            TokensError: They cannot be used.
        """
        self._names = dict(self._parsed(self._read()))

    @property
    def names(self) -> list[str]:
        """The logs that can be written."""
        return sorted(set(self._names.values()))

    def name_of(self, token: str) -> str | None:
        """Return the log that a token opens, or None if it is not valid."""
        # The time that it takes to find a hash says nothing about the token.
        return self._names.get(_hash(token))

    def _parsed(self, text: str) -> list[tuple[bytes, str]]:
        lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1)]
        found = [self._line(number, words) for number, words in lines if words]
        if not found or len(found) != len(dict(found)):
            raise TokensError("there is no token" if not found else "a token occurs twice")
        return found

    def _line(self, number: int, words: list[str]) -> tuple[bytes, str]:
        *names, token = words
        name = names[0] if names else self._name
        if len(names) > 1 or not NAME.fullmatch(name) or not TOKEN.fullmatch(token):
            reason = f"line {number} is wrong"
            raise TokensError(reason)
        return _hash(token), name


def _hash(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
