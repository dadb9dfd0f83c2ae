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
    """A kind of fault and how often it happens, such as `http_503:10`."""

    name = "KIND:EVERY_N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        kind, _, every = str(value).partition(":")
        if kind not in KINDS:
            self.fail(f"no fault {kind!r}, use one of: {', '.join(KINDS)}", param, ctx)
        if not every.isdecimal() or not int(every):
            self.fail(f"{value!r} does not say how often: use {kind}:10", param, ctx)
        return kind, int(every)


@click.group(context_settings={"show_default": True})
@click.version_option(package_name="tap-public-jobs")
def main() -> None:
    """The Public Jobs API on this computer, to try the tap without an account."""


main.add_command(demo)


@main.command()
@click.option("--host", default=LOCALHOST, help="Address to listen on.")
@click.option("--port", default=8000, help="Port to listen on; 0 for any free one.")
@click.option("--jobs", default=120, help="Number of published jobs.")
@click.option("--seed", default=1, help="The same seed gives the same jobs and keys.")
@click.option(
    "--limit-algorithm",
    type=click.Choice(list(ALGORITHMS)),
    default=DEFAULTS.limit_algorithm,
    help="How requests are counted.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=DEFAULTS.limit_requests,
    help="Requests per period and key.",
)
@click.option(
    "--period",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULTS.limit_period,
    help="Seconds in a period.",
)
@click.option("--no-limit", is_flag=True, help="Answer every request at once.")
@click.option(
    "--rejection-status",
    type=click.IntRange(200, 599),
    default=DEFAULTS.rejection_status,
    help="Status of an answer beyond the limit.",
)
@click.option(
    "--retry-after",
    default=DEFAULTS.retry_after,
    help="Retry-After beyond the limit: seconds, date, none, or any text to send as it is.",
)
@click.option("--latency", default=DEFAULTS.latency, help="Seconds that every answer takes.")
@click.option("--jitter", default=DEFAULTS.jitter, help="Up to so many seconds more.")
@click.option(
    "--order", type=click.Choice(ORDERS), default=DEFAULTS.order, help="Order of the list."
)
@click.option(
    "--no-undocumented-fields",
    is_flag=True,
    help="Leave out the five fields that the API page does not name.",
)
@click.option("--omit-empty", is_flag=True, help="Leave out detail fields without a value.")
@click.option(
    "--fault",
    "faults",
    type=_FaultRate(),
    multiple=True,
    help=f"Let every n-th request go wrong. Kinds: {', '.join(KINDS)}.",
)
@click.option("--webhook-url", help="Tell this address of every change of a job.")
@click.option(
    "--webhook-payload",
    type=click.Choice(PAYLOADS),
    default=DEFAULTS.webhook_payload,
    help="What a webhook says.",
)
@click.option(
    "--edit-every", type=click.FloatRange(0, min_open=True), help="Seconds between edits of a job."
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

    def announce(base_url: str) -> None:
        click.echo(f"export TAP_PUBLIC_JOBS_BASE_URL={base_url}")
        click.echo(f"export TAP_PUBLIC_JOBS_API_KEY={sandbox.key}")
        click.echo(f"Serving {jobs} published jobs until Ctrl-C.", err=True)
        if edit_every:
            threading.Thread(target=_edit, args=(sandbox, edit_every), daemon=True).start()

    try:
        run(sandbox, host, port, announce)
    except OSError as error:
        message = f"Cannot listen on {host}:{port}: {error.strerror}"
        raise click.ClickException(message) from error


def _edit(sandbox: Sandbox, pause: float) -> None:
    """Edit one job after the other, for ever."""
    for number in itertools.count(1):
        time.sleep(pause)
        published = sandbox.organisation.published()
        job = published[number % len(published)].job
        sandbox.edit(job["publicId"], jobTitle=f"{job['jobTitle'].partition(' (')[0]} ({number})")
