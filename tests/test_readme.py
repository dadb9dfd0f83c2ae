"""The README tells the truth."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from harness import sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

from tap_public_jobs import (
    changelog,
    client,
    command,
    errors,
    jobs,
    listing,
    snapshot,
    streams,
    tap,
    throttle,
)

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return README.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, its two first lines left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_two_commands_open_it() -> None:
    assert blocks("bash")[:2] == [
        "pip install uv && uv run public-jobs-sandbox demo\n",
        "pip install uv && uv run pytest\n",
    ]


@pytest.mark.parametrize(("number", "stream"), [(0, "jobs"), (1, "job_details")])
def test_the_records_shown_are_real(number: int, stream: str) -> None:
    shown = json.loads(blocks("json")[number], parse_float=Decimal)
    sandbox = Sandbox.demo(options=Options(limited=False))
    with serving(sandbox) as url:
        config = {"api_key": sandbox.key, "base_url": url, "rate_limit_requests": 1000}
        records = sync(config).records(stream)

    assert shown in records
    assert list(shown) == list(records[0])


def test_the_length_of_a_backfill_is_what_the_limit_makes_it() -> None:
    table = rows(section("## From zero to rows in your own warehouse"))

    for published, requests, minutes in (map(_number, row) for row in table):
        pages = published // 100 + 1  # one more after a full page, to see that it is the last
        assert requests == pages + published
        assert minutes == -(-requests // 60)
    assert len(table) == 6


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_every_error_in_the_table_is_one_that_the_tap_can_say() -> None:
    modules = (changelog, client, command, errors, jobs, listing, snapshot, streams, tap, throttle)
    source = " ".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules)
    said = re.sub(r'"\s*f?"|\{MAX_FAILURES_IN_A_ROW\}|\{MAX_REJECTIONS\}', "", source)
    said = re.sub(r"\s+", " ", said)
    quoted = [row[0] for row in rows(section("## When it stops"))[2:]]

    for cell in quoted:
        for message in re.findall(r"`(.*?)`", cell):
            words = re.sub(r"^[5…]+ |10 (?=times)", "", message)
            assert words in said, message


def test_the_queries_of_published_jobs_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On tables as target-duckdb makes them, and on lines as target-jsonl does."""
    database = duckdb.connect()
    database.execute("create schema public_jobs")
    for table in ("jobs", "job_details"):
        database.execute(f"create table public_jobs.{table} (id text, is_published boolean)")
        database.execute(f"insert into public_jobs.{table} values ('a', true), ('b', false)")  # noqa: S608
    lines = [("a", True), ("b", True), ("b", False)]
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "jobs.jsonl").write_text(
        "".join(json.dumps({"id": key, "is_published": flag}) + "\n" for key, flag in lines)
    )
    monkeypatch.chdir(tmp_path)

    answers = [database.execute(query).fetchall() for query in blocks("sql")]

    assert answers == [[("a", True)]] * 3
