"""The command `public-jobs`, in the folder of a project: `setup`, `sync` and `check`.

The log goes to stdout. An alert also goes to stderr, so cron mails it.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from public_jobs_pipeline import alerts, check, env, installation, schedule
from public_jobs_pipeline.meltano import Interrupted
from public_jobs_pipeline.project import Flaw, Project

# Meltano passes .env to the tap; alerts and pings take these variables from it, too.
OF_THE_NETWORK = (
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"
)  # fmt: skip


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser("public-jobs", description="Run a project of the template.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="install it, and check what a run needs")
    commands.add_parser("check", help="check .env, the database and the key, and run nothing")
    sync = commands.add_parser("sync", prog="sync", help="load the jobs, and build the tables")
    mode = sync.add_mutually_exclusive_group()
    mode.add_argument(
        "--scheduled",
        action="store_const",
        dest="mode",
        const=schedule.nightly,
        help="as a schedule runs it: try a failure again after twelve minutes, then alert",
    )
    mode.add_argument(
        "--if-news",
        action="store_const",
        dest="mode",
        const=schedule.every_few_minutes,
        help="every few minutes: only if a webhook came, or the last run left work",
    )
    for it in (parser, sync):
        it.set_defaults(mode=schedule.by_hand)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its status."""
    options = parse(arguments)
    project = Project("")
    try:
        if options.command != "setup":
            os.umask(0o077)  # what a run writes has the key
        project = Project.here()
        return run(options, project)
    except Flaw as found:
        flaw = str(found)
    except PermissionError as error:
        flaw = check.foreign(error.filename, str(error.strerror))
    except Interrupted as signalled:
        return stopped(signalled, project)
    except Exception as error:  # noqa: BLE001  # whatever it is, no schedule may stay silent
        why = type(error).__name__  # its text may have a secret
        if isinstance(error, OSError):
            why = f"{error.strerror} ({error.filename})" if error.filename else str(error)
        flaw = f"The run broke off: {why}. If the disk is not full, run '{Path.cwd()}/setup'."
    give_up(options, project, flaw)
    return 1


def run(options: argparse.Namespace, project: Project) -> int:
    """Do what the options say, and return the status."""
    os.environ |= {name: value for name in OF_THE_NETWORK if (value := env.setting(name))}
    if options.command == "setup":
        return installation.set_up(project)
    if options.command == "check":
        print(check.everything(project))
        return 0
    check.before_a_run()
    mode: Callable[[Project], int] = options.mode
    return mode(project)


def stopped(signalled: Interrupted, project: Project) -> int:
    """Say what ended a run."""
    if signalled.is_time_limit:
        alerts.alert(project, f"The run did not end within {schedule.TIME_LIMIT // 60} minutes.")
        return 1
    print("Stopped by a signal. The next run resumes.", flush=True)
    return signalled.status


def give_up(options: argparse.Namespace, project: Project, flaw: str) -> None:
    """Say what has to be corrected first: as an alert of a schedule, or else on stderr."""
    if options.command == "setup":
        print(f"\n{flaw}\nThen run: {Path.cwd()}/setup", file=sys.stderr)
    elif options.mode == schedule.nightly:
        alerts.alert(project, flaw)
    elif options.mode == schedule.every_few_minutes:
        print(flaw, flush=True)
        alerts.alert_once_an_hour(project, flaw)
    else:
        print(flaw, file=sys.stderr)
