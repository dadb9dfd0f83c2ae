"""The demo of webhooks: a change in the sandbox reaches the warehouse with a few requests."""

import contextlib
import itertools
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import click

from public_jobs_sandbox import meltano
from public_jobs_sandbox.answers import Question, answer
from public_jobs_sandbox.meltano import COMMAND, PERIOD, REQUESTS
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

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


def show_webhook(jobs: int) -> None:
    """Backfill, edit one job, unpublish another and sync again: few requests, new answers."""
    with tempfile.TemporaryDirectory() as folder, _receiver(Path(folder)) as hook:
        options = Options(limit_requests=REQUESTS, limit_period=PERIOD, webhook_url=hook)
        sandbox = Sandbox.demo(jobs, options=options)
        database = Path(folder, "demo.duckdb")
        with serving(sandbox) as base_url:
            variables = meltano.environment(sandbox, base_url, database, Path(folder)) | {
                "TAP_PUBLIC_JOBS_DETAIL_REFRESH": "notified",
                "TAP_PUBLIC_JOBS_CHANGES_URL": _changes_url(Path(folder)),
            }
            click.echo(
                f"A sandbox of the Public Jobs API serves {jobs} made-up jobs at {base_url}.\n"
                "It sends every change to public-jobs-webhook, and the tap runs with\n"
                f"detail_refresh: notified. The first run fetches everything.\n\n{COMMAND}"
            )
            meltano.run(variables)
            before = len(sandbox.requests)
            published = (posting.job for posting in sandbox.organisation.published())
            edited, closed = itertools.islice((it for it in published if it["maxSalary"]), 2)
            pay = Question("What does the job pay?", PAY.format(edited["publicId"]))
            answer(database, [pay])
            sandbox.edit(edited["publicId"], maxSalary=edited["maxSalary"] + 10_000)
            sandbox.unpublish(closed["publicId"])
            click.echo(
                "\nIn the portal the job now pays 10,000 more, and another job is unpublished. "
                f"The sandbox has sent 2 webhooks.\n\n{COMMAND}"
            )
            meltano.run(variables, install=False)
            requests = sandbox.requests[before:]
            click.echo(f"\nRequests of this run, and the status of each answer: {len(requests)}\n")
            for request in requests:
                query = f"?{urlencode(request.query)}" if request.query else ""
                click.echo(f"  {request.method} {request.path}{query} {request.status}")
            answer(database, [pay, CLOSED])


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
        lines = iter(process.stderr or ())
        address = next(filter(None, (re.search(r"running on (\S+)", line) for line in lines)), None)
        if address is None:
            message = "public-jobs-webhook did not start"
            raise click.ClickException(message)
        yield f"{address[1]}/hooks/{token}"
    finally:
        process.terminate()
        process.communicate()


def _changes_url(folder: Path) -> str:
    return f"sqlite:///{folder}/changes.db"
