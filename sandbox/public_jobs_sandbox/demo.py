"""The command `public-jobs-sandbox demo`: syncs made-up jobs and answers questions in SQL."""

import contextlib
import datetime as dt
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import click

from public_jobs_sandbox import meltano
from public_jobs_sandbox.meltano import DATABASE, PERIOD, REPOSITORY, REQUESTS, SCHEMA
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

JOBS = 120
COMMAND = "$ meltano run tap-public-jobs target-duckdb"

FALLBACK_WIDTH = 100
FEWEST_CHARACTERS = 8


class Question(NamedTuple):
    """A question that an analyst asks, in words and in SQL."""

    words: str
    sql: str


PUBLISHED = """
create temp view published as
select id from public_jobs.job_publications
where unpublished_at is null
  and last_seen_at = (select max(last_seen_at) from public_jobs.job_publications);
"""

QUESTIONS = (
    Question(
        "Which departments have the most open roles?",
        """
        select department, count(*) as open_roles, count(distinct location) as places
        from public_jobs.jobs join published using (id)
        group by department
        order by open_roles desc, department;
        """,
    ),
    Question(
        "What do roles pay, by seniority? (Amounts in different currencies are never mixed.)",
        """
        select currency, seniority_level, count(*) as roles,
               min(min_salary) as lowest, max(max_salary) as highest
        from public_jobs.jobs join published using (id)
        where currency in ('EUR', 'USD')
        group by currency, seniority_level
        order by currency, lowest, highest;
        """,
    ),
    Question(
        "Which questions can rule an applicant out most often? (Each job has a JSON array.)",
        """
        select item ->> 'question' as question, count(*) as jobs,
               count(*) filter (where (item ->> 'required')::boolean) as answer_required
        from public_jobs.job_details join published using (id)
        cross join unnest(knockout_questions::json[]) as questions(item)
        group by question
        order by jobs desc, question
        limit 5;
        """,
    ),
    Question(
        "What is in the fields that the API returns but does not document?",
        """
        select key as field, count(*) as jobs,
               arg_min(json_type(value), public_id) as type,
               arg_min(value ->> '$', public_id) as example
        from public_jobs.job_details join published using (id)
        cross join json_each(additional_fields)
        group by field
        order by field;
        """,
    ),
    Question(
        "When did the roles open? (The first sync cannot know; later ones date each new role.)",
        """
        select coalesce(opened_after::date::text, 'unknown') as opened_after,
               first_seen_at::date as first_seen, count(*) as roles
        from public_jobs.job_publications join published using (id)
        group by all
        order by first_seen, opened_after;
        """,
    ),
)


PAY = """
select job_title, location, max_salary
from public_jobs.job_details
where public_id = '{}';
"""

CLOSED = Question(
    "Which jobs closed, and when? (Between the last sync that saw the job and the next one.)",
    """
    select job_title, last_seen_at as closed_after, unpublished_at as closed_by
    from public_jobs.job_publications join public_jobs.job_details using (id)
    where unpublished_at is not null;
    """,
)


@click.command()
@click.option("--webhook", is_flag=True, help="Show how changes in the portal reach the warehouse.")
def demo(*, webhook: bool) -> None:
    """Sync made-up jobs into DuckDB with Meltano, and query them."""
    meltano.check()
    with meltano.ending_cleanly():
        _show_webhook() if webhook else _show_sync()


def _show_sync() -> None:
    (REPOSITORY / DATABASE).parent.mkdir(exist_ok=True)
    sandbox = Sandbox.demo(JOBS, options=Options(limit_requests=REQUESTS, limit_period=PERIOD))
    with serving(sandbox) as base_url:
        click.echo(
            f"A sandbox of the Public Jobs API serves {JOBS} made-up jobs at {base_url}.\n"
            f"Like the API it allows {REQUESTS} requests per period; here a period is {PERIOD} "
            f"second, not 60.\n\n{COMMAND}"
        )
        meltano.run(meltano.environment(sandbox, base_url))
    rejected = sum(
        request.status == sandbox.options.rejection_status for request in sandbox.requests
    )
    click.echo(
        f"\nThe sandbox counted {len(sandbox.requests)} requests and rejected {rejected}. "
        "It has stopped; the answers below come from the warehouse.\n\n"
        f"The open roles, by a rule that holds on every target:\n\n{_indented(PUBLISHED)}"
    )
    _answer_questions(REPOSITORY / DATABASE, QUESTIONS)
    click.echo(
        f"\nThe warehouse is {DATABASE}, schema {SCHEMA}, tables jobs, job_details and "
        "job_publications. A second demo updates it.\n\nWith your own key, in this folder:\n\n"
        "  cp -n .env.example .env      # then write your key and your API's address into .env\n"
        "  uv tool install 'meltano~=4.4'\n"
        "  meltano run tap-public-jobs target-duckdb\n\n"
        "That fills output/warehouse.duckdb, which holds nothing from the demo. docs/start.md has "
        "the other warehouses, and your own Meltano project."
    )


def _show_webhook() -> None:
    """Backfill, edit one job, unpublish another and sync again: few requests, new answers."""
    with tempfile.TemporaryDirectory() as folder, _receiver(Path(folder)) as hook:
        options = Options(limit_requests=REQUESTS, limit_period=PERIOD, webhook_url=hook)
        sandbox = Sandbox.demo(JOBS, options=options)
        database = Path(folder, "demo.duckdb")
        with serving(sandbox) as base_url:
            variables = meltano.environment(sandbox, base_url) | {
                "TAP_PUBLIC_JOBS_DETAIL_REFRESH": "notified",
                "TAP_PUBLIC_JOBS_CHANGES_URL": _changes_url(Path(folder)),
                "TARGET_DUCKDB_FILEPATH": str(database),
                "MELTANO_DATABASE_URI": f"sqlite:///{folder}/meltano.db",
            }
            click.echo(
                f"A sandbox of the Public Jobs API serves {JOBS} made-up jobs at {base_url}.\n"
                "It sends every change to public-jobs-webhook, and the tap runs with\n"
                f"detail_refresh: notified. The first run fetches everything.\n\n{COMMAND}"
            )
            meltano.run(variables)
            before = len(sandbox.requests)
            edited, closed = (posting.job for posting in sandbox.organisation.published()[:2])
            pay = Question("What does the job pay?", PAY.format(edited["publicId"]))
            _answer_questions(database, [pay])
            sandbox.edit(edited["publicId"], maxSalary=edited["maxSalary"] + 10_000)
            sandbox.unpublish(closed["publicId"])
            sandbox.webhooks.flush()
            click.echo(
                "\nIn the portal the job now pays 10,000 more, and another job is unpublished. "
                f"The sandbox has sent {len(sandbox.webhooks.deliveries)} webhooks.\n\n{COMMAND}"
            )
            meltano.run(variables, install=False)
            requests = sandbox.requests[before:]
            click.echo(f"\nRequests of this run, and the answers: {len(requests)}\n")
            for request in requests:
                query = f"?{urlencode(request.query)}" if request.query else ""
                click.echo(f"  {request.method} {request.path}{query} {request.status}")
            _answer_questions(database, [pay, CLOSED])


@contextlib.contextmanager
def _receiver(folder: Path) -> Iterator[str]:
    """Run `public-jobs-webhook`, and yield the URL that it receives at."""
    token, private = secrets.token_hex(), "PUBLIC_JOBS_WEBHOOK_"
    process = subprocess.Popen(  # noqa: S603  # no user input
        [Path(sys.executable).with_name("public-jobs-webhook"), "serve", "--port", "0"],
        env={name: value for name, value in os.environ.items() if not name.startswith(private)}
        | {f"{private}TOKEN": token, f"{private}CHANGES_URL": _changes_url(folder)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = (process.stderr.readline() if process.stderr else "").strip()
        address = re.match(r"Receiving at (\S+)<token>", line)
        if address is None:
            message = f"public-jobs-webhook did not start: {line}"
            raise click.ClickException(message)
        yield address[1] + token
    finally:
        process.terminate()
        process.communicate()


def _changes_url(folder: Path) -> str:
    return f"sqlite:///{folder}/changes.db"


def _answer_questions(database: Path, questions: Sequence[Question]) -> None:
    import duckdb  # noqa: PLC0415  # slow to import, and only the demo needs it

    width = shutil.get_terminal_size((FALLBACK_WIDTH, 24)).columns
    with duckdb.connect(str(database), read_only=True) as connection:
        connection.execute(PUBLISHED)
        for number, question in enumerate(questions, start=1):
            result = connection.execute(question.sql)
            names = [column[0] for column in result.description or ()]
            click.echo(f"\n{number}. {question.words}\n\n{_indented(question.sql)}\n")
            for line in _table(names, result.fetchall(), width - 3):
                click.echo(f"   {line}")


def _indented(sql: str) -> str:
    return textwrap.indent(textwrap.dedent(sql).strip(), "     ")


def _table(names: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> Iterator[str]:
    """Align rows in columns, numbers to the right, and cut the last column at `width`."""
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
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(str(value).split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
