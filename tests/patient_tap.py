"""The tap as a program that a busy machine cannot end before it has stopped by itself."""

from tap_public_jobs import __main__ as command
from tap_public_jobs import process

if __name__ == "__main__":
    process.SECONDS_TO_STOP = 25.0
    command.main()
