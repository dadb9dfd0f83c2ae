"""The page on webhooks has every setting, answer and limit, and none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tap_public_jobs import changelog
from tap_public_jobs.webhook import app
from tap_public_jobs.webhook.cli import commands

WEBHOOKS = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
SETTINGS = WEBHOOKS.partition("\n## Settings of the receiver\n")[2]
SECRETS = {"PUBLIC_JOBS_WEBHOOK_TOKEN", "PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET"}


def test_every_setting_is_in_the_table() -> None:
    options = [it for it in commands.commands["serve"].params if isinstance(it, click.Option)]
    expected = {(name, "\N{EN DASH}") for name in SECRETS}
    for option in options:
        names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or []
        expected |= {(name, option.opts[0]) for name in names}

    rows = re.findall(r"^\| (`PUBLIC.*?) \| `?(.*?)`? \|", SETTINGS, flags=re.MULTILINE)
    listed = {(name, option) for cell, option in rows for name in re.findall(r"`(.*?)`", cell)}
    assert listed == expected


def test_every_command_and_option_of_the_page_exists() -> None:
    known = {
        option
        for command in commands.commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    used = re.findall(r"public-jobs-webhook (\w+)([^\n`]*)", WEBHOOKS)

    assert {name for name, _ in used} == set(commands.commands)
    for _, line in used:
        arguments = line.partition("||")[0].partition("#")[0]
        assert set(re.findall(r" (--[a-z-]+)", arguments)) <= known


def test_the_limits_are_those_of_the_code() -> None:
    for words in (
        f"the last {changelog.KEPT:,} notifications",
        f"longer than {app.PATIENCE} seconds",
        f"larger than {app.LARGEST_BODY // 1024} KiB",
        f"client_max_body_size {app.LARGEST_BODY // 1024}k",
    ):
        assert words in WEBHOOKS
