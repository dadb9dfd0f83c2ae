"""A served sandbox and a client that knows its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import requests
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = "/api/public/v1/jobs"


class Api:
    """GET requests to a served sandbox, with its key unless other headers are given."""

    def __init__(self, sandbox: Sandbox, base_url: str, session: requests.Session) -> None:
        self.sandbox = sandbox
        self.base_url = base_url
        self._session = session

    def get(
        self, path: str = JOBS, headers: dict[str, str] | None = None, **query: object
    ) -> requests.Response:
        return self._session.get(
            self.base_url + path,
            headers={"x-api-key": self.sandbox.key} if headers is None else headers,
            params={name: str(value) for name, value in query.items()},
            timeout=10,
        )


@pytest.fixture
def sandbox() -> Sandbox:
    """A sandbox with 45 published jobs and four unpublished ones."""
    return Sandbox.demo(45, options=Options(limited=False))


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    with serving(sandbox) as base_url, requests.Session() as session:
        yield Api(sandbox, base_url, session)
