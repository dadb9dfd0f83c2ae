"""The command `tap-public-jobs`, also as `python -m tap_public_jobs`."""

import gc
import signal


def main() -> None:
    """Run the tap."""
    # While modules load, Ctrl-C ends the process without Python's traceback. If SIGINT is ignored,
    # as a shell script has it for commands in the background, it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What the modules make stays until the end. To look for garbage among it would take a fifth of
    # the time that they take to load, and a seventh of that of a run.
    gc.disable()
    from tap_public_jobs.singer.cli import run  # noqa: PLC0415  # takes half a second
    from tap_public_jobs.tap import TapPublicJobs  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    run(TapPublicJobs)


if __name__ == "__main__":
    main()
