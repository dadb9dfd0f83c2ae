"""The command `tap-public-jobs`, also as `python -m tap_public_jobs`."""

import signal


def main() -> None:
    """Run the tap."""
    # Ctrl-C while modules load ends the process as a signal does, and without a traceback.
    # A shell script ignores it for background commands, and that stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tap_public_jobs.process import run  # noqa: PLC0415  # loads for a second
    from tap_public_jobs.tap import TapPublicJobs  # noqa: PLC0415

    run(TapPublicJobs)


if __name__ == "__main__":
    main()
