"""A receiver on a real socket, and the notification log behind it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from webhook.served import TOKEN, serving

from tap_public_jobs.changelog import ChangeLog


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> ChangeLog:
    log = ChangeLog(f"sqlite:///{tmp_path_factory.mktemp('log') / 'changes.db'}")
    log.append({log.name: []})
    return log


@pytest.fixture(scope="module")
def base_url(log: ChangeLog) -> Iterator[str]:
    with serving(log) as url:
        yield url


@pytest.fixture
def hook(base_url: str) -> str:
    return f"{base_url}/hooks/{TOKEN}"


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
