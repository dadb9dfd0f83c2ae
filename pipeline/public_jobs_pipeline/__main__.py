"""Runs the command as `python -m public_jobs_pipeline`."""

import sys

from public_jobs_pipeline.cli import main

if __name__ == "__main__":
    sys.exit(main())
