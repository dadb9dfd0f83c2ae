"""The command `public-jobs-sandbox`."""

import itertools
import threading
import time
from typing import get_args, get_type_hints

import click

from public_jobs_sandbox.demo import demo
from public_jobs_sandbox.faults import KINDS
from public_jobs_sandbox.limits import ALGORITHMS
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import LOCALHOST, run
from public_jobs_sandbox.state import Sandbox

DEFAULTS = Options()
ORDERS = get_args(get_type_hints(Options)["order"])
PAYLOADS = get_args(get_type_hints(Options)["webhook_payload"])


class _FaultRate(click.ParamType[tuple[str, int]]):
    """A kind of fault and how often it occurs, for example `http_503:10`."""

    name = "KIND:EVERY_N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        kind, _, every = str(value).partition(":")
        if kind not in KINDS:
            self.fail(f"unknown fault {kind!r}; use one of: {', '.join(KINDS)}", param, ctx)
        if not every.isdecimal() or not int(every):
            self.fail(f"{value!r} does not say how often; use {kind}:10", param, ctx)
        return kind, int(every)


@click.group(context_settings={"show_default": True})
@click.version_option(package_name="tap-public-jobs")
def main() -> None:
    """Run the Public Jobs API on this computer, to try the tap without an account."""


main.add_command(demo)


@main.command()
@click.option("--host", default=LOCALHOST, help="Address to listen on.")
@click.option("--port", default=8000, help="Port to listen on; 0 picks a free one.")
@click.option("--jobs", default=120, help="Number of published jobs.")
@click.option("--seed", default=1, help="The same seed gives the same jobs and keys.")
@click.option(
    "--limit-algorithm",
    type=click.Choice(list(ALGORITHMS)),
    default=DEFAULTS.limit_algorithm,
    help="How the rate limit counts requests.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DEFAULTS.limit_requests,
    help="Requests allowed per period and key.",
)
@click.option(
    "--period",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULTS.limit_period,
    help="Length of a period in seconds.",
)
@click.option("--no-limit", is_flag=True, help="Turn the rate limit off.")
@click.option(
    "--rejection-status",
    type=click.IntRange(200, 599),
    default=DEFAULTS.rejection_status,
    help="Status of a response over the limit.",
)
@click.option(
    "--retry-after",
    default=DEFAULTS.retry_after,
    help="Retry-After header over the limit: seconds, date, none, or a text to send as it is.",
)
@click.option("--latency", default=DEFAULTS.latency, help="Seconds that each response takes.")
@click.option("--jitter", default=DEFAULTS.jitter, help="Longest random delay to add, in seconds.")
@click.option(
    "--order", type=click.Choice(ORDERS), default=DEFAULTS.order, help="Order of the list."
)
@click.option(
    "--no-undocumented-fields",
    is_flag=True,
    help="Leave out the five fields whose names the API does not document.",
)
@click.option("--omit-empty", is_flag=True, help="Leave out empty detail fields.")
@click.option(
    "--fault",
    "faults",
    type=_FaultRate(),
    multiple=True,
    help=f"Make every n-th request fail. Kinds: {', '.join(KINDS)}.",
)
@click.option("--webhook-url", help="Send a webhook to this address whenever a job changes.")
@click.option(
    "--webhook-payload",
    type=click.Choice(PAYLOADS),
    default=DEFAULTS.webhook_payload,
    help="Shape of the payload of a webhook.",
)
@click.option(
    "--edit-every",
    type=click.FloatRange(0, min_open=True),
    help="Pause in seconds between automatic edits of jobs.",
)
def serve(  # noqa: PLR0913 - one parameter per option
    *,
    host: str,
    port: int,
    jobs: int,
    seed: int,
    limit_algorithm: str,
    limit: int,
    period: float,
    no_limit: bool,
    rejection_status: int,
    retry_after: str,
    latency: float,
    jitter: float,
    order: str,
    no_undocumented_fields: bool,
    omit_empty: bool,
    faults: tuple[tuple[str, int], ...],
    webhook_url: str | None,
    webhook_payload: str,
    edit_every: float | None,
) -> None:
    """Serve the API until Ctrl-C."""
    try:
        options = Options(
            limit_algorithm=limit_algorithm,
            limit_requests=limit,
            limit_period=period,
            limited=not no_limit,
            rejection_status=rejection_status,
            retry_after=None if retry_after == "none" else retry_after,
            latency=latency,
            jitter=jitter,
            order=order,  # type: ignore[arg-type] # click has checked it
            undocumented_fields=not no_undocumented_fields,
            omit_empty=omit_empty,
            webhook_url=webhook_url,
            webhook_payload=webhook_payload,  # type: ignore[arg-type] # click has checked it
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    sandbox = Sandbox.demo(jobs, seed=seed, options=options)
    for kind, every in faults:
        sandbox.fail_every(kind, every)

    def on_ready(base_url: str) -> None:
        click.echo(f"export TAP_PUBLIC_JOBS_BASE_URL={base_url}")
        click.echo(f"export TAP_PUBLIC_JOBS_API_KEY={sandbox.key}")
        click.echo(f"Serving {jobs} published jobs until Ctrl-C.", err=True)
        if edit_every:
            threading.Thread(target=_edit, args=(sandbox, edit_every), daemon=True).start()

    try:
        run(sandbox, host, port, on_ready)
    except OSError as error:
        message = f"Cannot listen on {host}:{port}: {error.strerror}"
        raise click.ClickException(message) from error


def _edit(sandbox: Sandbox, pause: float) -> None:
    """Edit one job after another, forever."""
    for number in itertools.count(1):
        time.sleep(pause)
        published = sandbox.organisation.published()
        job = published[number % len(published)].job
        sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle'].partition(' (')[0]} ({number})")
