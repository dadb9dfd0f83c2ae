"""What the receiver answers to anybody, and what it notes: who may notify, and of what.

Tokens and signatures open a log; publicIds are found wherever a payload has them.
Notifications share commits; one that fails is answered 503, and fails health.
"""

import asyncio
import gzip
import hmac
import json
import logging
import threading
from base64 import b64encode
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest
import requests
from public_jobs_receiver import app, writer
from public_jobs_receiver.payload import LARGEST_BODY, read_payload
from public_jobs_receiver.senders import Signatures, read_tokens
from receiver.conftest import FAILED, NOTED, NOTIFICATION, TOKEN, UNNAMED, connect, post, serving
from standardwebhooks import Webhook
from starlette.datastructures import Headers

from tap_public_jobs.notification_log import NotificationLog, NotificationLogError

# What is answered, and noted.

UNFINISHED = f"POST /hooks/{TOKEN} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode()


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"slug": "designer", "\\u001b[2J": {"x": 1}}', r'JSON, keys ["slug", "\u001b[2J"]'),
        (b"event=updated&id=designer", 'a form, keys ["event", "id"]'),
        (b'{"publicId": "a\xff"}', "broken JSON, keys []"),
        (b' <job><publicId name="x">a</publicId></job>', "XML, keys []"),
        (b'--b\r\nContent-Disposition: form-data; name="publicId"\r\n\r\na', "multipart, keys []"),
        (b"", "a form, keys []"),
        (b"[1", "broken JSON, keys []"),
        (b"k" * 400 + b"=1", 'a form, keys ["' + "k" * 298),
    ],
)
def test_a_payload_without_a_public_id_is_news_and_a_warning(
    log: NotificationLog, hook: str, caplog: pytest.LogCaptureFixture, body: bytes, shown: str
) -> None:
    """Nobody knows the format: one look at the list costs less than a change that is missed."""
    before = log.read().position

    assert post(hook, body) == UNNAMED

    assert log.read(before)[1:] == (before + 1, [])
    warning = f"A notification for default names no publicId: {shown}"
    assert [it.getMessage() for it in caplog.records if it.levelname == "WARNING"] == [warning]


def test_a_sender_that_asks_first_is_answered(log: NotificationLog, hook: str) -> None:
    """With a token that is valid. What asks by POST is news too: it could be a notification."""
    for method, query, body, answer, noted in [
        ("GET", {}, b"", "OK", 0),
        ("HEAD", {}, b"", "", 0),
        ("GET", {"hub.mode": "subscribe", "hub.challenge": "1158"}, b"", "1158", 0),
        ("GET", {"challenge": "<b> ü"}, b"", "<b> ü", 0),
        ("GET", {"challenge": "x" * 501}, b"", "OK", 0),
        ("POST", {"validationToken": "a b+c"}, b"", "a b+c", 1),
        ("POST", {}, b'{"type": "url_verification", "challenge": "3eZb"}', "3eZb", 1),
        ("POST", {}, b'{"challenge": {"x": 1}}', '{"publicIds":0}', 1),
        ("POST", {"challenge": "x"}, NOTIFICATION, '{"publicIds":1}', 1),
    ]:
        before = log.read().position
        response = requests.request(method, hook, params=query, data=body, timeout=60)
        wrong = requests.request(method, f"{hook}0", params=query, data=body, timeout=60)

        assert (response.status_code, response.text) == (202 if ":0" in answer else 200, answer)
        assert response.headers["Content-Type"].startswith(("text/plain", "application/json"))
        assert (wrong.status_code, log.read().position) == (404, before + noted)


def test_of_a_large_batch_the_first_are_noted(log: NotificationLog, hook: str) -> None:
    """The rest is news: the next run reads the list, and no other organisation waits long."""
    ids = [str(number) for number in range(10_000)]
    for size, noted in [(1_000, 1_000), (1_001, 1_001), (10_000, 1_001)]:
        before = log.read().position
        body = json.dumps([{"publicId": it} for it in ids[:size]]).encode().ljust(LARGEST_BODY)

        assert post(hook, body) == (200, '{"publicIds":1000}')

        assert log.read(before)[1:] == (before + noted, ids[:1_000])


def test_what_is_refused_is_not_noted(log: NotificationLog, base_url: str, hook: str) -> None:
    """A wrong token, a body that is too large, and any other method than POST."""
    before = log.read()
    large = b'{"publicId": "large"}'.ljust(LARGEST_BODY + 1)
    paths = (TOKEN[:-1], TOKEN.upper(), f"{TOKEN}//", "%ff%fe%00", "", f"../{TOKEN}")

    for path in (*(f"/hooks/{it}" for it in paths), "/hooks", f"/hooks{TOKEN}", f"/{TOKEN}"):
        response = requests.post(base_url + path, NOTIFICATION, timeout=60, allow_redirects=False)
        assert (response.status_code, response.text) == (404, "Not Found")
    assert [post(hook, it) for it in (large, iter([large]))] == [(413, "Content Too Large")] * 2
    for method in ("PUT", "OPTIONS"):
        response = requests.request(method, hook, data=NOTIFICATION, timeout=60)
        allowed = {*response.headers["Allow"].split(", ")}
        assert (response.status_code, allowed) == (405, {"GET", "HEAD", "POST"})

    assert log.read() == before


@pytest.mark.parametrize("path", [f"/hooks/{TOKEN}", "/hooks/wrong"])
def test_no_answer_comes_before_the_end_of_a_body(base_url: str, path: str) -> None:
    """A proxy would answer 502, and the sender try again for ever."""
    size = 40 * LARGEST_BODY  # more than sockets hold
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
    with connect(base_url) as connection:
        connection.sendall(head.encode() + b" " * size)
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 4" + (b"13" if TOKEN in path else b"04"))


def test_what_is_not_signed_is_refused_and_described(
    log: NotificationLog, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what a reader needs to find the cause, but no part of a value."""
    before = log.read()
    signed = hmac.digest(b"sesame", NOTIFICATION, "sha256").hex()
    signatures = Signatures("X-Check", [("default", "sesame")])
    with serving(log, signatures=signatures) as url:
        hook = f"{url}/hooks/{TOKEN}"
        answers = [
            post(hook, **{"X-Hub-Signature": f"SHA256={signed}", "X-Hmac": "t=" * 200}),
            post(hook, **{"x-check": f"v1={signed[:-1]}"}),
            post(hook),
        ]
        assert log.read() == before
        assert requests.get(hook, timeout=60).text == "OK"  # it is registered before it signs
        assert post(hook, **{"x-check": signed}) == NOTED

    assert answers == [(401, "Not signed with the secret")] * 3
    start = "Refused a webhook for default (401): "
    shown = ("x-hub-signature (71 characters SHA256=), x-hmac (400 characters " + "t=" * 200)[:300]
    assert [it.removeprefix(start) for it in caplog.messages if start in it] == [
        f"no signature in x-check. Signature headers: {shown}",
        "wrong signature. Signature headers: x-check (66 characters v1=)",
        "no signature in x-check. Signature headers: none",
    ]


def test_a_challenge_needs_no_signature_if_it_names_no_job(
    log: NotificationLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A sender may ask before it signs. What is not signed is never news."""
    before = log.read()
    refused = (401, "Not signed with the secret")
    with serving(log, signatures=Signatures("X-Check", [("default", "sesame")])) as url:
        for query, body, answer in [
            ("", b'{"challenge": "3eZb"}', (200, "3eZb")),
            ("", b'{"type": "url_verification", "token": "t", "challenge": "3eZb"}', (200, "3eZb")),
            ("?validationToken=3eZb", b"", (200, "3eZb")),
            ("?challenge=3eZb", b"{}", refused),
            ("", b'{"challenge": "3eZb", "publicId": "a"}', refused),
            ("", b'{"challenge": {"x": "3eZb"}}', refused),
        ]:
            assert post(f"{url}/hooks/{TOKEN}{query}", body) == answer
        signed = hmac.digest(b"sesame", b'{"challenge": "x"}', "sha256").hex()
        assert log.read() == before
        assert post(f"{url}/hooks/{TOKEN}", b'{"challenge": "x"}', **{"X-Check": signed})[1] == "x"

    assert log.read()[1:] == (before.position + 1, before.public_ids)
    assert sum("no signature" in it for it in caplog.messages) == 3


def test_a_slow_body_is_not_waited_for(
    log: NotificationLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = log.read()
    with serving(log) as url, connect(url) as connection:
        monkeypatch.setattr(app, "BODY_PATIENCE", 0.1)
        connection.sendall(UNFINISHED)
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert log.read() == before


def test_a_sender_that_leaves_is_no_fault(
    log: NotificationLog, base_url: str, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before = log.read().public_ids
    with connect(base_url) as connection:
        connection.sendall(UNFINISHED)

    while "POST: 400 The sender left" not in caplog.messages:
        assert post(hook, b"[]") == UNNAMED

    assert log.read().public_ids == before
    assert all(record.exc_info is None for record in caplog.records)


def test_the_token_and_payloads_are_never_logged(
    base_url: str, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    post(hook)
    post(hook, b'{"unrecognised": "designer-paris"}')
    post(f"{hook}0")
    post(hook, b'{"challenge": "designer-paris"}')
    requests.get(f"{hook}?challenge=designer-paris", timeout=60)
    requests.get(f"{base_url}/health", timeout=60)
    requests.request("PROPPATCH", hook, timeout=60)
    requests.request("M" * 1000, hook, timeout=60)  # httptools would not pass it on

    # pytest listens to uvicorn's access log too; that of the command is read in its own tests.
    others = ("urllib3", "uvicorn.access")
    ours = [it.getMessage() for it in caplog.records if not it.name.startswith(others)]
    assert [line for line in ours if line.startswith(("POST", "GET", "PROP"))] == [
        'POST: 200 {"publicIds":1}',
        'POST: 202 {"publicIds":0}',
        "POST: 404 Not Found",
        "POST: 200 a challenge",
        "GET: 200 OK",
        "GET: 200 OK",
        "PROPPATCH: 405 Method Not Allowed",
    ]
    assert "M" * 11 not in "".join(ours)
    assert TOKEN not in "".join(ours)
    assert "designer" not in "".join(ours)


def test_what_goes_wrong_unforeseen_is_answered_and_not_fatal(
    log: NotificationLog, hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch.object(log, "append", side_effect=ZeroDivisionError):
        assert post(hook) == FAILED
    assert "ZeroDivisionError" in caplog.text
    assert post(hook) == NOTED
    assert TOKEN not in caplog.text


# Commits and health.

WELL = (200, "OK")


def health(url: str) -> tuple[int, str]:
    response = requests.get(f"{url}/health", timeout=60)
    return response.status_code, response.text


# Seconds that no test takes.
LONG = 60.0


class Slow(NotificationLog):
    """A log whose database does not answer until it is let go.

    Attributes:
        commits: The publicIds of each commit, by the name of their log.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked = threading.Event()
        self.answer = threading.Event()
        self.commits: list[dict[str, list[str | None]]] = []

    def append(self, changes: Mapping[str, Iterable[str | None]]) -> None:
        self.commits.append({name: [*public_ids] for name, public_ids in changes.items()})
        self.asked.set()
        self.answer.wait(LONG)
        super().append(changes)


def test_what_waits_too_long_is_answered_and_not_written(
    changes_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The sender tries again, so no queue grows while the database hangs.

    Health does not wait for the commit: it answers what the last one has shown.
    """
    slow = Slow(changes_url)
    with ThreadPoolExecutor() as pool, serving(slow) as url:
        hook = f"{url}/hooks/{TOKEN}"
        first = pool.submit(post, hook)
        assert slow.asked.wait(LONG)
        assert health(url) == WELL
        with mock.patch.object(writer, "PATIENCE", 0.1):
            answers = [post(hook), post(hook), health(url)]
        slow.answer.set()
        assert (first.result(), health(url)) == (NOTED, WELL)

        assert slow.read()[1:] == (1, ["designer-paris-1a2b3c"])
        # Also one whose own commit lasts too long, after which others are noted.
        slow.answer.clear()
        with mock.patch.object(writer, "PATIENCE", 0.1):
            answers.append(post(hook))
        slow.answer.set()
        assert (post(hook), health(url)) == (NOTED, WELL)

    assert answers == [FAILED] * 4
    assert {record.getMessage() for record in caplog.records} == {
        "The notification log did not respond in time: make sure that its database is up."
    }


@pytest.mark.parametrize(("last", "noted"), [("c", True), ("\ud800", False)])
def test_those_that_wait_share_a_commit(changes_url: str, last: str, *, noted: bool) -> None:
    """If it fails, it fails for all its senders."""
    slow = Slow(changes_url)
    waiting = [("acme", "a"), ("default", "b"), ("acme", last)]

    async def burst() -> list[bool]:
        shared = writer.Writer(slow)
        first = asyncio.create_task(shared.append({"default": ["first"]}))
        await asyncio.to_thread(slow.asked.wait, LONG)
        others = [asyncio.create_task(shared.append({name: [it]})) for name, it in waiting]
        await asyncio.sleep(0)  # lets each of them begin
        slow.answer.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(burst()) == [True, *[noted] * 3]
    assert slow.commits == [{"default": ["first"]}, {"acme": ["a", last], "default": ["b"]}]
    assert slow.read().public_ids == (["first", "b"] if noted else ["first"])


def test_health_fails_after_a_failed_write_until_a_write_succeeds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Although an empty write succeeds: the write that failed is tried again.

    It makes no log: a tap with a mistyped name would find it, and believe that nothing changes.
    """
    file = tmp_path / "changes.db"
    log = NotificationLog(f"sqlite:///{file}")
    log.append({"acme": []})
    refuse = (
        "CREATE TRIGGER no_space BEFORE INSERT ON public_jobs_change "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with serving(log, f"acme {TOKEN}") as url:
        assert health(url) == WELL
        aside = file.rename(tmp_path / "aside")
        file.mkdir()
        assert health(url) == FAILED  # although no notification has come
        file.rmdir()
        aside.rename(file)
        assert health(url) == WELL
        caplog.clear()
        with log._transaction() as connection:
            connection.exec_driver_sql(refuse)
        answers = [post(f"{url}/hooks/{TOKEN}"), health(url), health(url)]
        with log._transaction() as connection:
            connection.exec_driver_sql("DROP TRIGGER no_space")
        assert [health(url) for _ in range(2)] == [WELL] * 2
        acme = NotificationLog(f"sqlite:///{file}?name=acme")
        noted = acme.read()
        assert noted[1:] == (1, ["designer-paris-1a2b3c"])  # once
        assert post(f"{url}/hooks/{TOKEN}") == NOTED

    assert answers == [FAILED] * 3
    assert all("changes.db cannot be used (no). Make sure" in it for it in caplog.messages)
    assert {(it.levelno, it.exc_info) for it in caplog.records} == {(logging.ERROR, None)}
    with pytest.raises(NotificationLogError, match="There is no notification log"):
        log.read()


# Who may notify.


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
    log: NotificationLog, configured: str, header: str, value: str, *, is_right: bool
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
    with serving(NotificationLog(changes_url), lines) as base_url:
        for token in ("a" * 32, "b" * 32, "c" * 32, TOKEN):
            assert post(f"{base_url}/hooks/{token}/", json.dumps({"publicId": token[0]})) == NOTED

    for name, noted in (("acme", ["a", "b"]), ("other", ["c"]), ("default", ["3"])):
        assert NotificationLog(f"{changes_url}?name={name}").read().public_ids == noted


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


KEY = b"a key of 25 or more bytes"
IN_BASE64 = b64encode(KEY).decode()
ACME = ["whsec_", "old-secret", "sesame", f"whsec_{IN_BASE64}"]
SECRETS = [("other", "other-secret"), *(("acme", it) for it in ACME)]
BODY = NOTIFICATION + b" " * 3
WRONG = "wrong signature"


def digest(key: bytes = b"sesame", content: bytes = BODY) -> bytes:
    return hmac.digest(key, content, "sha256")


def refusal(headers: dict[str, str], name: str = "acme", header: str = "X-Signature") -> str:
    return Signatures(header, SECRETS).refusal(name, Headers(headers), BODY)


FORMS = {
    digest().hex().upper(): "",
    f"sha256={digest().hex()}": "",
    f"SHA256= {digest().hex()}": "",
    f"v1={digest(b'newer').hex()},v1={digest().hex()}": "",  # PagerDuty
    digest(b"old-secret").hex(): "",
    digest(f"whsec_{IN_BASE64}".encode()).hex(): "",
    "": "no signature in x-signature",
    "sha256=": WRONG,
    "\u00ff" * 43: WRONG,
    digest(b"other-secret").hex(): WRONG,
    digest(content=BODY + b" ").hex(): WRONG,
    digest().hex() + "0": WRONG,
    f"t=5,v1={digest(content=b'5.' + BODY).hex()}": WRONG,  # Stripe
    f"v0={digest(content=b'v0:5:' + BODY).hex()}": WRONG,  # Slack
}


def test_an_hmac_of_the_body_is_right_with_anything_around_it() -> None:
    """With either secret of the organisation, and with no other organisation's."""
    assert {value: refusal({"x-signature": value}) for value in FORMS} == FORMS
    right = [it for it, cause in FORMS.items() if not cause]
    assert {refusal({"x-signature": it}, "other") for it in right} == {WRONG}
    assert refusal({"x-other": right[0]}) == "no signature in x-signature"


@pytest.mark.parametrize("prefix", ["webhook", "svix"])
def test_standard_webhooks_are_right_at_any_age(prefix: str) -> None:
    """A sender signs once, and tries again after an outage."""
    sender, now = Webhook(KEY), datetime.now(tz=UTC)

    def cause(age: timedelta, sent_as: str = "m1", body: bytes = BODY, name: str = "acme") -> str:
        signature = sender.sign("m1", now - age, body.decode())
        at = str(int((now - age).timestamp()))
        parts = {"id": sent_as, "timestamp": at, "signature": f"v1,AAAA {signature}"}
        headers = {f"{prefix}-{part}": value for part, value in parts.items()}
        return refusal(headers, name, f"{prefix.title()}-Signature")

    assert [cause(timedelta(days=days)) for days in (-1, 0, 5)] == [""] * 3
    wrong: tuple[dict[str, Any], ...] = ({"sent_as": "m2"}, {"body": b"x"}, {"sent_as": ""})
    assert [cause(timedelta(), **it) for it in wrong] == [WRONG] * 3
    assert cause(timedelta(), name="other") == UNREADABLE


@pytest.mark.parametrize("key", [bytes(range(size)) for size in (24, 25, 26, 64)])
def test_the_secret_of_standard_webhooks_is_read_in_any_form(key: bytes) -> None:
    """A key of 24 bytes has no padding. The library is a sender that is not ours."""
    form = b64encode(key).decode()
    for secret in (f"whsec_{form}", form, form.rstrip("="), f"whsec_{form.rstrip('=')}"):
        parts = {"id": "m1", "timestamp": "5"}
        parts["signature"] = Webhook(key).sign("m1", datetime.fromtimestamp(5, UTC), BODY.decode())
        headers = Headers({f"webhook-{part}": value for part, value in parts.items()})
        signatures = Signatures("Webhook-Signature", [("acme", secret)])
        assert signatures.refusal("acme", headers, BODY) == ""


UNREADABLE = "the secret is not base64, as Standard Webhooks writes it"


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!", "'whsec_c2VzYW1l'", "whsec_=", "c2VzY"])
def test_a_secret_that_cannot_be_read_is_named_as_the_cause(secret: str) -> None:
    """An empty key would be known to anybody."""
    signature = f"v1,{b64encode(digest(b'', b'm1.5.' + BODY)).decode()}"
    headers = {"webhook-id": "m1", "webhook-timestamp": "5", "webhook-signature": signature}
    signatures = Signatures("webhook-signature", [("acme", secret)])

    assert signatures.refusal("acme", Headers(headers), BODY) == UNREADABLE


# Of what.

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
