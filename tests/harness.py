"""Runs the tap in this process and keeps what it writes, in order."""

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import Any

from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox, SeenRequest
from singer_sdk.singerlib.json import serialize_json

from tap_public_jobs.api.client import API_PATH
from tap_public_jobs.tap import TapPublicJobs

Json = Any


@dataclass
class Output:
    """The Singer messages of one run, parsed and as they were written."""

    messages: list[dict[str, Json]] = field(default_factory=list)
    text: str = ""

    def of(self, kind: str, stream: str | None = None) -> list[dict[str, Json]]:
        return [
            message
            for message in self.messages
            if message["type"] == kind and stream in {None, message.get("stream")}
        ]

    def records(self, stream: str) -> list[dict[str, Json]]:
        return [message["record"] for message in self.of("RECORD", stream)]

    def rows(self, stream: str) -> dict[str, dict[str, Json]]:
        """The records by id: details arrive in any order. No job may be written twice."""
        records = self.records(stream)
        rows = {record["id"]: record for record in records}
        assert len(rows) == len(records)
        return rows

    @property
    def order(self) -> list[str]:
        """Kinds and streams of the messages; messages of the same kind in a row count as one."""
        kinds = [f"{m['type']} {m.get('stream', '')}".strip() for m in self.messages]
        return [kind for kind, last in zip(kinds, [None, *kinds], strict=False) if kind != last]

    @property
    def state(self) -> dict[str, Json]:
        return dict(self.of("STATE")[-1]["value"])


def parse(text: str) -> Output:
    """Read Singer messages, numbers exact."""
    return Output([json.loads(it, parse_float=Decimal) for it in text.splitlines()], text)


def json_text(value: Json) -> str:
    """A nested value as a column of text holds it."""
    return serialize_json(value, sort_keys=True, ensure_ascii=False)


def reaching(sandbox: Sandbox, base_url: str) -> dict[str, Json]:
    """Settings that reach a sandbox, with a budget that no test exhausts."""
    return {"api_key": sandbox.key, "base_url": base_url, "rate_limit_requests": 100_000}


@contextlib.contextmanager
def demo(jobs: int, latency: float = 0.0) -> Iterator[tuple[Sandbox, dict[str, Json]]]:
    """Serve an organisation without a limit; yield its sandbox, and settings that reach it."""
    sandbox = Sandbox.demo(jobs, options=Options(limited=False, latency=latency))
    with serving(sandbox) as base_url:
        yield sandbox, reaching(sandbox, base_url)


@contextlib.contextmanager
def captured() -> Iterator[Output]:
    """Collect what is written to stdout in the block, also if the run fails."""
    output, text = Output(), io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            yield output
    finally:
        output.text = text.getvalue()
        output.messages = parse(output.text).messages


def run_tap(config: dict[str, Json], **others: Json) -> None:
    """Run the tap to its end.

    Args:
        config: Its settings.
        others: Arguments of the tap, such as its state; or what it has instead of its own `client`,
            `clock` or `sleep`.
    """
    replaced = {name: others.pop(name) for name in ("client", "clock", "sleep") if name in others}
    parts: dict[str, Json] = {
        # As a function, it would become a method.
        name: staticmethod(it) if callable(it) else it
        for name, it in replaced.items()
    }
    type(TapPublicJobs.__name__, (TapPublicJobs,), parts)(config=config, **others).sync_all()


def sync(config: dict[str, Json], **others: Json) -> Output:
    """Do the same, and return what it writes."""
    with captured() as output:
        run_tap(config, **others)
    return output


def catalog_of(config: dict[str, Json]) -> dict[str, Json]:
    """Discover the catalog, as a dictionary that may be changed and passed to a run."""
    return dict(json.loads(TapPublicJobs(config=config).catalog_json_text))


def select_only(config: dict[str, Json], *names: str) -> dict[str, Json]:
    """Discover the catalog, with these streams selected and no others."""
    catalog = catalog_of(config)
    for stream in catalog["streams"]:
        (entry,) = [it for it in stream["metadata"] if it["breadcrumb"] == []]
        entry["metadata"]["selected"] = stream["stream"] in names
    return catalog


def paths(requests: list[SeenRequest]) -> list[str]:
    """The requests in order: paths below the API's base path, with the page number of the list.

    Consecutive pages are sorted, because they are requested concurrently.
    """
    asked: list[str] = []
    for is_list, group in groupby(requests, key=lambda request: bool(request.query)):
        if is_list:
            numbers = sorted(int(request.query["page"]) for request in group)
            asked += [f"/jobs?page={number}" for number in numbers]
        else:
            asked += [request.path.partition(API_PATH)[2] for request in group]
    return asked
