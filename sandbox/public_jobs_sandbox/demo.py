"""The command `public-jobs-sandbox demo`: syncs made-up jobs and answers questions in SQL."""

import subprocess
import sys
import tempfile
import textwrap
from http import HTTPStatus
from pathlib import Path

import click

from public_jobs_sandbox import meltano
from public_jobs_sandbox.answers import Question, answer
from public_jobs_sandbox.meltano import COMMAND, PERIOD, REPOSITORY, REQUESTS, SCHEMA
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from public_jobs_sandbox.webhook_demo import show_webhook
from public_jobs_sandbox.weeks import NIGHTS, Clock, DemoWarehouse, copy_transform, play

JOBS = 120
DATABASE = Path("output", "demo.duckdb")
DASHBOARD = Path("pipeline", "dashboard", "page.py")
BUILD = "dbt-duckdb:build"
# As README has it.
START = """\
pip install uv
git clone https://git.example.com/public-jobs/tap-public-jobs
uvx copier copy --trust tap-public-jobs my-pipeline
my-pipeline/sync"""


QUESTIONS = (
    Question(
        "Where does hiring grow? (Open roles now and four weeks ago.)",
        """
        select department,
               count(*) filter (where is_latest_day) as now,
               count(*) filter (where not is_latest_day) as four_weeks_ago,
               now - four_weeks_ago as change
        from analytics.open_jobs_by_day
        where is_latest_day or day = (select max(day) - 28 from analytics.open_jobs_by_day)
        group by department
        order by change desc, department;
        """,
    ),
    Question(
        "How long do roles stay open? (Those opened since the first sync, closed or not.)",
        """
        select value as seniority, max(closed_jobs) as closed, max(jobs) as roles,
               coalesce(cast(max(median_days) as text), 'most are open') as median_days
        from analytics.time_to_close
        where dimension = 'seniority_level'
        group by value
        order by max(time_to_close.median_days) nulls last, seniority;
        """,
    ),
    Question(
        "What has happened since Monday? (On a Monday, since the one before.)",
        """
        select event, count(distinct job_key) as jobs, any_value(job_title) as for_example
        from analytics.job_events
        cross join (select max(last_listed_at) as today from analytics.nights)
        where happened_by >= date_trunc('week', today - interval '1 day')
        group by event
        order by event;
        """,
    ),
    Question(
        "Whose pay was raised most, with the same currency?",
        """
        select job_title, old_value as before, new_value as after, change_percent as percent
        from analytics.job_events
        where event = 'repriced' and change_percent > 0
        order by percent desc, job_title
        limit 5;
        """,
    ),
    Question(
        "Which job was published again?",
        """
        select job_title, period, days_open_at_least as days_open,
               case when was_open_before then 'or longer' else '' end as note
        from analytics.job_periods
        where job_key in (select job_key from analytics.jobs_ever where period > 1)
        order by job_title, period;
        """,
    ),
)


@click.command()
@click.option("--webhook", is_flag=True, help="Show how changes in the portal reach the warehouse.")
def demo(*, webhook: bool) -> None:
    """Play eight weeks of made-up jobs, load them into DuckDB, and query them."""
    if webhook:
        show_webhook(JOBS)
    else:
        _show_weeks(REPOSITORY / DATABASE)


def _show_weeks(database: Path) -> None:
    """Play eight weeks of nightly syncs, the last one through Meltano, and ask what happened."""
    database.parent.mkdir(exist_ok=True)
    for suffix in (".duckdb", ".duckdb.wal", ".html"):
        database.with_suffix(suffix).unlink(missing_ok=True)
    clock = Clock()
    options = Options(limit_requests=REQUESTS, limit_period=PERIOD)
    sandbox = Sandbox.demo(JOBS, options=options, clock=clock.now)
    with tempfile.TemporaryDirectory() as name, serving(sandbox) as base_url:
        folder = Path(name)
        variables = meltano.environment(sandbox, base_url, database, folder) | {
            "TAP_PUBLIC_JOBS_DETAIL_REFRESH": "changed",
            # Meltano's names of dbt's folders.
            "DBT_DUCKDB_PROJECT_DIR": str(copy_transform(folder / "transform")),
            "DBT_DUCKDB_TARGET_PATH": str(folder / "dbt"),
            # The last build takes what those of the nights have parsed, which no update changes.
            "DBT_PARTIAL_PARSE": "true",
        }
        click.echo(
            f"This demo plays eight weeks of an organisation with {JOBS} jobs at first: roles\n"
            "open, close and change, and each night a sync loads them into DuckDB. The tap,\n"
            "the target and dbt are real; only their clock moves faster. It takes 90 seconds,\n"
            f"the first time longer, and writes {DATABASE} and {DATABASE.with_suffix('.html')}.\n\n"
            f"A sandbox of the Public Jobs API serves the jobs at {base_url}.\n"
        )
        meltano.install(variables)
        config = {
            "base_url": base_url,
            "api_key": sandbox.key,
            "rate_limit_requests": REQUESTS,
            "rate_limit_period_seconds": PERIOD,
            "detail_refresh": "changed",
            "column_naming": "snake_case",
        }
        with DemoWarehouse(variables, folder) as warehouse:
            state = play(sandbox, clock, config, warehouse, folder)
        variables["TAP_PUBLIC_JOBS__STATE"] = str(state)
        click.echo(f"\nThe last night is now, and runs as yours would:\n\n{COMMAND} {BUILD}")
        meltano.run(variables, BUILD, install=False)
        rejected = sum(it.status == HTTPStatus.TOO_MANY_REQUESTS for it in sandbox.requests)
        click.echo(
            f"\nThe sandbox counted {len(sandbox.requests):,} requests in {NIGHTS - 1} syncs, and "
            f"rejected {rejected}. The answers come from dbt's tables."
        )
    answer(database, QUESTIONS)
    # If that fails, its error says why.
    page = [sys.executable, str(REPOSITORY / DASHBOARD)]
    command = [*page, str(database), "--name", sandbox.organisation.name]
    drawn = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # noqa: S603  # no user input
    if drawn.returncode == 0:
        click.echo(f"\nPictures of it: open {DATABASE.with_suffix('.html')} in a browser.")
    click.echo(
        f"\nThe warehouse is {DATABASE}: the tap's tables are in the schema {SCHEMA}, and dbt's in "
        "analytics. Each demo replaces it. To ask it more:\n\n"
        f"  uvx --from duckdb-cli duckdb -readonly {DATABASE}\n\n"
        "docs/query/questions.md has more questions.\n\n"
        "With your own key, beside this folder (write `cd ..` for the first two lines):\n\n"
        f"{textwrap.indent(START, '  ')}\n\n"
        "copier asks for the key, the warehouse and the schedule; sync loads and builds."
    )
