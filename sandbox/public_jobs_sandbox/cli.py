"""The command `public-jobs-sandbox`."""

import contextlib
import re
import threading
from typing import Any

import click

from public_jobs_sandbox.demo import demo
from public_jobs_sandbox.faults import KINDS
from public_jobs_sandbox.limits import ALGORITHMS
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox

DEFAULTS = Options()


@click.group(context_settings={"show_default": True})
@click.version_option(package_name="tap-public-jobs")
def main() -> None:
    """Run the Public Jobs API on this computer, to try the tap without an account."""


main.add_command(demo)


def _rejection(_: click.Context, __: click.Parameter, text: str) -> str:
    if not re.fullmatch(r"[45]\d\d( [\w-]+: .+)?", text):
        message = (
            f"{text!r} is not a status, such as 503, alone or with a header: {DEFAULTS.reject_with}"
        )
        raise click.BadParameter(message)
    return text


@main.command()
@click.option("--port", default=8000, help="Port to listen on; 0 picks a free one.")
@click.option("--jobs", default=120, help="Number of published jobs.")
@click.option(
    "--limit-algorithm",
    type=click.Choice(list(ALGORITHMS)),
    default=DEFAULTS.limit_algorithm,
    help="How the rate limit counts requests.",
)
@click.option(
    "--limit",
    "limit_requests",
    type=click.IntRange(min=1),
    default=DEFAULTS.limit_requests,
    help="Requests allowed per period and key.",
)
@click.option(
    "--period",
    "limit_period",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULTS.limit_period,
    help="Length of a period in seconds.",
)
@click.option(
    "--reject-with",
    callback=_rejection,
    default=DEFAULTS.reject_with,
    help="Status of a rejection, alone or with a header, in which {} becomes the seconds to wait.",
)
@click.option("--no-limit", is_flag=True, help="Turn the rate limit off.")
@click.option("--latency", default=DEFAULTS.latency, help="Seconds that each response takes.")
@click.option(
    "--fault",
    "faults",
    type=(click.Choice(list(KINDS)), click.IntRange(min=1)),
    multiple=True,
    help="A kind of fault, and N: every N-th request gets it. May be repeated.",
)
def serve(
    *,
    port: int,
    jobs: int,
    no_limit: bool,
    faults: tuple[tuple[str, int], ...],
    **options: Any,  # noqa: ANN401  # of `Options`
) -> None:
    """Serve the API until Ctrl-C."""
    sandbox = Sandbox.demo(jobs, options=Options(limited=not no_limit, **options))
    for kind, every in faults:
        sandbox.fail_every(kind, every)
    try:
        with serving(sandbox, port) as base_url, contextlib.suppress(KeyboardInterrupt):
            click.echo(f"export TAP_PUBLIC_JOBS_BASE_URL={base_url}")
            click.echo(f"export TAP_PUBLIC_JOBS_API_KEY={sandbox.key}")
            click.echo(f"Serving {jobs} published jobs until Ctrl-C.", err=True)
            threading.Event().wait()
    except OSError as error:
        message = f"Cannot listen on port {port}: {error.strerror}"
        raise click.ClickException(message) from error
