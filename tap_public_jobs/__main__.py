"""Runs the tap with `python -m tap_public_jobs`."""

from tap_public_jobs.tap import TapPublicJobs

if __name__ == "__main__":
    TapPublicJobs.cli()
