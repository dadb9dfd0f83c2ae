"""Who may send: those with a token, and a signature if their organisation signs."""

import hmac
import re
from base64 import b64decode, b64encode

import click
from starlette.datastructures import Headers

from tap_public_jobs.notification_log import NAME

# What a path can hold unescaped (RFC 3986, section 2.3).
TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,}")

RULE = (
    "PUBLIC_JOBS_WEBHOOK_TOKEN must be a secret of 32 or more letters, digits or any of -._~, or "
    "lines of a name and a secret; make one with `openssl rand -hex 32`"
)

# What may be a digest in hex or base64, without padding.
PART = re.compile(r"[A-Za-z0-9+/]+")

WRONG = "wrong signature"

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
    """Verifies signatures: Standard Webhooks (Svix), or the HMAC-SHA256 of the body in hex.

    Their age does not matter: a sender tries again for days after an outage, and a notification
    that somebody else sends once more only costs a request.

    Args:
        header: With the signature; empty if senders do not sign.
        secrets: Organisations and their secrets; if one has several, each is valid.
    """

    def __init__(self, header: str, secrets: list[tuple[str, str]]) -> None:
        self._header = header.lower()
        self._secrets = secrets

    def refusal(self, name: str, headers: Headers, body: bytes) -> str:
        """Return why a body is not one that an organisation has signed; empty if it is."""
        if not self._header:
            return ""
        given = headers.get(self._header, "")
        if not given:
            return f"no signature in {self._header}"
        secrets = [secret for owner, secret in self._secrets if owner == name]
        if any(_has(given.lower(), _hmac(it.encode(), body).hex()) for it in secrets):
            return ""
        prefix = self._header.removesuffix("signature")  # `webhook-`, or `svix-`
        message_id, timestamp = (headers.get(f"{prefix}{it}") for it in ("id", "timestamp"))
        if not (message_id and timestamp):
            return WRONG
        keys = [key for secret in secrets if (key := _standard_key(secret))]
        if not keys:
            return "the secret is not base64, as Standard Webhooks writes it"
        signed = f"{message_id}.{timestamp}.".encode() + body
        digests = [b64encode(_hmac(key, signed)).decode().rstrip("=") for key in keys]
        return "" if any(_has(given, it) for it in digests) else WRONG

    def describe(self, headers: Headers) -> str:
        """Name the headers that may be signatures, with length and scheme but without values."""
        found = [
            f"{name} ({len(value)} characters {''.join(SCHEME.findall(value))})"
            for name, value in headers.items()
            if name == self._header or re.search("sign|hmac", name)
        ]
        return ", ".join(found)[:300] or "none"


def _standard_key(secret: str) -> bytes:
    """Return the key in a secret of Standard Webhooks: base64 after `whsec_`; empty if none."""
    text = secret.rpartition("whsec_")[2].rstrip("=")
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return b""


def _hmac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _has(signature: str, digest: str) -> bool:
    """Return whether a digest is in a signature, whatever is around it: `sha256=…`, `v1,…`."""
    return any(hmac.compare_digest(it, digest) for it in PART.findall(signature))
