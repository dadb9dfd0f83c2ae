"""Fixtures shared by all tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tap_public_jobs import client
from tap_public_jobs.sandbox.options import Options
from tap_public_jobs.sandbox.server import serving
from tap_public_jobs.sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sandbox() -> Sandbox:
    """An API with 250 jobs and no rate limit."""
    return Sandbox.demo(jobs=250, options=Options(limited=False))


@pytest.fixture
def base_url(sandbox: Sandbox) -> Iterator[str]:
    """Where the sandbox is served."""
    with serving(sandbox) as url:
        yield url


@pytest.fixture
def config(sandbox: Sandbox, base_url: str) -> dict[str, Any]:
    """Settings that reach the sandbox, with a budget that no test exhausts."""
    return {"api_key": sandbox.key, "base_url": base_url, "rate_limit_requests": 100_000}


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed requests are tried again at once."""
    monkeypatch.setattr(client, "FIRST_WAIT", 0.0)
