"""A receiver on a real socket, and the change log behind it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from webhook.command import PREFIX
from webhook.served import TOKEN, serving

from tap_public_jobs.changelog import ChangeLog
from tap_public_jobs.webhook import app
from tap_public_jobs.webhook.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('log') / 'changes.db'}"


@pytest.fixture(scope="module")
def log(url: str) -> ChangeLog:
    log = ChangeLog(url)
    log.append([])
    return log


@pytest.fixture
def log_of_four(environment: None) -> ChangeLog:  # noqa: ARG001  # it changes the folder
    """The log that a command finds without settings: four jobs, all notified once."""
    log = ChangeLog("sqlite:///changes.db")
    log.append(["a", "b", "c", "d"])
    return log


@pytest.fixture(scope="module")
def address(log: ChangeLog) -> Iterator[tuple[str, int]]:
    """A receiver that waits for bodies and commits for as long as a busy machine takes."""
    with serving(make_app(log, TOKEN, patience=60)) as address:
        yield address


@pytest.fixture
def base_url(address: tuple[str, int]) -> str:
    return f"http://{address[0]}:{address[1]}"


@pytest.fixture
def hook(base_url: str) -> str:
    return f"{base_url}/hooks/{TOKEN}"


@pytest.fixture
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders that send no more after an answer are not waited for."""
    monkeypatch.setattr(app, "LINGER", 0.0)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder of its own, and no settings but those of the test."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith((PREFIX, "TAP_PUBLIC_JOBS_")):
            monkeypatch.delenv(name)
