"""The command `public-jobs-sandbox demo`: syncs made-up jobs and answers questions in SQL."""

import subprocess
import sys
import tempfile
import textwrap
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import click

from public_jobs_sandbox import meltano
from public_jobs_sandbox.answers import Question, answer
from public_jobs_sandbox.meltano import COMMAND, PERIOD, REPOSITORY, REQUESTS, SCHEMA
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from public_jobs_sandbox.webhook_demo import show_webhook

JOBS = 120
DATABASE = Path("output", "demo.duckdb")
# It runs with the packages that are here and with Vega, so that no second DuckDB is installed.
DASHBOARD = Path("pipeline", "dashboard", "page.py")
VEGA = ("--no-project", "--python", sys.executable, "--with", "vl-convert-python>=1.9")
# A snapshot records what a listing shows, and takes half as long as a build of all tables.
BUILD, SNAPSHOT = "dbt-duckdb:build", "dbt-duckdb:snapshot"
# As README has it.
START = """\
pip install uv && git clone https://git.example.com/public-jobs/tap-public-jobs
uvx copier copy --trust tap-public-jobs my-pipeline
my-pipeline/sync"""


class Change(NamedTuple):
    """What recruiters do in the portal between two syncs: close some jobs, and open others."""

    closed: int
    opened: int


CHANGES = (Change(18, 4), Change(6, 25), Change(20, 6))

QUESTIONS = (
    Question(
        "Which departments have the most open roles?",
        """
        select department, count(*) as open_roles, count(distinct location) as places
        from analytics.open_jobs
        group by department
        order by open_roles desc, department;
        """,
    ),
    Question(
        "What do roles pay, by seniority? (Amounts in different currencies are never mixed.)",
        """
        select currency, seniority_level, jobs, lowest, median, highest
        from analytics.salary_ranges
        where currency in ('EUR', 'USD')
        order by currency, lowest, highest;
        """,
    ),
    Question(
        "Which questions can rule an applicant out most often?",
        """
        select question, count(*) as jobs,
               count(*) filter (where answer_required) as answer_required
        from analytics.knockout_questions
        group by question
        order by jobs desc, question
        limit 5;
        """,
    ),
    Question(
        "Which fields does the API return without documenting them?",
        """
        select field, types, filled_jobs, share_filled
        from analytics.undeclared_fields
        order by field;
        """,
    ),
)


OVER_TIME = (
    Question(
        "How many roles were open at each sync, and how many opened and closed before it?",
        """
        select listed_at,
               count(*) filter (where opened_by <= listed_at
                                  and (is_open or closed_by > listed_at)) as open,
               count(*) filter (where opened_by = listed_at
                                  and opened_after is not null) as opened,
               count(*) filter (where closed_by = listed_at) as closed,
               bar(open, 0, 125, 25) as open_roles
        from analytics.listings join analytics.publication_periods using (organisation)
        group by listed_at
        order by listed_at;
        """,
    ),
    Question(
        "How long were the closed roles open? (A listing dates each end, so there are two bounds.)",
        """
        select job_title,
               round(epoch(closed_after - opened_by), 1) as at_least_seconds,
               round(epoch(closed_by - opened_after), 1) as at_most_seconds
        from analytics.publication_periods
        where not is_open and opened_after is not null
        order by at_least_seconds desc, public_id;
        """,
    ),
)


@click.command()
@click.option("--webhook", is_flag=True, help="Show how changes in the portal reach the warehouse.")
def demo(*, webhook: bool) -> None:
    """Sync made-up jobs into DuckDB with Meltano, and query them."""
    if webhook:
        show_webhook(JOBS)
    else:
        _show_syncs(REPOSITORY / DATABASE)


def _show_syncs(database: Path) -> None:
    """Sync once and ask what is published; then sync some more times, and ask what happened."""
    database.parent.mkdir(exist_ok=True)
    for suffix in (".duckdb", ".duckdb.wal", ".html"):
        database.with_suffix(suffix).unlink(missing_ok=True)
    sandbox = Sandbox.demo(JOBS, options=Options(limit_requests=REQUESTS, limit_period=PERIOD))
    with tempfile.TemporaryDirectory() as folder, serving(sandbox) as base_url:
        variables = meltano.environment(sandbox, base_url, database, Path(folder))
        click.echo(
            f"This demo loads {JOBS} made-up jobs into DuckDB, builds tables from them, and asks\n"
            f"{len(QUESTIONS)} questions in SQL. Then jobs open and close, and it loads "
            f"{len(CHANGES)} more times and\nasks {len(OVER_TIME)} more. "
            "It takes about a minute, and the first time as long as it takes to\n"
            "install Meltano and dbt. It writes "
            f"{DATABASE} and {DATABASE.with_suffix('.html')}.\n\n"
            f"A sandbox of the Public Jobs API serves the jobs at {base_url}.\n"
            f"Like the API it allows {REQUESTS} requests per period; here a period is {PERIOD} "
            f"second, not 60.\n\n{COMMAND} {BUILD}"
        )
        meltano.run(variables, BUILD)
        rejected = sum(
            request.status == HTTPStatus.TOO_MANY_REQUESTS for request in sandbox.requests
        )
        click.echo(
            f"\nThe sandbox counted {len(sandbox.requests)} requests and rejected {rejected}. "
            "The answers come from the tables that dbt has built from the rows."
        )
        answer(database, QUESTIONS)
        click.echo(
            f"\nNow {len(CHANGES)} more syncs with detail_refresh: changed, which fetch the list\n"
            "and the details of new jobs. Before each, roles open and close in the sandbox.\n"
            "dbt records what each sync finds, and builds its tables again after the last one."
        )
        variables["TAP_PUBLIC_JOBS_DETAIL_REFRESH"] = "changed"
        new = iter(make_jobs(2 * JOBS)[-JOBS:])
        for (closed, opened), block in zip(CHANGES, (SNAPSHOT, SNAPSHOT, BUILD), strict=True):
            published = sandbox.organisation.published()
            for posting in published[:: len(published) // closed][:closed]:
                sandbox.unpublish(posting.job["publicId"])
            for _ in range(opened):
                sandbox.publish(next(new))
            click.echo(f"\n{COMMAND} {block}")
            meltano.run(variables, block, install=False)
    answer(database, OVER_TIME, first=len(QUESTIONS) + 1)
    # If that fails, its error says why.
    command = [
        *meltano.uv_command(),
        "run",
        "--quiet",
        *VEGA,
        "python",
        str(REPOSITORY / DASHBOARD),
    ]
    drawn = subprocess.run([*command, str(database)], stdout=subprocess.DEVNULL, check=False)  # noqa: S603  # no user input
    if drawn.returncode == 0:
        click.echo(f"\nPictures of it: open {DATABASE.with_suffix('.html')} in a browser.")
    click.echo(
        f"\nThe warehouse is {DATABASE}: the tap's tables are in the schema {SCHEMA}, and dbt's in "
        "analytics. Each demo replaces it. To ask it more:\n\n"
        f"  uvx --from duckdb-cli duckdb -readonly {DATABASE}\n\n"
        "docs/query/questions.md has more questions.\n\n"
        "With your own key, beside this folder:\n\n"
        f"{textwrap.indent(START, '  ')}\n\n"
        "The second asks for the key, the warehouse and the schedule; the third loads and builds."
    )
