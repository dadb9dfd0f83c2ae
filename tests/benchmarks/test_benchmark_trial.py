"""What is counted of one run of a client."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.bench import NO_LIMIT, Bench, least_time, limited, serve

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.bench import Trial
    from benchmarks.clients import Order, World

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
        return [
            sys.executable,
            "-c",
            code,
            f"{order.world.url}/api/public/v1/jobs",
            order.world.sandbox.key,
        ]


def attempt(client: Any, world: World, folder: Path, expected: Any = None) -> Trial:
    bench = Bench([client], folder, full=False, report=lambda _: None)
    return bench.attempt(client, bench.order(world), expected)


def ids(world: World) -> list[str]:
    return [posting.job["id"] for posting in world.sandbox.organisation.published()]


def records(stream: str, ids: list[str]) -> str:
    messages = ({"type": "RECORD", "stream": stream, "record": {"id": it}} for it in ids)
    return "".join(f"{json.dumps(message)}\n" for message in messages)


def test_rows_that_a_client_leaves_out_are_counted(tmp_path: Path) -> None:
    with serve(3, NO_LIMIT) as world:
        messages = records("jobs", ids(world)) + records("job_details", ids(world)[2:])
        trial = attempt(Program(messages), world, tmp_path)

    assert trial.measured.status == 0
    assert trial.lost == 2
    assert not trial.succeeded


def test_a_second_run_is_expected_to_bring_what_changed(tmp_path: Path) -> None:
    with serve(3, NO_LIMIT) as world:
        changed = ids(world)[:1]
        program = Program(records("job_details", changed))
        trial = attempt(program, world, tmp_path, {"job_details": frozenset(changed)})

    assert trial.succeeded


@pytest.mark.parametrize(("sent", "rejected"), [(60, 0), (62, 2)])
def test_requests_and_rejections_are_those_that_the_server_saw(
    tmp_path: Path, sent: int, rejected: int
) -> None:
    with serve(1, limited(period=600, latency=0)) as world:
        trials = [attempt(Program(requests=sent), world, tmp_path) for _ in range(2)]

    assert [(trial.requests, trial.rejections) for trial in trials] == [(sent, rejected)] * 2


@pytest.mark.parametrize(("jobs", "periods"), [(59, 0), (60, 1), (300, 5), (3_000, 50)])
def test_the_least_time_is_the_periods_between_the_first_and_the_last_request(
    jobs: int, periods: int
) -> None:
    assert least_time(jobs, period=60) == 60 * periods
