"""The random histories of `tests/test_model.py` with real processes, HTTP, signals and targets.

`uv run pytest tests/e2e/soak.py --hypothesis-seed=17`
"""

import json
import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
import pytest
from e2e.pipeline import environment, hearing, options, program
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

from tap_public_jobs.errors import RequestError
from tap_public_jobs.sync.source import JobRef

# Into each target.
HISTORIES = 40

QUICK_TAP = Path(__file__).with_name("quick_tap.py")
IMPORTS = ("tap_public_jobs.tap", "pendulum", "dateutil.parser")
TARGETS = [
    DUCKDB,
    meltanolabs("hard", "soak"),
    *(sqlite(*it) for it in (("upsert", "hard"), ("upsert", "soft"), ("append-only", "soft"))),
]


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
        self._folder = folder
        self._checked = CheckedTarget(target, folder, database)

    @override
    def sync(self, config: dict[str, Any], catalog: dict[str, Any] | None) -> None:
        clock = {NOW: f"{self.now}"}
        with hearing(self.answer) as address:
            config |= {"base_url": f"http://{address}"}
            given = options(self._folder, config=config, catalog=catalog, state=self.state)
            with program(QUICK_TAP, *IMPORTS).start(given, environment(**clock)) as process:
                self.pid = process.pid
                text, error = process.stdout.read(), process.stderr.read()
                self.status = process.wait()
        self.error = error if self.status else ""
        assert "Traceback" not in self.error, self.error
        assert self.status != 1 or self.error.count("| CRITICAL |") == 1, self.error
        # A killed tap may leave a part of a line, which no target can read.
        text, _, _ = text.rpartition("\n")
        self.output, self._lines = parse(text), text.splitlines()

    def answer(self, path: str, _: bytes) -> tuple[int, bytes]:
        """What the API answers: a status and a body."""
        url = urlsplit(path)
        try:
            if url.query:
                page = self.api.page(int(parse_qs(url.query)["page"][0]))
                found = {"data": page.items, "pageSize": page.size, "total": page.total}
            else:
                found = self.api.detail(JobRef("", unquote(url.path.rpartition("/")[2])))
        except RequestError as error:
            return error.status or 500, b"{}"
        return 200, json.dumps(found).encode()

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
