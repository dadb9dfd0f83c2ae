"""Who may notify, and of what: tokens, signatures, and publicIds wherever a payload has them."""

import gzip
import hmac
import json
import time
from base64 import b64encode, urlsafe_b64encode

import click
import pytest
from starlette.datastructures import Headers
from webhook.conftest import NOTED, NOTIFICATION, TOKEN, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.payload import LARGEST_BODY, read_payload
from tap_public_jobs.webhook.senders import Signatures, read_tokens

JOB = '{"title": "Ingénieur", "publicId": "a"}'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"event": "x", "data": {"job": {"publicId": "a", "id": "b"}}}', ["a"]),
        ('[{"publicId": "a"}, [[{"publicId": "b"}]], {"publicId": "a"}]', ["a", "b"]),
        ('{"publicId": "a", "x": NaN, "y": -Infinity, "z": 1e999}', ["a"]),
        ('{"publicId": "a", "x": ' + "9" * 5000 + "}", ["a"]),
        ('{"publicId": {"publicId": "a"}}', ["a"]),
        (r'{"public\u0049d": "a\u00fc\ud834\udd1e"}', ["aü𝄞"]),
        ('{"publicId": "' + "a" * 500 + '"}', ["a" * 500]),
        ('{"publicId": ""}', []),
        ('{"publicId": "' + "a" * 501 + '"}', []),
        (r'{"publicId": "\ud800"}', []),
        (r'{"publicId": "a\u0000"}', []),
        ('{"publicId": null}', []),
        ('{"publicid": "a", "PublicID": "b", "public_id": "c", "PUBLIC-ID": "d"}', [*"abcd"]),
        ('{"publicIds": "a", "notpublicId": "b", "public": "c"}', []),
        ("[" * 500 + '{"publicId": "a"}' + "]" * 500, ["a"]),
        # The fields of a form.
        ("event=updated&publicId=a%2Fb+c&publicId=5\n", ["a/b c", "5"]),
        ("job[publicId]=a&job.publicId=b&job[public_id]=c", ["a", "b", "c"]),
        ("payload=%7B%22publicId%22%3A%22a%22%7D", ["a"]),
        ("publicId=&mypublicId=a&publicIds=b&publicId%00=c", []),
        ("payload=" + "[" * 100_000, []),
        # Anything else.
        ("{'publicId': 'a'}", []),
        ("[" * 100_000, []),
    ],
)
def test_every_text_under_the_key_is_found(body: str, found: list[str]) -> None:
    assert read_payload(body.encode()).public_ids == found


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_may_have_any_encoding_of_unicode(encoding: str) -> None:
    assert read_payload(JOB.encode(encoding)) == (["a"], "JSON", json.loads(JOB))


def test_gzip_is_read_up_to_a_limit() -> None:
    """Few bytes can become very many."""
    largest = JOB.encode().ljust(LARGEST_BODY)

    assert read_payload(gzip.compress(largest)).public_ids == ["a"]
    assert read_payload(gzip.compress(b" " + largest)).public_ids == ["a"]  # a space is cut off
    assert read_payload(gzip.compress(largest.rjust(2 * LARGEST_BODY))).public_ids == []
    assert read_payload(gzip.compress(largest)[:-9]).public_ids == ["a"]


@pytest.mark.parametrize(
    ("configured", "header", "value", "is_right"),
    [
        ("Authorization", "authorization", f"Bearer {TOKEN}", True),
        ("X-Hook-Token", "x-hook-token", TOKEN, True),
        ("Authorization", "Authorization", "Bearer ", False),
        ("Authorization", "Authorization", f"Bearer {TOKEN} 0", False),
        ("Authorization", "X-Hook-Token", TOKEN, False),
    ],
)
def test_the_token_may_be_in_a_header(
    log: ChangeLog, configured: str, header: str, value: str, *, is_right: bool
) -> None:
    """Where no proxy logs it. A path may end with a slash."""
    before = log.read().position
    with serving(log, token_header=configured) as url:
        answers = [post(f"{url}/hooks{it}", **{header: value}) for it in ("", "/")]

    assert answers == [NOTED if is_right else (404, "Not Found")] * 2
    assert log.read().position == before + 2 * is_right


def test_each_token_writes_the_log_of_its_name(changes_url: str) -> None:
    """Two tokens of one name are both valid, so that one can replace the other without a gap."""
    lines = f"acme {'a' * 32}\nacme {'b' * 32}\n\nother {'c' * 32}\n{TOKEN}\n"
    with serving(ChangeLog(changes_url), lines) as base_url:
        for token in ("a" * 32, "b" * 32, "c" * 32, TOKEN):
            assert post(f"{base_url}/hooks/{token}/", json.dumps({"publicId": token[0]})) == NOTED

    for name, noted in (("acme", ["a", "b"]), ("other", ["c"]), ("default", ["3"])):
        assert ChangeLog(f"{changes_url}?name={name}").read().public_ids == noted


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("\n \n", "`openssl rand -hex 32`"),
        (f"a {TOKEN}\nb short", "(token 2 is wrong, or occurs twice)"),
        (f"a/b {TOKEN}", "(token 1 is wrong, or occurs twice)"),
        (f"a {TOKEN}/", "(token 1 is wrong, or occurs twice)"),
        (f"a {TOKEN}\nb {TOKEN}", "(token 2 is wrong, or occurs twice)"),
    ],
)
def test_unusable_tokens_are_refused_without_showing_them(lines: str, reason: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        read_tokens(lines, "default")

    assert str(caught.value).endswith(reason)
    assert TOKEN not in str(caught.value)


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
