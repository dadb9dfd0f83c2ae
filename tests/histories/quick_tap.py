"""The tap as a program with its own clock, short waits and many checkpoints."""

from __future__ import annotations

import os
import time

from tap_public_jobs import __main__ as command
from tap_public_jobs.api import client
from tap_public_jobs.sync import plan
from tap_public_jobs.tap import TapPublicJobs

AHEAD = "HISTORY_SECONDS_AHEAD"
"""Variable: how far the clock of a run is ahead of the monotonic one, which nobody sets."""


def main() -> None:
    """Run the tap."""
    ahead = float(os.environ[AHEAD])
    TapPublicJobs.clock = staticmethod(lambda: time.monotonic() + ahead)
    client.FIRST_WAIT = 0.005
    plan.FEWEST_BETWEEN_CHECKPOINTS = 3
    command.main()


if __name__ == "__main__":
    main()
