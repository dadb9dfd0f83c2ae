"""The client as the tap builds it, with a budget that no test exhausts."""

import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tap_public_jobs.api.client import PublicJobsClient
from tap_public_jobs.api.throttle import Throttle
from tap_public_jobs.api.transport import AUTH_HEADERS, Session

Connect = Callable[..., PublicJobsClient]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy and no certificates of the computer that runs the tests."""
    for name in [*os.environ]:
        if name.lower().endswith(("_proxy", "_ca_bundle")):
            monkeypatch.delenv(name)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes a client of the API at a base_url."""
    sessions: list[Session] = []

    def connect(
        base_url: str,
        key: str = "a-key",
        *,
        auth_header: str = "Authorization",
        throttle: Throttle | None = None,
        **options: Any,
    ) -> PublicJobsClient:
        throttle = throttle or Throttle(100_000, 60.0)
        headers = {"User-Agent": "tests/1", auth_header: AUTH_HEADERS[auth_header].format(key)}
        sessions.append(Session(throttle, 16, headers, base_url))
        settings: dict[str, Any] = {"page_size": 10, "timeout": 10.0, **options}
        return PublicJobsClient(sessions[-1], base_url, **settings)

    yield connect
    for session in sessions:
        session.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1, with its key, that no computer trusts."""
    folder = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    options = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
        " -addext subjectAltName=IP:127.0.0.1"
        " -addext keyUsage=critical,digitalSignature,keyCertSign"
    )
    command = ["openssl", *options.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    return context


@pytest.fixture
def _trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate / "certificate.pem"))
