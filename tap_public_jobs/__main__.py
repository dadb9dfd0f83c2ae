"""The command `tap-public-jobs`, also as `python -m tap_public_jobs`."""

import signal


def main() -> None:
    """Run the tap."""
    # While modules load, Ctrl-C ends the process without Python's traceback. If SIGINT is ignored,
    # as a shell script has it for commands in the background, it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tap_public_jobs.process import run  # noqa: PLC0415  # takes a second
    from tap_public_jobs.tap import TapPublicJobs  # noqa: PLC0415

    run(TapPublicJobs)


if __name__ == "__main__":
    main()
