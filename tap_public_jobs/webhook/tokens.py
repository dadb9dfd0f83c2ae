"""Which tokens are valid, and for which log."""

from __future__ import annotations

import re
from hashlib import sha256

import click

from tap_public_jobs.changelog import NAME

# What a path can hold unescaped (RFC 3986, section 2.3).
TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,}")

RULE = (
    "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more letters, digits or any of -._~, or "
    "lines of a name and a secret; make one with `openssl rand -hex 32`"
)


def read_lines(text: str, name: str) -> list[tuple[str, str]]:
    """Read a secret, or lines of a name and a secret.

    Two lines may have the same name, so that a new secret can replace an old one without a gap.

    Args:
        text: The setting.
        name: The name in a line without one.
    """
    lines = [line.rsplit(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(names[0].strip() if names else name, secret) for *names, secret in lines]


class Tokens:
    """Tokens and the logs that they open.

    Args:
        text: A token, or lines of a name and a token.
        name: Of the log for a token without a name.

    Raises:
        click.ClickException: There is no token, or one that cannot be used; the message shows none.
    """

    def __init__(self, text: str, name: str) -> None:
        self._names: dict[bytes, str] = {}
        for number, (this, token) in enumerate(read_lines(text, name), 1):
            if not (NAME.fullmatch(this) and TOKEN.fullmatch(token)) or self.name_of(token):
                msg = f"{RULE} (token {number} is wrong, or occurs twice)"
                raise click.ClickException(msg)
            self._names[_hash(token)] = this
        if not self._names:
            raise click.ClickException(RULE)

    @property
    def names(self) -> set[str]:
        """The logs that can be written."""
        return set(self._names.values())

    def name_of(self, token: str) -> str | None:
        """Return the log that a token opens, or None if it is not valid."""
        # The time that it takes to find a hash says nothing about the token.
        return self._names.get(_hash(token))


def _hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
