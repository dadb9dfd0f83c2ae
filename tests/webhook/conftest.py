"""A receiver on a real socket, and the change log behind it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from webhook.command import PREFIX
from webhook.served import TOKEN, serving

from tap_public_jobs.changelog import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> ChangeLog:
    log = ChangeLog(f"sqlite:///{tmp_path_factory.mktemp('log') / 'changes.db'}")
    log.append([])
    return log


@pytest.fixture(scope="module")
def base_url(log: ChangeLog) -> Iterator[str]:
    with serving(log) as url:
        yield url


@pytest.fixture
def hook(base_url: str) -> str:
    return f"{base_url}/hooks/{TOKEN}"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder of its own, and no settings but those of the test."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith((PREFIX, "TAP_PUBLIC_JOBS_")):
            monkeypatch.delenv(name)
