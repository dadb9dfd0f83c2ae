"""The command `public-jobs-sandbox demo`: from the API to answers in SQL on one computer."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, Self

import click

from tap_public_jobs.sandbox.options import Options
from tap_public_jobs.sandbox.server import LOCALHOST, serving
from tap_public_jobs.sandbox.state import Sandbox

JOBS = 120
REQUESTS, PERIOD = 60, 1
"""A minute's budget per second, so that the throttle is seen at work and nobody waits for it."""

REPOSITORY = Path(__file__).parents[2]
DATABASE = Path("output", "demo.duckdb")
SCHEMA = "public_jobs"

SECONDS_TO_STOP = 5
FALLBACK_WIDTH = 100
FEWEST_CHARACTERS = 8


class Question(NamedTuple):
    """What an analyst asks, in words and in SQL."""

    words: str
    sql: str


QUESTIONS = (
    Question(
        "Which departments have the most open roles?",
        """
        select department, count(*) as open_roles, count(distinct location) as places
        from public_jobs.jobs
        where is_published
        group by department
        order by open_roles desc, department;
        """,
    ),
    Question(
        "What do roles pay, by seniority? (Amounts of two currencies are never added up.)",
        """
        select currency, seniority_level, count(*) as roles,
               min(min_salary) as lowest, max(max_salary) as highest
        from public_jobs.jobs
        where is_published and currency in ('EUR', 'USD')
        group by currency, seniority_level
        order by currency, lowest, highest;
        """,
    ),
    Question(
        "Which questions can rule an applicant out most often? (They are JSON, one array a job.)",
        """
        select item ->> 'question' as question, count(*) as jobs,
               count(*) filter (where (item ->> 'required')::boolean) as answer_required
        from public_jobs.job_details, unnest(knockout_questions::json[]) as questions(item)
        where is_published
        group by question
        order by jobs desc, question
        limit 5;
        """,
    ),
    Question(
        "What do the fields hold that the API has, but does not document?",
        """
        select key as field, count(*) as jobs,
               arg_min(json_type(value), public_id) as type,
               arg_min(value ->> '$', public_id) as example
        from public_jobs.job_details, json_each(additional_fields)
        where is_published
        group by field
        order by field;
        """,
    ),
)


class LogLine(NamedTuple):
    """One line that Meltano logged, or uv while it installs Meltano."""

    source: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a line of Meltano's JSON log; take any other for one of uv's."""
        try:
            entry: dict[str, Any] = json.loads(text)
            return cls(entry.get("name", "meltano"), entry["event"].strip())
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls("uv", text.strip())

    @property
    def is_news(self) -> bool:
        """Whether it tells of the run, rather than of its machinery."""
        news = {
            "uv": ("",),
            "meltano": ("Install",),
            "tap-public-jobs": ("Fetching", "Details", "Synced", "The "),
            "target-duckdb": ("Loading",),
        }
        return self.text.startswith(news.get(self.source, ("",)))

    def __str__(self) -> str:
        return f"  {self.source:<15}  {self.text}"


@click.command()
def demo() -> None:
    """Sync made-up jobs into DuckDB with Meltano, and query them."""
    if not (REPOSITORY / "meltano.yml").is_file():
        message = (
            f"The demo runs the project's own meltano.yml, and there is none in {REPOSITORY}: "
            "clone the repository and run `uv run public-jobs-sandbox demo` there."
        )
        raise click.ClickException(message)
    command = [*uv_command(), "tool", "run", "--from", "meltano~=4.4", "meltano"]
    # Neither the user's .env nor the variables of their own warehouse belong to this run.
    command += ["--env-file", os.devnull, "--log-format", "json"]
    # An interrupted demo is no reason to refuse the next one.
    command += ["run", "--force", "tap-public-jobs", "target-duckdb"]
    (REPOSITORY / DATABASE).parent.mkdir(exist_ok=True)
    sandbox = Sandbox.demo(JOBS, options=Options(limit_requests=REQUESTS, limit_period=PERIOD))
    with _ending_cleanly(), serving(sandbox) as base_url:
        click.echo(
            f"A sandbox of the Public Jobs API serves {JOBS} made-up jobs at {base_url}.\n"
            f"Like the API it allows {REQUESTS} requests per period; here a period is {PERIOD} "
            "second, not 60.\n\n"
            "$ meltano run tap-public-jobs target-duckdb"
        )
        _run_meltano(command, _environment(sandbox, base_url))
    rejected = sum(
        request.status == sandbox.options.rejection_status for request in sandbox.requests
    )
    click.echo(
        f"\nThe sandbox counted {len(sandbox.requests)} requests and rejected {rejected}. "
        "It has stopped; what follows comes from the warehouse."
    )
    _answer_questions(REPOSITORY / DATABASE)
    click.echo(
        f"\nThe warehouse is {DATABASE}, schema {SCHEMA}, tables jobs and job_details. A second "
        "demo updates it.\n\nWith your own key, in this folder:\n\n"
        "  cp -n .env.example .env      # then write your key and your API's address into .env\n"
        "  uvx --from 'meltano~=4.4' meltano run tap-public-jobs target-duckdb\n\n"
        "That fills output/warehouse.duckdb; nothing of the demo is in it."
    )


def uv_command() -> list[str]:
    """Find uv, which runs Meltano without installing it."""
    for name in (os.environ.get("UV", ""), "uv"):  # `uv run` sets UV
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    message = "uv is not found, and Meltano runs with it: see https://docs.astral.sh/uv/ and retry."
    raise click.ClickException(message)


def _environment(sandbox: Sandbox, base_url: str) -> dict[str, str]:
    """Return variables with which Meltano knows the sandbox, and nothing of the user's."""
    private = ("TAP_PUBLIC_JOBS_", "TARGET_DUCKDB_", "MELTANO_")
    inherited = {
        name: value for name, value in os.environ.items() if not name.upper().startswith(private)
    }
    no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    no_proxy = f"{no_proxy},{LOCALHOST}" if no_proxy else LOCALHOST
    return inherited | {
        "TAP_PUBLIC_JOBS_BASE_URL": base_url,
        "TAP_PUBLIC_JOBS_API_KEY": sandbox.key,
        "TAP_PUBLIC_JOBS_RATE_LIMIT_REQUESTS": str(REQUESTS),
        "TAP_PUBLIC_JOBS_RATE_LIMIT_PERIOD_SECONDS": str(PERIOD),
        "TARGET_DUCKDB_FILEPATH": str(REPOSITORY / DATABASE),
        "TARGET_DUCKDB_DEFAULT_TARGET_SCHEMA": SCHEMA,
        # State of its own: the user's next sync goes on where their last one ended.
        "MELTANO_STATE_BACKEND_URI": "systemdb",
        "MELTANO_DATABASE_URI": f"sqlite:///{REPOSITORY / '.meltano' / 'demo.db'}",
        "no_proxy": no_proxy,
        "NO_PROXY": no_proxy,
    }


@contextlib.contextmanager
def _ending_cleanly() -> Iterator[None]:
    """Let SIGTERM and a closed terminal unwind the stack, as Ctrl-C does."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_meltano(command: Sequence[str], environment: dict[str, str]) -> None:
    """Run Meltano to its end, showing what matters; all it said if it fails.

    Raises:
        click.ClickException: It failed.
    """
    # In a session of its own, so that Ctrl-C reaches the demo alone, which then ends them all.
    process = subprocess.Popen(  # noqa: S603  # no shell, and no text from outside
        command,
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    lines: list[LogLine] = []
    try:
        for text in process.stdout or ():
            line = LogLine.parse(text)
            lines.append(line)
            if line.is_news:
                click.echo(line)
        status = process.wait()
    except BaseException:
        _end(process)
        raise
    if status == 0:
        return
    if not all(line.is_news for line in lines):
        click.echo("\nAll that Meltano said:")
        for line in lines:
            click.echo(line)
    raise click.ClickException(_remedy(lines))


def _remedy(lines: Sequence[LogLine]) -> str:
    texts = [line.text for line in lines]
    is_running = any(text.startswith("Running job") for text in texts)
    # Meltano goes on without a plugin that it could not install, and fails later.
    if is_running and not any(text.startswith("Installation failed") for text in texts):
        return (
            "The sync failed. The last lines above say why; if another program has "
            f"{DATABASE} open, close it there, or delete the file, and retry."
        )
    return (
        "Meltano or its plugins could not be installed: check the network, which a first run "
        "needs, and retry."
    )


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and everything that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_STOP)


def _answer_questions(database: Path) -> None:
    import duckdb  # noqa: PLC0415  # loads slowly, and no other command needs it

    width = shutil.get_terminal_size((FALLBACK_WIDTH, 24)).columns
    with duckdb.connect(str(database), read_only=True) as connection:
        for number, question in enumerate(QUESTIONS, start=1):
            sql = textwrap.dedent(question.sql).strip()
            result = connection.execute(sql)
            names = [column[0] for column in result.description or ()]
            click.echo(f"\n{number}. {question.words}\n")
            click.echo(textwrap.indent(sql, "     ") + "\n")
            for line in _table(names, result.fetchall(), width - 3):
                click.echo(f"   {line}")


def _table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Iterator[str]:
    """Lay rows out in columns, numbers to the right, the last column cut where `width` ends."""
    cells = [list(names), *(list(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths[-1] = max(FEWEST_CHARACTERS, min(widths[-1], width - sum(widths[:-1]) - 2 * len(names)))
    cells.insert(1, ["-" * width for width in widths])
    is_number = [isinstance(value, int | float) for value in rows[0]]
    for row in cells:
        columns = zip(row, widths, is_number, strict=True)
        aligned = (
            _cut(cell, width).rjust(width) if right else _cut(cell, width).ljust(width)
            for cell, width, right in columns
        )
        yield "  ".join(aligned).rstrip()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(str(value).split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
