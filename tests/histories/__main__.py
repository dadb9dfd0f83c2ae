"""Runs random histories: `uv run python -m tests.histories --seeds 200`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path


def main() -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)

    sys.path.insert(0, str(Path(__file__).parents[1]))  # where pytest imports from
    from histories.history import History  # noqa: PLC0415
    from public_jobs_sandbox.postgresql import postgresql  # noqa: PLC0415

    failed = []
    started = time.monotonic()
    with postgresql() as address:
        for seed in seeds:
            with tempfile.TemporaryDirectory(prefix=f"seed-{seed}-") as folder:
                history = History(seed, Path(folder), address)
                try:
                    history.play()
                except AssertionError as error:
                    failed.append(seed)
                    print(f"{error}\nRepeat it with --first {seed} --seeds 1.")  # noqa: T201
                verdict = "wrong" if seed in failed else "right"
                print(f"seed {seed}: {verdict}; {history.summary}", flush=True)  # noqa: T201
    seconds = time.monotonic() - started
    print(f"{len(seeds)} histories in {seconds:.0f} seconds; wrong: {failed or 'none'}")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
