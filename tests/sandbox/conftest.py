"""A served sandbox and a client that knows its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JOBS = "/api/public/v1/jobs"


class Api:
    """Requests to a served sandbox, with its key unless other headers are given."""

    def __init__(self, sandbox: Sandbox, base_url: str, session: requests.Session) -> None:
        self.sandbox = sandbox
        self.base_url = base_url
        self.session = session

    def get(
        self,
        path: str,
        headers: dict[str, str] | None = None,
        params: Mapping[str, object] | None = None,
    ) -> requests.Response:
        if headers is None:
            headers = {"Authorization": f"Bearer {self.sandbox.key}"}
        return self.session.get(
            self.base_url + path,
            headers=headers,
            params={name: str(value) for name, value in (params or {}).items()},
            timeout=10,
        )

    def list(self, **params: object) -> Any:
        response = self.get(JOBS, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def detail(self, public_id: str) -> requests.Response:
        return self.get(f"{JOBS}/{public_id}")


@pytest.fixture
def options() -> Options:
    """Options of the served sandbox, for tests to parametrize."""
    return Options(limited=False)


@pytest.fixture
def sandbox(options: Options) -> Sandbox:
    """A sandbox with 45 published jobs and four unpublished ones, whose clock stands still."""
    return Sandbox.demo(45, options=options, clock=lambda: 1_000_020.0)


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    with serving(sandbox) as base_url, requests.Session() as session:
        yield Api(sandbox, base_url, session)
