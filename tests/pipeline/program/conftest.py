"""A project whose programs, messages and pings are stand-ins."""

import os
import signal
import types
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_ins import ProjectAtWork

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[ProjectAtWork]:
    """The project in the working folder; the process is afterwards as it was."""
    folder = tmp_path / "my projects" / "acme"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in os.environ:
        if name.startswith(("TAP_", "TARGET_", "MELTANO_", "DBT_", "HTTP", "ALL_PROXY")):
            monkeypatch.delenv(name)
    found = ProjectAtWork(folder, monkeypatch, capfd)

    class Apprise:
        """Takes addresses, and sends messages, as the package does."""

        def add(self, url: str) -> bool:
            found.address = url
            return "://" in url

        def notify(self, text: str, title: str, body_format: str = "") -> bool:
            found.body_format = body_format
            if not found.refuses:
                found.heard.append((title, text))
            return not found.refuses

    class Response:
        def close(self) -> None: ...

    def open_url(url: str, *, timeout: float) -> Response:
        assert timeout < 60  # seconds, while the run holds the lock
        found.heard.append(("GET", url))
        return Response()

    module = types.SimpleNamespace(Apprise=Apprise)
    monkeypatch.setitem(__import__("sys").modules, "apprise", module)
    monkeypatch.setattr(urllib.request, "urlopen", open_url)
    handlers = [signal.getsignal(number) for number in SIGNALS]
    mask, variables = os.umask(0o022), dict(os.environ)
    yield found
    signal.alarm(0)
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)
    os.umask(mask)
    os.environ.clear()
    os.environ.update(variables)
