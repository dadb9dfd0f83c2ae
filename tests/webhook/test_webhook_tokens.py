"""Which tokens are valid, where they may be, and whose log they open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest
from webhook.served import NOTED, TOKEN, post, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook.senders import read_tokens

if TYPE_CHECKING:
    from pathlib import Path


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


def test_each_token_writes_the_log_of_its_name(tmp_path: Path) -> None:
    """Two tokens of one name are both valid, so that one can replace the other without a gap."""
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    lines = f"acme {'a' * 32}\nacme {'b' * 32}\n\nother {'c' * 32}\n{TOKEN}\n"
    with serving(ChangeLog(url), lines) as base_url:
        for token in ("a" * 32, "b" * 32, "c" * 32, TOKEN):
            assert post(f"{base_url}/hooks/{token}/", json.dumps({"publicId": token[0]})) == NOTED

    noted = {
        name: ChangeLog(f"{url}?name={name}").read().public_ids
        for name in ("acme", "other", "default")
    }
    assert noted == {"acme": ["a", "b"], "other": ["c"], "default": ["3"]}


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
