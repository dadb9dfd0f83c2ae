"""The tap as a program with a clock of its own, short waits and many checkpoints."""

import os

from tap_public_jobs import __main__ as command
from tap_public_jobs.limit import transport
from tap_public_jobs.sync import run
from tap_public_jobs.tap import TapPublicJobs

# Variable: what the clock says.
NOW = "SOAK_SECONDS_SINCE_THE_EPOCH"


if __name__ == "__main__":
    now = float(os.environ[NOW])
    TapPublicJobs.clock = staticmethod(lambda: now)
    TapPublicJobs.sleep = staticmethod(lambda _: None)
    transport.FIRST_WAIT = 0.005
    run.FEWEST_BETWEEN_CHECKPOINTS = 2
    command.main()
