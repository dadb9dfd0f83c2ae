"""The README and the pages in docs/ are true."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pytest
import requests
import yaml
from harness import catalog_of, sync
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from singer_sdk.singerlib import StateMessage

from tap_public_jobs.api.listing import ListReader
from tap_public_jobs.api.models import Page
from tap_public_jobs.api.transport import ThrottledAdapter
from tap_public_jobs.errors import PublicJobsError
from tap_public_jobs.process import WholeMessageWriter
from tap_public_jobs.tap import TapPublicJobs

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").glob("*.md")}

LIST = "/api/public/v1/jobs"

Config = dict[str, Any]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, its two first lines left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_two_commands_open_it() -> None:
    assert blocks("bash", README) == [
        "pip install uv && uv run public-jobs-sandbox demo\n",
        "pip install uv && uv run pytest\n",
    ]


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len(README.splitlines()) <= 170


def test_every_page_is_named_in_the_readme() -> None:
    linked = re.findall(r"^\| \[\w+\]\(docs/(\w+)\.md\)", README, re.MULTILINE)

    assert sorted({*linked, "index"}) == sorted({*PAGES, "columns", "index"})


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/*.md", "queries/*.md"])
def test_links_lead_somewhere(page: str) -> None:
    missing = [
        f"{path.name}: {link}"
        for path in REPOSITORY.glob(page)
        for link in re.findall(
            r"(?:\]\(|src=\"|srcset=\")([^)\"#]+)", path.read_text(encoding="utf-8")
        )
        if "://" not in link and not (path.parent / link).exists()
    ]

    assert not missing


def test_links_to_headings_lead_to_one() -> None:
    for name, text in PAGES.items():
        for page, anchor in re.findall(r"\]\((?:(\w+)\.md)?#([^)]+)\)", text):
            headings = re.findall(r"^#+ (.*)$", PAGES[page or name], re.MULTILINE)
            assert anchor in {_anchor(heading) for heading in headings}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_loaders_of_the_readme_are_those_of_the_first_steps() -> None:
    (shown,) = blocks("yaml", README)
    (to_append,) = blocks("yaml", PAGES["start"])

    assert to_append == f"# meltano.yml, at the end\n{shown}"


def test_the_loaders_are_those_of_this_project() -> None:
    (shown,) = blocks("yaml", README)
    loaders = yaml.safe_load(shown)["loaders"]
    project = yaml.safe_load((REPOSITORY / "meltano.yml").read_text(encoding="utf-8"))
    installed = {loader["name"]: loader for loader in project["plugins"]["loaders"]}

    for loader in loaders:
        for key in ("namespace", "pip_url", "config", "env", "python"):
            assert loader.get(key) == installed[loader["name"]].get(key)


def test_the_records_shown_are_real(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each stream, all of the same job; a run at 4 o'clock. A new column may be left out."""
    shown = dict(
        zip(
            re.findall(r"^\*\*`(\w+)`\*\*:", PAGES["sql"], re.MULTILINE),
            (json.loads(block, parse_float=Decimal) for block in blocks("json", PAGES["sql"])),
            strict=True,
        )
    )
    monkeypatch.setattr(TapPublicJobs, "clock", staticmethod(lambda: 1_795_233_600.0))
    sandbox = Sandbox.demo(options=Options(limited=False))
    with serving(sandbox) as url:
        config = {
            "api_key": sandbox.key,
            "base_url": url,
            "rate_limit_requests": 1000,
            "column_naming": "snake_case",
        }
        output = sync(config)
        streams = [stream["tap_stream_id"] for stream in catalog_of(config)["streams"]]

    assert sorted(shown) == sorted(streams)
    for stream, record in shown.items():
        real = output.rows(stream)[record["id"]]
        assert record.items() <= real.items()
        assert list(record) == [name for name in real if name in record]


def test_the_length_of_a_backfill_is_what_the_limit_makes_it() -> None:
    table = rows(PAGES["start"])

    for published, requests_, minutes in (map(_number, row) for row in table):
        pages = published // 100 + 1  # one more after a full page, to see that it is the last
        assert requests_ == pages + published
        assert minutes == -(-requests_ // 60)
    assert len(table) == 6


def _number(cell: str) -> int:
    return int(cell.replace(",", ""))


class Scene(NamedTuple):
    """What it takes to provoke an error."""

    sandbox: Sandbox
    config: Config
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def run(self, **changes: object) -> None:
        """Run the tap, with other settings."""
        sync(self.config | changes)

    def run_notified(self, database: str) -> None:
        """Run the tap with a change log."""
        url = f"sqlite:///{self.folder / database}"
        self.run(detail_refresh="notified", changes_url=url)

    def run_with_fault(self, kind: str, path: str = LIST) -> None:
        """Run the tap on an API that fails at a path each time."""
        self.sandbox.fail_next(kind, times=None, path=path)
        self.run()

    def write_to_stdout(self, number: int) -> None:
        """Write a message to a stdout that fails."""
        with (self.folder / "stdout").open("w", encoding="utf-8") as stdout:

            class Failing:
                fileno = stdout.fileno

                def write(self, text: str) -> None:
                    raise OSError(number, os.strerror(number), text)

            self.monkeypatch.setattr(sys, "stdout", Failing())
            WholeMessageWriter().write_message(StateMessage({}))

    def read_configuration(self, name: str) -> None:
        """Read a configuration file as the command does."""
        nothing: Any = None
        TapPublicJobs.cb_config(nothing, nothing, (str(self.folder / name),))


def list_without_end(_: Scene) -> None:
    """Read the list of a server that ignores the page number."""

    class SamePage:
        def page(self, number: int) -> Page:  # noqa: ARG002
            return Page([{"id": "a", "publicId": "a"}], size=1, total=5)

        def detail(self, job: object) -> Any:
            raise AssertionError(job)

    ListReader(SamePage()).read()


def rejected_each_time(scene: Scene) -> None:
    """Send a request that is rejected whenever it is sent."""

    class NoThrottle:
        def acquire(self) -> float:
            return 0.0

        def rejected(self, *_: object) -> None:
            return None

    rejection = requests.Response()
    rejection.status_code, rejection.raw = 429, io.BytesIO()
    scene.monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", lambda *_, **__: rejection)
    throttle: Any = NoThrottle()
    request = requests.Request("GET", "https://jobs.example.com").prepare()
    ThrottledAdapter(throttle, connections=1).send(request)


def fail_one_detail(scene: Scene) -> None:
    public_id = scene.sandbox.organisation.published()[0].job["publicId"]
    scene.run_with_fault("http_500", f"{LIST}/{public_id}")


PROVOKED: dict[str, Callable[[Scene], object]] = {
    "api_key is required": lambda it: it.run(api_key=None),
    "base_url must begin with https://": lambda it: it.run(base_url="http://a.example.com"),
    "page_size: 101 is greater than the maximum of 100": lambda it: it.run(page_size=101),
    "page_sise is not a setting: did you mean page_size?": lambda it: it.run(page_sise=1),
    "The API refused the key (401)": lambda it: it.run(api_key="pj_other"),
    "plan of its organisation does not include the public API (403)": lambda it: it.run_with_fault(
        "http_403"
    ),
    "base_url does not look like the Public Jobs API": lambda it: it.run_with_fault("http_404"),
    "The list of jobs cannot be read": lambda it: it.run_with_fault("http_500"),
    "the list never ends": list_without_end,
    "rate limit 10 times in a row: another client may be using this key": rejected_each_time,
    "The sync is incomplete": fail_one_detail,
    "The target stopped reading": lambda it: it.write_to_stdout(errno.EPIPE),
    "No space left on device": lambda it: it.write_to_stdout(errno.ENOSPC),
    "batch_config is not supported": lambda it: it.run(batch_config={}),
    "stream_maps cannot be applied": lambda it: it.run(
        stream_maps={"jobs": {"half": "minSalary / 0"}}
    ),
    "There is no change log in": lambda it: it.run_notified("nowhere.db"),
    "cannot be used": lambda it: it.run_notified("no.db"),
    "file not found": lambda it: it.read_configuration("nowhere.json"),
    "the file is not a JSON object": lambda it: it.read_configuration("no.db"),
}


@pytest.mark.parametrize("message", PROVOKED)
def test_an_error_says_what_the_table_of_errors_quotes(
    sandbox: Sandbox,
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_waiting: None,  # noqa: ARG001
    message: str,
) -> None:
    (tmp_path / "no.db").write_text("no database, but long enough to be read as one. " * 100)

    with pytest.raises((PublicJobsError, OSError), match=re.escape(message)):
        PROVOKED[message](Scene(sandbox, config, tmp_path, monkeypatch))


def test_the_table_of_errors_quotes_these() -> None:
    cells = [row[0] for row in rows(PAGES["errors"].partition("\n## ")[0])]

    assert re.findall(r"`([^`]*)`", " ".join(cells)) == sorted(
        PROVOKED, key=lambda message: PAGES["errors"].index(f"`{message}`")
    )


def test_the_queries_of_published_jobs_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On tables as target-duckdb makes them, and on lines as target-jsonl does.

    Of four jobs a is published, b was unpublished, c was lost with a state and is not published any
    more, and d is published again.
    """
    database = duckdb.connect()
    monday, tuesday = "2026-11-16T04:00:00.000Z", "2026-11-17T04:00:00.000Z"
    first = [(key, monday, None) for key in "abcd"]
    last = [("a", tuesday, None), ("b", monday, tuesday), ("d", tuesday, None)]
    jobs = [(key, key.upper()) for key in "abcd"]
    database.execute("create schema public_jobs")
    database.execute("create table public_jobs.jobs (id text, job_title text)")
    database.executemany("insert into public_jobs.jobs values (?, ?)", jobs)
    database.execute(
        "create table public_jobs.job_publications "
        "(id text primary key, last_seen_at timestamp, unpublished_at timestamp)"
    )
    insert = "insert or replace into public_jobs.job_publications values (?, ?, ?)"
    database.executemany(insert, first + last)
    lines: dict[str, list[dict[str, str | None]]] = {
        "jobs": [{"id": key, "job_title": title} for key, title in [("a", "old"), *jobs]],
        "job_publications": [
            {"id": key, "last_seen_at": seen, "unpublished_at": until}
            for key, seen, until in first + last
        ],
    }
    (tmp_path / "output").mkdir()
    for stream, records in lines.items():
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / "output" / f"{stream}.jsonl").write_text(text)
    monkeypatch.chdir(tmp_path)

    answers = [sorted(database.execute(query).fetchall()) for query in blocks("sql", PAGES["sql"])]

    assert answers == [[("a", "A"), ("d", "D")]] * 2
