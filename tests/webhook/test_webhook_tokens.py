"""Which tokens are valid, where they may be, and whose log they open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest
from webhook.served import NOTED, TOKEN, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.tokens import Tokens

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
    with serving(log, token_header=configured) as url:
        assert post(f"{url}/hooks", **headers) == NOTED


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/hooks", {"Authorization": "Bearer "}),
        ("/hooks", {"Authorization": f"Bearer {TOKEN}0"}),
        ("/hooks", {"Authorization": f"Basic {TOKEN}"}),
        ("/hooks", {"X-Hook-Token": TOKEN}),
    ],
)
def test_a_wrong_header_is_not_found(
    log: ChangeLog, base_url: str, path: str, headers: dict[str, str]
) -> None:
    before = log.read()

    assert post(base_url + path, **headers) == (404, "Not Found")
    assert log.read() == before


def test_each_token_writes_the_log_of_its_name(tmp_path: Path) -> None:
    """Two tokens of one name are both valid, so that one can replace the other without a gap."""
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    lines = f"acme {'a' * 32}\nacme {'b' * 32}\n\nother {'c' * 32}\n{TOKEN}\n"
    with serving(ChangeLog(url), lines) as base_url:
        for token in ("a" * 32, "b" * 32, "c" * 32, TOKEN):
            assert post(f"{base_url}/hooks/{token}", json.dumps({"publicId": token[0]})) == NOTED

    noted = {
        name: ChangeLog(f"{url}?name={name}").read().public_ids
        for name in ("acme", "other", "default")
    }
    assert noted == {"acme": ["a", "b"], "other": ["c"], "default": ["3"]}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("\n \n", "`openssl rand -hex 32`"),
        (f"a {TOKEN}\nb short", "(line 2 is wrong, or its token occurs twice)"),
        (f"a/b {TOKEN}", "(line 1 is wrong, or its token occurs twice)"),
        (f"a {TOKEN}/", "(line 1 is wrong, or its token occurs twice)"),
        (f"a {TOKEN}\nb {TOKEN}", "(line 2 is wrong, or its token occurs twice)"),
    ],
)
def test_unusable_tokens_are_refused_without_showing_them(lines: str, reason: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        Tokens(lines, "default")

    assert str(caught.value).endswith(reason)
    assert TOKEN not in str(caught.value)
