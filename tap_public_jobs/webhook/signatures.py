"""Whether a notification is signed with a secret of its organisation."""

from __future__ import annotations

import contextlib
import hmac
import re
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.datastructures import Headers

# 32 bytes in hex or in either alphabet of base64, whatever is around them: `sha256=…`, `v1=…`.
DIGEST = re.compile(r"(?:([\da-fA-F]{64})|([\w+/-]{43}))(?![\w+/-])", re.ASCII)

# The part of a signature that names the scheme.
SCHEME = re.compile(r"\b(?:t|v[0-9]|sha[0-9]{1,3})[=,]", re.IGNORECASE)


class Signatures:
    """HMAC-SHA256 of the body, or of what Standard Webhooks (Svix) sign, in a header.

    Args:
        header: Its name.
        secrets: Of each organisation; all of them are valid.
    """

    def __init__(self, header: str, secrets: Mapping[str, Sequence[str]]) -> None:
        self._header = header.lower()
        self._secrets = secrets

    def fit(self, name: str, headers: Headers, body: bytes) -> bool:
        """Return whether a body is signed with a secret of an organisation."""
        given = DIGEST.findall(headers.get(self._header, ""))
        digests = [
            bytes.fromhex(hexa) if hexa else urlsafe_b64decode(f"{it}=") for hexa, it in given
        ]
        prefix = self._header.removesuffix("signature")  # `webhook-`, or `svix-`
        parts = ("id", "timestamp", "signature")
        standard = {f"webhook-{part}": headers.get(prefix + part, "") for part in parts}
        for secret in self._secrets[name]:
            digest = hmac.digest(secret.encode(), body, "sha256")
            if any(hmac.compare_digest(digest, it) for it in digests):
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
