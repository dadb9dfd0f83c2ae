"""The random histories of `tests/test_model.py` with real processes, HTTP, signals and targets.

`uv run pytest tests/e2e/soak.py --hypothesis-seed=17`
"""

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest
from e2e.pipeline import Tap, environment, program
from e2e.quick_tap import NOW
from e2e.targets import DUCKDB, CheckedTarget, Target, meltanolabs, sqlite
from fake_api import FakeApi
from fake_tap import Pipeline
from harness import parse
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from support.histories import ANY_REFRESH, Histories
from typing_extensions import override

from tap_public_jobs.api.models import JobRef
from tap_public_jobs.errors import RequestError

# Into each target.
HISTORIES = 40

QUICK_TAP = Path(__file__).with_name("quick_tap.py")
IMPORTS = ("tap_public_jobs.tap", "pendulum", "dateutil.parser")
TARGETS = [
    DUCKDB,
    meltanolabs("hard", "soak"),
    *(sqlite(*it) for it in (("upsert", "hard"), ("upsert", "soft"), ("append-only", "soft"))),
]


@contextmanager
def serving(api: FakeApi) -> Iterator[str]:
    """Serve it over HTTP."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        connection: socket.socket

        def do_GET(self) -> None:
            status, body = 200, b"{}"
            url = urlsplit(self.path)
            try:
                if url.query:
                    page = api.page(int(parse_qs(url.query)["page"][0]))
                    answer = {"data": page.items, "pageSize": page.size, "total": page.total}
                else:
                    answer = api.detail(JobRef("", unquote(url.path.rpartition("/")[2])))
                body = json.dumps(answer).encode()
            except RequestError as error:
                status = error.status or 500
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class RealPipeline(Pipeline):
    """The same as processes; what the tap writes goes into a real target too.

    Args:
        folder: For all files.
        target: The target.
        database: The address of a PostgreSQL database.

    Attributes:
        pid: The process of the tap.
        status: How the last run ended.
    """

    def __init__(
        self, api: FakeApi, folder: Path, target: Target, database: str, **config: Any
    ) -> None:
        super().__init__(api, **config | {"rate_limit_requests": 100_000})
        self.pid = self.status = 0
        self._tap = Tap(folder)
        self._checked = CheckedTarget(target, folder, database)

    @override
    def sync(self, config: dict[str, Any], catalog: dict[str, Any] | None) -> None:
        folder, self._tap.catalog = self._tap.folder, catalog
        self._tap.state.write_text(json.dumps(self.state), "utf-8")
        with (
            serving(self.api) as base_url,
            (folder / "stdout").open("wb") as stdout,
            (folder / "stderr").open("wb") as stderr,
            program(QUICK_TAP, *IMPORTS).start(
                self._tap.options(config | {"base_url": base_url}),
                environment(**{NOW: f"{self.now}"}),
                stdout=stdout,
                stderr=stderr,
            ) as process,
        ):
            self.pid = process.pid
            self.status = process.wait()
        self.error = (folder / "stderr").read_text("utf-8") if self.status else ""
        assert "Traceback" not in self.error, self.error
        assert self.status != 1 or self.error.count("| CRITICAL |") == 1, self.error
        # A killed tap may leave a part of a line, which no target can read.
        text, _, _ = (folder / "stdout").read_text("utf-8").rpartition("\n")
        self.output, self._lines = parse(text), text.splitlines()

    @override
    def load(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return self._checked.load("".join(f"{it}\n" for it in self._lines[: len(messages)]))


class Soak(Histories):
    """Also, processes end by signals."""

    def __init__(self, target: Target, database: str) -> None:
        self._target, self._database = target, database
        with psycopg.connect(database) as connection:
            connection.execute("drop schema if exists soak cascade")
        super().__init__()

    @override
    def connect(self, **config: str) -> Pipeline:
        self.real = RealPipeline(
            self.api, Path(self.folder.name), self._target, self._database, **config
        )
        return self.real

    @rule(
        refresh=ANY_REFRESH,
        number=st.integers(1, 30),
        sent=st.sampled_from([signal.SIGTERM, signal.SIGKILL]),
    )
    def stop(self, refresh: str, number: int, sent: signal.Signals) -> None:
        """The tap gets a signal at a request."""

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.kill(self.real.pid, sent)

        self.at_requests({number: kill})
        self.run(refresh)
        self.at_requests({})
        ends = {signal.SIGTERM: {143, -15}, signal.SIGKILL: {-9}}[sent]
        assert self.real.status in {0} | ends
        assert self.real.status != 143 or self.real.output.messages[-1]["type"] == "STATE"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_histories(target: Target, database: str) -> None:
    run_state_machine_as_test(
        partial(Soak, target, database),  # type: ignore[arg-type]  # anything that makes one
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=15,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        ),
    )
