"""Who may send: those with a token, and a signature if their organisation signs."""

import contextlib
import hmac
import re
from base64 import urlsafe_b64decode

import click
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError
from starlette.datastructures import Headers

from tap_public_jobs.notification_log import NAME

# What a path can hold unescaped (RFC 3986, section 2.3).
TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,}")

RULE = (
    "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more letters, digits or any of -._~, or "
    "lines of a name and a secret; make one with `openssl rand -hex 32`"
)

# 32 bytes in hex, or in either alphabet of base64, with anything around them: `sha256=…`, `v1=…`.
DIGEST = re.compile(r"(?:([\da-fA-F]{64})|([\w+/-]{43}))(?![\w+/-])", re.ASCII)

# The part of a signature that names the scheme.
SCHEME = re.compile(r"\b(?:t|v[0-9]|sha[0-9]{1,3})[=,]", re.IGNORECASE)


def read_lines(text: str, name: str) -> list[tuple[str, str]]:
    """Read a secret, or lines of a name and a secret.

    Two lines may have the same name, so that a new secret can replace an old one without a gap.

    Args:
        text: The setting.
        name: The name in a line without one.
    """
    lines = [line.rsplit(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(names[0].strip() if names else name, secret) for *names, secret in lines]


def read_tokens(text: str, name: str) -> dict[str, str]:
    """Return the name of the log that each token opens.

    The time of a look-up reveals nothing about a token: a dict compares only texts of equal hashes.

    Args:
        text: A token, or lines of a name and a token.
        name: Of the log for a token without a name.

    Raises:
        click.ClickException: There is no token, or one that cannot be used; the message shows none.
    """
    tokens: dict[str, str] = {}
    for number, (this, token) in enumerate(read_lines(text, name), 1):
        if not (NAME.fullmatch(this) and TOKEN.fullmatch(token)) or token in tokens:
            msg = f"{RULE} (token {number} is wrong, or occurs twice)"
            raise click.ClickException(msg)
        tokens[token] = this
    if not tokens:
        raise click.ClickException(RULE)
    return tokens


class Signatures:
    """Verifies the signature in a header: HMAC-SHA256 of the body, or Standard Webhooks (Svix).

    Args:
        header: Its name.
        secrets: Organisations and their secrets; if one has several, each is valid.
    """

    def __init__(self, header: str, secrets: list[tuple[str, str]]) -> None:
        self._header = header.lower()
        self._secrets = secrets

    def verify(self, name: str, headers: Headers, body: bytes) -> bool:
        """Return whether a body is signed with a secret of an organisation."""
        given = DIGEST.findall(headers.get(self._header, ""))
        digests = [
            bytes.fromhex(hexa) if hexa else urlsafe_b64decode(f"{it}=") for hexa, it in given
        ]
        prefix = self._header.removesuffix("signature")  # `webhook-`, or `svix-`
        parts = ("id", "timestamp", "signature")
        standard = {f"webhook-{part}": headers.get(prefix + part, "") for part in parts}
        for secret in (it for owner, it in self._secrets if owner == name):
            digest = hmac.digest(secret.encode(), body, "sha256")
            if any(hmac.compare_digest(digest, each) for each in digests):
                return True
            with contextlib.suppress(WebhookVerificationError, EmptyWebhookSecretError, ValueError):
                Webhook(secret).verify(body, standard, json_parse=False)
                return True
        return False

    def describe(self, headers: Headers) -> str:
        """Name the headers that may be signatures, with length and scheme but without values."""
        found = [
            f"{name} ({len(value)} characters {''.join(SCHEME.findall(value))})"
            for name, value in headers.items()
            if name == self._header or re.search("sign|hmac", name)
        ]
        return ", ".join(found)[:300] or "none"
