"""Which tokens are right, where they may be, and whose log they open."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
import requests
from webhook.command import COMMAND, PREFIX
from webhook.served import NOTIFICATION, TOKEN, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.app import make_app
from tap_public_jobs.webhook.serve import _reload
from tap_public_jobs.webhook.tokens import Tokens, TokensError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("configured", "headers"),
    [
        ("Authorization", {"Authorization": f"Bearer {TOKEN}"}),
        ("Authorization", {"authorization": f"bearer {TOKEN}"}),
        ("X-Hook-Token", {"x-hook-token": TOKEN}),
        ("X-Hook-Token", {"X-Hook-Token": f"Bearer {TOKEN}"}),
    ],
)
def test_the_token_may_be_in_a_header(
    log: ChangeLog, configured: str, headers: dict[str, str]
) -> None:
    """Where no proxy logs it."""
    before = log.counts()
    with serving(make_app(log, TOKEN, token_header=configured)) as (host, port):
        answer = post(f"http://{host}:{port}/hooks", **headers)

    assert answer == (200, '{"publicIds":1}')
    assert log.counts().position == before.position + 1


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/hooks", {}),
        ("/hooks", {"Authorization": ""}),
        ("/hooks", {"Authorization": "Bearer "}),
        ("/hooks", {"Authorization": f"Bearer {TOKEN}0"}),
        ("/hooks", {"Authorization": f"Basic {TOKEN}"}),
        ("/hooks", {"Authorization": f"Bearer  {TOKEN}"}),
        ("/hooks", {"X-Hook-Token": TOKEN}),
        ("/hooks/wrong", {"Authorization": f"Bearer {TOKEN}"}),
        ("/", {"Authorization": f"Bearer {TOKEN}"}),
    ],
)
def test_a_wrong_header_is_not_found(
    log: ChangeLog, base_url: str, path: str, headers: dict[str, str]
) -> None:
    before = log.counts()

    assert post(base_url + path, **headers) == (404, "Not Found")
    assert log.counts() == before


def test_each_token_writes_the_log_of_its_name(tmp_path: Path) -> None:
    """Two tokens of one name are both right, so that one can replace the other without a gap."""
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    lines = f"acme {'a' * 32}\nacme {'b' * 32}\n\nother {'c' * 32}\n{TOKEN}\n"
    with serving(make_app(ChangeLog(url), Tokens(lambda: lines, "default"))) as (host, port):
        for token in ("a" * 32, "b" * 32, "c" * 32, TOKEN):
            body = json.dumps({"publicId": token[0]})
            assert post(f"http://{host}:{port}/hooks/{token}", body)[0] == 200
        assert post(f"http://{host}:{port}/hooks/{'c' * 32}", b"{}")[0] == 202

    noted = {
        name: ChangeLog(f"{url}?name={name}").read().public_ids
        for name in ("acme", "other", "default")
    }
    assert noted == {"acme": ["a", "b"], "other": ["c"], "default": ["3"]}
    assert ChangeLog(f"{url}?name=other").counts().unrecognised == 1


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("", "there is no token"),
        ("\n \n", "there is no token"),
        ("short", "line 1 is wrong"),
        (f"a {TOKEN}\nb short", "line 2 is wrong"),
        (f"a b {TOKEN}", "line 1 is wrong"),
        (f"a/b {TOKEN}", "line 1 is wrong"),
        (f"a {TOKEN}/", "line 1 is wrong"),
        (f"a {TOKEN}\nb {TOKEN}", "a token occurs twice"),
    ],
)
def test_unusable_tokens_are_refused_without_showing_them(lines: str, reason: str) -> None:
    with pytest.raises(TokensError) as caught:
        Tokens(lambda: lines, "default")

    assert str(caught.value).endswith(f"({reason})")
    assert TOKEN not in str(caught.value)


def test_tokens_are_read_again_after_a_signal(tmp_path: Path) -> None:
    """Without a gap; a file that cannot be used changes nothing."""
    file = tmp_path / "tokens"
    file.write_text(f"acme {TOKEN}\n")
    old, new = "x" * 32, "y" * 32

    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"],
        env=os.environ | {f"{PREFIX}TOKEN_FILE": str(file)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        found = re.search(r"http://\S+:\d+", process.stderr.readline())
        assert found

        def reload(text: str) -> str:
            file.write_text(text)
            process.send_signal(signal.SIGHUP)
            assert process.stderr
            return process.stderr.readline().strip().partition(" ")[2].partition(" ")[2]

        def answers() -> list[int]:
            hook = f"{found[0]}/hooks"
            tokens = (TOKEN, old, new)
            statuses = [
                requests.post(f"{hook}/{it}", NOTIFICATION, timeout=30).status_code for it in tokens
            ]
            assert process.stderr
            return statuses + [0 for _ in statuses if not process.stderr.readline()]

        try:
            assert answers() == [200, 404, 404]
            said = reload(f"acme {TOKEN}\nacme {old}\nother {new}\n")
            assert said == "INFO Reloaded the tokens: 2 logs."
            assert ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}?name=other").read().position == 0
            assert answers() == [200, 200, 200]
            said = reload("acme short\n")
            assert said.startswith("ERROR Keeping the old tokens: PUBLIC_JOBS_WEBHOOK_TOKEN ")
            assert said.endswith("(line 1 is wrong)")
            assert answers() == [200, 200, 200]
        finally:
            process.terminate()
            process.stderr.read()
    places = ChangeLog(f"sqlite:///{tmp_path / 'changes.db'}").places()
    assert {name: place.position for name, place in places.items()} == {"acme": 5, "other": 2}


def test_tokens_are_replaced_while_the_log_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that has leaked must not stay right because a disk is full."""
    lines = [f"acme {TOKEN}"]
    tokens = Tokens(lambda: lines[0], "default")
    lines[0] = f"acme {'x' * 32}"

    with caplog.at_level("INFO"):
        _reload(ChangeLog(f"sqlite:///{tmp_path / 'no' / 'folder.db'}"), tokens)

    assert (tokens.name_of(TOKEN), tokens.name_of("x" * 32)) == (None, "acme")
    failed, read = caplog.messages
    assert read == "Reloaded the tokens: 1 logs."
    assert failed.startswith("The change log in ")
