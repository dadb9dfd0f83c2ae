"""The pages on webhooks have every setting, answer and limit, and none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tap_public_jobs import changes
from tap_public_jobs.webhook import app, payload
from tap_public_jobs.webhook.cli import commands

if TYPE_CHECKING:
    import pytest

DOCS = Path(__file__).parents[2] / "docs"
WEBHOOKS = "\n".join((DOCS / name).read_text("utf-8") for name in ("webhooks.md", "receiver.md"))
SETTINGS = WEBHOOKS.partition("\n## Settings of the receiver\n")[2]
SECRETS = {"PUBLIC_JOBS_WEBHOOK_TOKEN", "PUBLIC_JOBS_WEBHOOK_SIGNATURE_SECRET"}


def test_every_setting_is_in_the_table_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    serve = commands.commands["serve"]
    rows = re.findall(r"^\| (`PUBLIC.*?) \| `?(.*?)`? \|", SETTINGS, flags=re.MULTILINE)
    listed = {(name, option) for cell, option in rows for name in re.findall(r"`(.*?)`", cell)}
    expected = {(name, "\N{EN DASH}") for name in SECRETS}
    monkeypatch.setenv("TAP_PUBLIC_JOBS_CHANGES_URL", "any other variable is read first")
    for name, _ in listed - expected:
        with monkeypatch.context() as environment:
            environment.setenv(name, "8")
            values = serve.make_context("serve", []).params
        expected |= {(name, it.opts[0]) for it in serve.params if str(values[it.name]) == "8"}

    assert listed == expected
    assert {it.opts[0] for it in serve.params} < {option for _, option in listed}


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
        f"the last {changes.KEPT:,} notifications",
        f"longer than {app.BODY_PATIENCE} seconds",
        f"larger than {payload.LARGEST_BODY // 1024} KiB",
        f"beyond {app.MOST_NAMED:,} in one payload",
    ):
        assert words in WEBHOOKS
