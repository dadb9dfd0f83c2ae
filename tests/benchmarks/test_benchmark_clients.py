"""What a client is given, and how what it leaves is read: rows lost must not go unnoticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from public_jobs_sandbox.postings import make_jobs, summary
from public_jobs_sandbox.state import Sandbox

from benchmarks.clients import CLIENTS, Client, LeftOutError, Order, World, extracted
from benchmarks.peers.sdk_template import JobDetailsStream, JobsStream

OURS = CLIENTS[0]


@pytest.fixture
def order(tmp_path: Path) -> Order:
    return Order(World(Sandbox(), "http://127.0.0.1:1"), tmp_path)


def write_messages(order: Order, *messages: dict[str, Any], end: str = "") -> None:
    lines = "".join(f"{json.dumps(message)}\n" for message in messages)
    order.stdout.write_text(lines + end, encoding="utf-8")


@pytest.mark.parametrize(
    "record",
    [
        {"type": "RECORD", "stream": "jobs", "record": {"id": "1", "jobTitle": "STATE"}},
        {"type": "RECORD", "record": {"stream": "jobs", "data": {"id": "1"}}},
    ],
    ids=["Singer", "Airbyte"],
)
def test_records_are_read_from_messages(order: Order, record: dict[str, Any]) -> None:
    write_messages(order, record, {"type": "STATE", "value": {"RECORD": 1}})

    assert extracted(order) == {"jobs": {"1"}}


def test_half_a_line_of_a_run_that_was_killed_is_no_record(order: Order) -> None:
    write_messages(order, end='{"type": "RECORD", "stream": "jobs", "record": {"id"')

    assert extracted(order) == {}


def test_records_are_read_from_dlts_files(order: Order) -> None:
    folder = order.folder / "pipelines" / "public_jobs" / "normalize" / "load" / "new_jobs"
    folder.mkdir(parents=True)
    rows = b'[{"id": "1"}, {"id": "2"}]\n[{"id": "3"}]\n[{"id"'
    (folder / "job_details.f00.typed-jsonl").write_bytes(rows)

    assert extracted(order) == {"job_details": {"1", "2", "3"}}


def test_a_run_starts_with_the_last_state_of_the_runs_before(order: Order) -> None:
    assert "--state" not in OURS.command(order)

    write_messages(order, *({"type": "STATE", "value": {"n": n}} for n in (1, 2)))
    first = OURS.command(order)
    write_messages(order)
    second = OURS.command(order)

    assert first == second
    state = Path(first[first.index("--state") + 1])
    assert json.loads(state.read_text(encoding="utf-8")) == {"n": 2}


def test_a_peer_that_cannot_be_installed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Client("peer", "peer", config=vars, script="missing.py", isolated=True)

    with pytest.raises(LeftOutError, match=r"^uv cannot install it \(status \d\)$"):
        peer.version()

    monkeypatch.setenv("PATH", "")
    with pytest.raises(LeftOutError, match=r"^uv is not on the PATH$"):
        peer.version()


def test_the_template_declares_the_fields_that_the_api_answers() -> None:
    (job,) = make_jobs(1)

    assert set(JobsStream.schema["properties"]) == set(summary(job))
    assert set(JobDetailsStream.schema["properties"]) == set(job)
