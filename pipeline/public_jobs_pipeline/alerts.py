"""Tells a person that runs fail, and a service that they work."""

import json
import socket
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from public_jobs_pipeline import env
from public_jobs_pipeline.project import Project

# Most failures heal by themselves within twelve minutes, so only a failed retry is an alert.
RETRY_AFTER = 12 * 60
# A run that fails every few minutes alerts once an hour.
ALERT_EVERY = 60 * 60

# The answers of the template by which a project can send messages to the addresses of settings.
ANSWERS = {"ALERT_URL": "alert=message", "DIGEST_URL": "digest=day"}

# Since when runs of --if-news fail, and when the last alert was.
FAILING = Path(".meltano/failing.json")


def alert(project: Project, failure: str) -> None:
    """Say what failed, where, and where the log is: on stderr, and to the address ALERT_URL."""
    name = Path.cwd().name
    text = f"{failure}\nHost: {socket.gethostname()}, project: {name}. Log: {project.log}"
    with suppress(OSError):  # a full disk keeps no log, and the alert has to go out
        print(text, file=sys.stderr, flush=True)
    if env.setting("ALERT_URL"):
        service, flaw = service_at("ALERT_URL")
        if flaw or not service.notify(text, title=f"{name} failed"):
            why = flaw or "The address in ALERT_URL was not reached, or refused it."
            print(f"No alert was sent. {why}", file=sys.stderr)


def alert_once_an_hour(project: Project, failure: str) -> None:
    """Alert if runs of --if-news have failed for as long as a retry waits."""
    now = time.time()
    try:
        # No later than now, although the clock may have been ahead.
        since, alerted = (min(now, float(at)) for at in json.loads(FAILING.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        since, alerted = now, 0.0
    if now - since >= RETRY_AFTER and now - alerted >= ALERT_EVERY:
        alert(project, failure)
        alerted = now
    with suppress(OSError):  # of another user, or on a full disk: the nightly run alerts
        FAILING.write_text(json.dumps([since, alerted]), "utf-8")


def forget_failures() -> None:
    """Note that a run has worked."""
    FAILING.unlink(missing_ok=True)


def service_at(name: str) -> tuple[Any, str]:
    """Return the service at the address that a setting has, and what is wrong with the address."""
    try:
        from apprise import Apprise  # noqa: PLC0415  # only a project that sends messages has it
    except ModuleNotFoundError:
        command = f"./upgrade --data {ANSWERS[name]}"
        return None, f"This project is not set up to send messages to {name}: run `{command}`."
    url = env.setting(name)
    if "overflow=" not in url:  # a service that takes short messages gets several
        url += f"{'&' if '?' in url else '?'}overflow=split"
    service = Apprise()
    if service.add(url):
        return service, ""
    # Without the address, which is a secret.
    return None, f"{name} has none of these forms: https://appriseit.com/services/"


def ping() -> None:
    """Report a success to the address PING_URL, which alerts if no run reports."""
    if url := env.setting("PING_URL"):
        try:
            urllib.request.urlopen(url, timeout=30).close()  # noqa: S310  # the user's own address
        except Exception as error:  # noqa: BLE001  # without the address, which is a secret
            print(f"PING_URL was not reached: {type(error).__name__}", file=sys.stderr)
