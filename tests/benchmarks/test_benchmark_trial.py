"""What is counted of one run of a client."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.bench import NO_LIMIT, Bench, limited, serve

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.clients import Order

FETCH = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={{'x-api-key': sys.argv[2]}})
for number in range({times}):
    try:
        urllib.request.urlopen(request)
    except OSError:
        pass
"""


@dataclass
class Program:
    """A client that sends some requests, and writes these messages."""

    messages: str = ""
    requests: int = 0
    name: str = "program"

    def command(self, order: Order) -> list[str]:
        code = f"print({self.messages!r})\n{FETCH.format(times=self.requests)}"
        return [sys.executable, "-c", code, f"{order.base_url}/api/public/v1/jobs", order.key]


def bench(client: Any, folder: Path) -> Bench:
    return Bench([client], folder, full=False, report=lambda _: None)


def records(stream: str, ids: list[str]) -> str:
    messages = ({"type": "RECORD", "stream": stream, "record": {"id": it}} for it in ids)
    return "".join(f"{json.dumps(message)}\n" for message in messages)


def test_rows_that_a_client_leaves_out_are_counted(tmp_path: Path) -> None:
    with serve(3, NO_LIMIT) as world:
        first, second, third = world.ids
        client: Any = Program(
            records("jobs", [first, second, third]) + records("job_details", [third])
        )
        trial = bench(client, tmp_path).attempt(client, world)

    assert trial.measured.status == 0
    assert trial.lost == 2
    assert not trial.succeeded


def test_a_second_run_is_expected_to_bring_what_changed(tmp_path: Path) -> None:
    with serve(3, NO_LIMIT) as world:
        changed = next(iter(world.ids))
        client: Any = Program(records("job_details", [changed]))
        trial = bench(client, tmp_path).attempt(client, world, expected={"job_details": {changed}})

    assert trial.succeeded


@pytest.mark.parametrize(("sent", "rejected"), [(60, 0), (62, 2)])
def test_requests_and_rejections_are_those_that_the_server_saw(
    tmp_path: Path, sent: int, rejected: int
) -> None:
    client: Any = Program(requests=sent)
    with serve(1, limited(period=600, latency=0)) as world:
        a_bench = bench(client, tmp_path)
        trials = [a_bench.attempt(client, world) for _ in range(2)]

    assert [(trial.requests, trial.rejections) for trial in trials] == [(sent, rejected)] * 2
