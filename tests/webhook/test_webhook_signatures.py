"""Which signatures are right: every common encoding, and the scheme of Standard Webhooks."""

from __future__ import annotations

import hmac
import time
from base64 import b64encode, urlsafe_b64encode

import pytest
from starlette.datastructures import Headers
from webhook.served import NOTIFICATION

from tap_public_jobs.webhook.senders import Signatures

KEY = b"a key of 24 or more bytes"
ACME = ["whsec_!", "old-secret", "sesame", f"whsec_{b64encode(KEY).decode()}"]
SECRETS = [("other", "other-secret"), *(("acme", it) for it in ACME)]
BODY = NOTIFICATION + b" " * 3


def digest(key: bytes = b"sesame", content: bytes = BODY) -> bytes:
    return hmac.digest(key, content, "sha256")


def fits(headers: dict[str, str], name: str = "acme", header: str = "X-Signature") -> bool:
    return Signatures(header, SECRETS).fit(name, Headers(headers), BODY)


BASE64, URLSAFE = b64encode(digest()).decode(), urlsafe_b64encode(digest()).decode()
FORMS = {
    digest().hex().upper(): True,
    f"sha256={digest().hex()}": True,
    f"SHA256= {digest().hex()}": True,
    f"v1={digest(b'newer').hex()},v1={digest().hex()}": True,  # PagerDuty
    digest(b"old-secret").hex(): True,
    BASE64: True,
    f"sha256-{BASE64}": True,
    URLSAFE.rstrip("="): True,
    "sha256=": False,
    "ÿ" * 43: False,
    digest(b"other-secret").hex(): False,
    digest(content=BODY + b" ").hex(): False,
    digest().hex() + "0": False,
    f"t=5,v1={digest(content=b'5.' + BODY).hex()}": False,  # Stripe
    f"v0={digest(content=b'v0:5:' + BODY).hex()}": False,  # Slack
}


def test_an_hmac_of_the_body_is_right_in_any_form() -> None:
    """With either secret of the organisation, and with no other organisation's."""
    assert BASE64 != URLSAFE
    assert {value: fits({"x-signature": value}) for value in FORMS} == FORMS
    assert not any(fits({"x-signature": it}, "other") for it, is_right in FORMS.items() if is_right)
    assert not fits({"x-other": BASE64})


@pytest.mark.parametrize("prefix", ["webhook", "svix"])
def test_standard_webhooks_are_right_within_five_minutes(prefix: str) -> None:
    def is_right(age: int = 0, sent_as: str = "m1", body: bytes = BODY, name: str = "acme") -> bool:
        at = int(time.time()) - age
        signature = b64encode(digest(KEY, f"m1.{at}.".encode() + body)).decode()
        parts = {"id": sent_as, "timestamp": str(at), "signature": f"v1,AAAA v1,{signature}"}
        headers = {f"{prefix}-{part}": value for part, value in parts.items()}
        return fits(headers, name, f"{prefix.title()}-Signature")

    assert is_right()
    wrong = ({"age": 400}, {"age": -400}, {"sent_as": "m2"}, {"body": b"x"}, {"name": "other"})
    assert not any(is_right(**it) for it in wrong)
